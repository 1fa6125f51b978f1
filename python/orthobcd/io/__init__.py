"""Files of matrices and components.

Parquet files need the extra ``files`` (pyarrow).
"""

from .components import SavedComponents, load_components, write_components
from .errors import FileNote, UnreadableFile
from .matrices import read_matrix

__all__ = [
    "FileNote",
    "SavedComponents",
    "UnreadableFile",
    "load_components",
    "read_matrix",
    "write_components",
]


def __dir__() -> list[str]:
    return __all__
