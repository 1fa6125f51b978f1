"""``orthobcd-bench``: the papers' comparisons on available data, against every competitor.

`run` is the command line. A run is a list of tasks (row × method × seed) from a suite; each
finished task is one line of ``results.jsonl`` in the output folder, so a run that was killed
continues with its unfinished tasks. The reports are made from these lines alone:
``comparison.md``, ``figures/*.png`` and ``run.json``.
"""

from __future__ import annotations

from .cli import run

__all__ = ["run"]
