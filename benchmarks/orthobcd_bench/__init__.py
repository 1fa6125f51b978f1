"""``orthobcd-bench``: the papers' comparisons on data you have, against every competitor.

`run` is the command line. A run is a list of tasks (row × method × seed) from a suite; each
finished task is one line of ``results.jsonl`` in the output folder, so a run that was killed goes
on where it stopped. From these lines alone the reports are made: ``results.csv``,
``comparison.md``, ``figures/*.png`` and ``run.json``.
"""

from __future__ import annotations

from .cli import run

__all__ = ["run"]
