"""Plots of solves, components and paths; needs the extra ``plot`` (matplotlib).

Every function draws into the given axes, or into a new figure, and returns matplotlib axes;
``axes.figure.savefig(...)`` saves the figure. The colours are those of Okabe and Ito, which remain
distinct with common forms of colour blindness. Positive values are purple, negative ones orange,
exact zeros grey. Components and features are counted from 0, as in ``components_``, unless they
have names; long names are shortened in the middle.
"""

from .bars import components
from .curves import convergence, feasibility, path, search
from .scatter import biplot, correlation_circle, scores, scree

__all__ = [
    "biplot",
    "components",
    "convergence",
    "correlation_circle",
    "feasibility",
    "path",
    "scores",
    "scree",
    "search",
]


def __dir__() -> list[str]:
    return __all__
