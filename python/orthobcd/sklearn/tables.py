"""Tables outside memory, read by batches of rows: pyarrow datasets, polars LazyFrames, DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from .._internal.extras import need

NUMBERS = ("int", "uint", "float", "double", "halffloat", "bool")
"""Beginnings of the names of pyarrow's numeric types."""


def batches_of(X: Any, rows: int) -> Callable[[], Iterable[Any]] | None:
    """A function that returns an iterator over tables of about ``rows`` rows of X.

    None if X is not a pyarrow dataset, a polars LazyFrame or a DuckDB relation.

    Raises
    ------
    TypeError
        If a column is not numeric.
    """
    kind = type(X)
    package, name = kind.__module__.partition(".")[0].lstrip("_"), kind.__name__
    if package == "pyarrow" and hasattr(X, "to_batches") and hasattr(X, "get_fragments"):
        _check_schema(X.schema)
        return lambda: _filled(_dataset_batches(X, rows))
    if package == "polars" and name == "LazyFrame":
        _check_polars(X)
        return lambda: _polars_batches(X, rows)
    if package == "duckdb" and name == "DuckDBPyRelation":
        need("files", "pyarrow")
        return lambda: _filled(_duckdb_batches(X, rows))
    return None


def _filled(batches: Iterable[Any]) -> Iterator[Any]:
    """Tables of the record batches that have rows."""
    table = need("files", "pyarrow").Table
    for batch in batches:
        if batch.num_rows > 0:
            yield table.from_batches([batch])


def _dataset_batches(X: Any, rows: int) -> Iterator[Any]:
    # Fragments are read one at a time: by default sixteen batches of four fragments are in memory.
    yield from X.to_batches(batch_size=rows, batch_readahead=1, fragment_readahead=1)


def _duckdb_batches(X: Any, rows: int) -> Iterator[Any]:
    # A selection is a new relation, because the reader of a relation can be used only once.
    chosen = X.select("*")
    make = getattr(chosen, "to_arrow_reader", None) or chosen.fetch_record_batch
    reader = make(rows)
    _check_schema(reader.schema)
    yield from reader


def _polars_batches(X: Any, rows: int) -> Iterator[Any]:
    if not hasattr(X, "collect_batches"):
        raise TypeError(
            "X is a LazyFrame, which this version of polars cannot read by batches; "
            "update polars, or give X.collect()"
        )
    batches = X.collect_batches(chunk_size=rows, maintain_order=True)
    yield from (batch for batch in batches if batch.height > 0)


def _check_schema(schema: Any) -> None:
    _check_columns([(f.name, str(f.type).startswith(NUMBERS), str(f.type)) for f in schema])


def _check_polars(X: Any) -> None:
    columns = X.collect_schema().items()
    _check_columns(
        [
            (name, kind.is_integer() or kind.is_float() or str(kind) == "Boolean", str(kind))
            for name, kind in columns
        ]
    )


def _check_columns(columns: Sequence[tuple[str, bool, str]]) -> None:
    """Raises a TypeError for the first of the columns (name, is numeric, type) without numbers."""
    for name, numeric, kind in columns:
        if not numeric:
            raise TypeError(
                f"X must have numeric columns only, {name!r} is of type {kind}; "
                "select the others, or cast it"
            )
