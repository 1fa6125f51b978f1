"""Packages that are imported where they are first used."""

from __future__ import annotations

import importlib
from typing import Any


def need(extra: str, module: str) -> Any:
    """A module of an optional dependency.

    Raises
    ------
    ImportError
        If it is not installed; the message names the extra that has it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"{package} is needed here and not installed: pip install 'orthobcd[{extra}]'",
            name=error.name,
        ) from error
