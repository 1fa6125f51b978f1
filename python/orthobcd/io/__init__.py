"""Files of matrices, components and triples.

Tables and triples need the extra ``files`` (pyarrow).
"""

from .components import SavedComponents, load_components, write_components
from .errors import FileNote, UnreadableFile
from .matrices import read_matrix
from .triples import TripleFiles, load_triples

__all__ = [
    "FileNote",
    "SavedComponents",
    "TripleFiles",
    "UnreadableFile",
    "load_components",
    "load_triples",
    "read_matrix",
    "write_components",
]


def __dir__() -> list[str]:
    return __all__
