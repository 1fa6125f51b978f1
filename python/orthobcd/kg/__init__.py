"""Knowledge graphs: the embedding `UltraE`, rankings, files of triples, dense cores."""

from .ranking import Ranking
from .triples import TripleFiles, dense_core, load_triples
from .ultra_e import UltraE

__all__ = ["Ranking", "TripleFiles", "UltraE", "dense_core", "load_triples"]


def __dir__() -> list[str]:
    return __all__
