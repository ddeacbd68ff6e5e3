"""A survey with all that a survey can have: two languages, parts, a long list, and silence."""

from blurfit import About, Binary, Categorical, Numeric, Schema, Wording

TOWNS = ("Aachen", "Bonn", "Celle", "Dülmen", "Essen", "Fürth", "Gera", "Hanau", "Ilmenau", "Jena")
TOWNS += ("Kiel", "Lünen", "Mainz", "Nordhorn", "Olpe", "Peine", "Rheine")


def two(en: str, de: str) -> dict[str, str]:
    return {"en": en, "de": de}


def survey_schema(title: str = "Work", purpose: str = "What schooling is worth") -> Schema:
    about, work = two("About you", "Über Sie"), two("Work", "Arbeit")
    return Schema(
        [
            Numeric(
                "age",
                18,
                90,
                optional=True,
                wording=Wording(
                    title=two("Age", "Alter"),
                    question=two("How old are you?", "Wie alt sind Sie?"),
                    hint=two("In whole years.", "In ganzen Jahren."),
                    unit=two("years", "Jahre"),
                    section=about,
                ),
            ),
            Binary(
                "married",
                optional=True,
                wording=Wording(
                    question=two("Are you married?", "Sind Sie verheiratet?"), section=about
                ),
            ),
            Categorical(
                "town",
                TOWNS,
                optional=True,
                wording=Wording(
                    question=two("Where do you live?", "Wo wohnen Sie?"), section=about
                ),
            ),
            Categorical(
                "field",
                ["a", "b", "c"],
                wording=Wording(
                    question=two("What do you do?", "Was machen Sie?"),
                    labels={
                        "a": two("On the land", "Auf dem Land"),
                        "b": two("In a shop", "Im Laden"),
                        "c": two("At a desk", "Am Schreibtisch"),
                    },
                    section=work,
                ),
            ),
        ],
        Numeric(
            "income",
            0,
            100_000,
            wording=Wording(
                question=two("What do you earn in a year?", "Was verdienen Sie im Jahr?"),
                unit="€",
                section=work,
            ),
        ),
        about=About(
            title=two(title, f"{title} (deutsch)"),
            purpose=purpose,
            organiser=two("The Office", "Das Amt"),
            contact="office@example.org",
        ),
    )


def schema_text(lower: int = 0, upper: int = 100, most: int = 1000) -> str:
    """A file that asks for age and income; what is added to it belongs to the income."""
    return f"""
[[features]]
name = "age"
kind = "numeric"
lower = {lower}
upper = {upper}
[target]
name = "income"
kind = "numeric"
lower = 0
upper = {most}
"""
