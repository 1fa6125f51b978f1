"""Runs the command line: ``python -m orthobcd_bench``."""

import sys

from .cli import run

if __name__ == "__main__":
    sys.exit(run())
