"""A picture has the contributors only where their features are known."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from blurfit.learning.balancing import balance, unweighted
from blurfit.learning.joint_sums import JointSums, clean_sums
from blurfit.theory.joint_form import JointColumn

mpl.use("Agg")

COLUMNS = (JointColumn("a", 0.5), JointColumn("b", 0.5), JointColumn("y", 0.7, "sign"))
LABELS = ["public", "public, matched", "contributors"]


def test_contributors_are_drawn_where_they_are_known() -> None:
    generator = np.random.default_rng(4)
    people, public = (generator.uniform(-1, 1, (rows, 2)) for rows in (5000, 500))
    clean = clean_sums(COLUMNS, 0.5, np.column_stack([people, np.sign(people[:, 0])]))
    matched = balance(JointSums(COLUMNS, 0.5, len(people), clean, 0.0).submodel("y"), public)
    for one, known in ((matched, LABELS), (unweighted(("a", "b"), public), LABELS[:1])):
        axes = one.plot()
        assert [text.get_text() for text in axes.get_legend().get_texts()] == known
        plt.close(axes.figure)
