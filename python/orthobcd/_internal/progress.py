"""The live line of ``verbose=True``: objective, nonzeros, stage, time left."""

from __future__ import annotations

import logging
import time
from contextvars import ContextVar, Token
from typing import Any

logger = logging.getLogger("orthobcd")

_open: ContextVar[Line | None] = ContextVar("orthobcd_line", default=None)


def show_log() -> None:
    """Shows the library's messages on standard error, if no log handler is installed."""
    if not logger.handlers and not logging.getLogger().handlers:
        logger.addHandler(logging.StreamHandler())
        logger.setLevel(logging.INFO)


class Line:
    """A line that is rewritten in place by tqdm; without tqdm the log is shown.

    Parameters
    ----------
    limit : float or None
        Time limit in seconds; None without limit.
    """

    def __init__(self, limit: float | None) -> None:
        self.started = time.perf_counter()
        self.limit = limit
        self.text = "solve"
        self.done: tuple[int, int] | None = None
        self.bar: Any = None
        try:
            from tqdm.auto import tqdm
        except ImportError:
            show_log()
            return
        known = "{desc}: {percentage:3.0f}%|{bar:16}| {elapsed}{postfix}"
        open_end = "{desc}: {elapsed}{postfix}"
        self.bar = tqdm(
            total=limit,
            desc=self.text,
            bar_format=open_end if limit is None else known,
            mininterval=0.05,
        )

    def stage(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """Begins a stage, when ``done`` of ``total`` stages are finished."""
        self.text = text
        self.done = None if done is None or total is None else (done, total)
        if self.bar is not None:
            self.bar.set_description_str(text, refresh=False)

    def left(self, elapsed: float) -> float | None:
        """Seconds to the time limit, or estimated from the finished stages; None if unknown."""
        if self.limit is not None:
            return max(self.limit - elapsed, 0.0)
        if self.done is not None and self.done[0] > 0:
            done, total = self.done
            return elapsed * (total - done) / done
        return None

    def update(self, objective: float, nonzeros: int) -> None:
        """Shows objective and nonzeros of the current point."""
        elapsed = time.perf_counter() - self.started
        left = self.left(elapsed)
        ending = "" if left is None else f", {left:.0f} s left"
        text = f"objective {objective:.8g}, {nonzeros} nonzeros{ending}"
        if self.bar is None:
            return
        if self.limit is not None:
            self.bar.n = min(elapsed, self.limit)
        self.bar.set_postfix_str(text, refresh=False)
        # Redraws at most once per `mininterval`.
        self.bar.update(0)
        if time.perf_counter() - self.bar.last_print_t > self.bar.mininterval:
            self.bar.refresh()
            self.bar.last_print_t = time.perf_counter()

    def close(self) -> None:
        """Closes the line; its last text stays visible."""
        if self.bar is not None:
            self.bar.refresh()
            self.bar.close()


class live:
    """Context with the live line: a new one, the one already open, or None if not verbose.

    A class, because a `contextlib` context sets attributes of exceptions, which may refuse them.
    """

    def __init__(self, verbose: bool, limit: float | None) -> None:
        self._verbose, self._limit = verbose, limit
        self._opened: tuple[Line, Token[Line | None]] | None = None

    def __enter__(self) -> Line | None:
        current = _open.get()
        if not self._verbose or current is not None:
            return current if self._verbose else None
        line = Line(self._limit)
        self._opened = line, _open.set(line)
        return line

    def __exit__(self, *error: object) -> None:
        if self._opened is not None:
            line, token = self._opened
            _open.reset(token)
            line.close()
