"""The figure of docs/searching.md: the objectives at which the runs of a search end.

Run the script from the root of a checkout::

    python benchmarks/scripts/search.py docs/images/search.png
"""

from __future__ import annotations

import sys

from sklearn.datasets import load_digits

import orthobcd as ob


def main(path: str) -> None:
    data = load_digits().data
    problem = ob.SparsePCAProblem(data, 10, ob.L0(1e3), center=True)
    result = ob.solve(problem, max_work=4.0, n_threads=2)
    ax = ob.plot.search(result)
    ax.set_title("digits, 10 components, ℓ0")
    ax.figure.savefig(path, dpi=110)
    for run in result.search.runs:
        print(f"{run.seconds:6.2f} s {run.heuristic:10} {run.objective:.1f} gain {run.gain:.3g}")


if __name__ == "__main__":
    main(sys.argv[1])
