"""What a command returns is a sentence for people, or JSON for scripts."""

import json

from click.testing import CliRunner

from blurfit.cli._common import Answer, command


def test_an_answer_is_a_sentence_or_json() -> None:
    @command("count", "3")
    def count(rows: int) -> Answer:
        """Count."""
        return Answer({"rows": rows}, f"There are {rows} rows.", "count again.", code=7)

    said = CliRunner().invoke(count, ["3"])
    assert (said.exit_code, said.stdout, said.stderr) == (
        *(7, "There are 3 rows.\n", "Next: count again.\n"),
    )
    facts = CliRunner().invoke(count, ["3", "--json"])
    assert (facts.exit_code, json.loads(facts.stdout), facts.stderr) == (7, {"rows": 3}, "")
