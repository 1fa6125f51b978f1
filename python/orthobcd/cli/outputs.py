"""The output files of a command: checked before the solve, written before anything is printed."""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from .._internal.extras import need
from .._internal.names import component_names
from .._internal.reading import reason_of
from .._internal.writing import check_writable, is_same_file, replacing
from ..io.components import put_components
from .terminal import WRONG, WrongArgument, complain, plain, say

ENDINGS = {"out": (".csv", ".npz"), "report": (".json",), "plot": (".png", ".pdf", ".svg")}

READING = ("columns", "drop", "decimal", "header", "index", "comment")
"""Options with the names of the parameters of `read_matrix`."""


class Outputs:
    """The files of --out, --report and --plot.

    Parameters
    ----------
    options : argparse.Namespace
        Options of the command.
    inputs : sequence of str or Path
        Input files of the command.
    out : tuple of str, default (".csv", ".npz")
        Allowed endings of --out.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        inputs: Sequence[str | Path],
        out: tuple[str, ...] = ENDINGS["out"],
    ) -> None:
        self._options = options
        self._said: list[str] = []
        self._tell = say
        self._failures: list[str] = []
        taken: dict[str, str] = {}
        for name, allowed in {**ENDINGS, "out": out}.items():
            path = self._path(name)
            if path is None:
                continue
            if path.suffix.lower() not in allowed:
                raise WrongArgument(f"--{name} must end in {' or '.join(allowed)}, got {path}")
            if not path.absolute().parent.is_dir():
                raise WrongArgument(f"--{name}: there is no folder {path.absolute().parent}")
            target = os.path.realpath(path)
            if target in taken:
                raise WrongArgument(f"--{name} must not be the file of --{taken[target]}, {path}")
            taken[target] = name
            check_output(name, path, inputs, options.force)
        if self._path("plot") is not None:
            need("plot", "matplotlib").use("Agg")

    def _path(self, name: str) -> Path | None:
        path: Path | None = getattr(self._options, name, None)
        return path

    def components(self, components: Any, names: Sequence[str] = ()) -> None:
        """Writes components, or an estimator that knows its names, to the file of --out."""
        path = self._path("out")
        ending = "" if path is None else path.suffix.lower()
        self._write("out", lambda part: put_components(part, ending, components, names))

    def scores(self, scores: Any, samples: Sequence[str]) -> None:
        """Writes coordinates to the file of --out: .npy, or .csv with the components as header.

        Names of the samples are the first column of the .csv, without a name, as
        ``DataFrame.to_csv`` writes an index. Without --out the table goes to the standard output,
        and messages to the standard error.
        """
        rows: list[list[Any]] = [component_names(scores.shape[1]), *scores.tolist()]
        if samples:
            rows = [[name, *row] for name, row in zip(["", *samples], rows, strict=True)]
        table = io.StringIO()
        csv.writer(table, lineterminator="\n").writerows(rows)

        def put(part: Path) -> None:
            if part.suffix.lower() == ".npy":
                np.save(part, scores)
            else:
                part.write_bytes(table.getvalue().encode())

        self._write("out", put)
        if self._path("out") is None:
            say(table.getvalue().removesuffix("\n"))
            self._tell = complain

    def report(self, shape: tuple[int, int], contents: dict[str, Any]) -> None:
        """Writes the file of --report: settings and results of the command."""
        head = {
            "version": __version__,
            "command": self._options.command,
            "data": self._options.data,
            **{name: getattr(self._options, name) for name in READING},
            "n_samples": shape[0],
            "n_features": shape[1],
        }
        text = json.dumps(plain({**head, **contents}), indent=2, ensure_ascii=False) + "\n"
        # File names that are not valid Unicode are escaped.
        encoded = text.encode("utf-8", "backslashreplace")

        def put(part: Path) -> None:
            part.write_bytes(encoded)

        self._write("report", put)

    def picture(self, components: Any, names: Sequence[str]) -> None:
        """Writes the file of --plot."""

        def draw(part: Path) -> None:
            from .. import plot

            shape = self._options.image_shape
            axes = plot.components(components, feature_names=list(names) or None, image_shape=shape)
            np.ravel(axes)[0].figure.savefig(part, dpi=150)

        self._write("plot", draw)

    def _write(self, name: str, put: Callable[[Path], None]) -> None:
        """Writes a file; if this fails, writes it to a temporary folder instead."""
        path = self._path(name)
        if path is None:
            return
        try:
            with replacing(path, overwrite=self._options.force) as part:
                put(part)
        except OSError as error:
            kept = _write_elsewhere(f"{name}{path.suffix}", put)
            where = "" if kept is None else f"; it is in {kept}"
            self._failures.append(f"--{name}: {path}: {_reason(error)}{where}")
        else:
            self._said.append(f"wrote {path}")

    def close(self, code: int) -> int:
        """Prints which files were written and which were not; returns the exit code."""
        for line in self._said:
            self._tell(line)
        for failure in self._failures:
            complain(f"error: {failure}")
        return WRONG if self._failures else code


def check_output(name: str, path: Path, inputs: Sequence[str | Path], force: bool) -> None:
    """Raises `WrongArgument` if the file of an option cannot be written or is an input."""
    for other in inputs:
        if is_same_file(path, other):
            raise WrongArgument(f"--{name} must not be {other}, which is read")
    try:
        check_writable(path, overwrite=force)
    except FileExistsError as error:
        raise WrongArgument(f"--{name}: {path} is there; --force replaces it") from error
    except OSError as error:
        raise WrongArgument(f"--{name}: {path}: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    return error.strerror or reason_of(error)


def _write_elsewhere(name: str, put: Callable[[Path], None]) -> Path | None:
    """Writes a file to a new temporary folder; returns its path, None if this fails too."""
    folder = None
    try:
        folder = tempfile.mkdtemp(prefix="orthobcd-")
        put(Path(folder) / name)
        return Path(folder) / name
    except OSError:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        return None
