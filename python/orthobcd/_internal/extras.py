"""Import of optional dependencies at their first use."""

from __future__ import annotations

import importlib
from typing import Any


def need(extra: str, module: str) -> Any:
    """Imports a module of an optional dependency."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"{package} is needed here and not installed: pip install 'orthobcd[{extra}]'",
            name=error.name,
        ) from error
