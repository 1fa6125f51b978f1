"""Exit codes, error messages about arguments, and values of reports."""

from __future__ import annotations

import argparse
import re
from typing import Any

from .._internal.reading import reason_of

OK, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130


class WrongArgument(Exception):
    """An invalid argument; the message is one line for the user."""


def in_options(error: Exception, options: argparse.Namespace) -> str:
    """The message of an error, with the parameter name at its beginning spelled as an option."""

    def spelled(found: re.Match[str]) -> str:
        return "--" + found[1].replace("_", "-")

    names = "|".join(map(re.escape, vars(options)))
    return re.sub(rf"^({names})(?= must| needs)", spelled, reason_of(error))


def plain(value: Any) -> Any:
    """A value of JSON types: arrays become lists, numbers that are not finite None."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)
