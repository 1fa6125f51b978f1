"""Everything that is read from files or written to them: matrices, components, triples.

Tables and triples are read with pyarrow, svmlight with scikit-learn, sparse matrices with SciPy:
the extra ``files``.
"""

from .components import write_components
from .errors import FileNote, UnreadableFile
from .matrices import read_matrix
from .triples import TripleFiles, load_triples

__all__ = [
    "FileNote",
    "TripleFiles",
    "UnreadableFile",
    "load_triples",
    "read_matrix",
    "write_components",
]
