"""Knowledge graphs: the embedding `UltraE`, rankings, dense cores."""

from .ranking import Ranking
from .triples import dense_core
from .ultra_e import UltraE

__all__ = ["Ranking", "UltraE", "dense_core"]


def __dir__() -> list[str]:
    return __all__
