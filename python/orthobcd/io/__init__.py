"""Files of matrices and components.

Parquet files need the extra ``files`` (pyarrow).
"""

from .components import write_components
from .errors import FileNote, UnreadableFile
from .matrices import read_matrix

__all__ = [
    "FileNote",
    "UnreadableFile",
    "read_matrix",
    "write_components",
]


def __dir__() -> list[str]:
    return __all__
