"""How public rows were weighted, as a picture: each column's mean before and after."""

from typing import TYPE_CHECKING, Any

from blurfit.optional import optional

if TYPE_CHECKING:
    from blurfit.learning.balancing import Balance


def plot_balance(balance: "Balance", ax: Any = None) -> Any:
    """Means of the public rows before and after, beside the contributors' where these are known.

    The axes are returned.
    """
    places = range(len(balance.names))
    if ax is None:
        size = 7, 1.5 + 0.3 * len(balance.names)
        _, ax = optional("matplotlib.pyplot").subplots(figsize=size, layout="constrained")
    title = f"{len(balance.weights):,} public rows, "
    ax.scatter(balance.before, places, facecolors="none", edgecolors="tab:grey", label="public")
    if balance.wanted is None:
        title += "as they are"
    else:
        ax.hlines(places, balance.before, balance.after, color="lightgrey", zorder=0)
        ax.scatter(balance.after, places, color="tab:blue", label="public, matched")
        ax.scatter(balance.wanted, places, color="tab:red", marker="|", s=150, label="contributors")
        title += f"worth {balance.effective_rows:,.0f}"
    ax.set_yticks(places, balance.names)
    ax.invert_yaxis()
    ax.set_xlabel("mean, on the scale of the public bounds")
    ax.set_title(title, fontsize=10)
    ax.legend(fontsize=8)
    return ax
