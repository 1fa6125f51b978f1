"""Import of optional dependencies at their first use."""

from __future__ import annotations

import importlib
from typing import Any


def need(extra: str, module: str) -> Any:
    """Imports a module of an optional dependency.

    Raises
    ------
    ImportError
        If the module is not installed; the message names the extra to install.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"{package} is needed here and not installed: pip install 'orthobcd[{extra}]'",
            name=error.name,
        ) from error


class Absent:
    """Stands for a name of a module whose optional package is not installed.

    A call or an attribute raises the `ImportError` of `need`.
    """

    def __init__(self, extra: str, package: str) -> None:
        self._extra, self._package = extra, package

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return need(self._extra, self._package)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return need(self._extra, self._package)
