"""A generated population: as many people as you like, none of whom exists."""

from blurfit import validate
from blurfit.datasets.census import Census, census_schema
from blurfit.schema.columns import Numeric
from blurfit.simulation.people import draw_population

NAME = "generated population (synthetic)"


def make_census(n: int, seed: int) -> Census:
    """n made-up people with the paper's attributes: a synthetic census, of nobody.

    Incomes rise with schooling, hours and, until about 50, age; are higher for men and the married;
    are zero for about a tenth; and are above 200,000 for a few in a hundred: `simulation.people`
    has the whole model. A linear model of the clipped income explains a little less than half of
    its variance, and about 47 in 100 earn more than 37,000. The same n and seed give the same
    people.

    >>> make_census(3, seed=7).synthetic
    True
    """
    validate.whole(n=n)
    validate.whole_from_zero(seed=seed)
    schema = census_schema(
        education=Numeric("education", 1, 24),
        residence=Numeric("residence_years", 0, 100),
        dwelling=Numeric("num_automobiles", 0, 6),
    )
    return Census(draw_population(n, int(seed)), schema, NAME, synthetic=True)
