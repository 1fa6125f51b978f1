"""What more threads would bring to sweeps of tiles: a simulation of their rounds.

``python benchmarks/scripts/rounds.py --pair 0.9 --rate 12`` lays out the tiles of a sweep as the
crate does (a stored C, no zero rows) and adds up the time of every step. Tiles that are swept side
by side take as many turns as the threads need, products are cut into pieces of fixed size, and
everything else is done by one thread. The inputs are measured with one thread: microseconds of a
pair in a tile, 10⁹ multiply-adds of a product a second, and microseconds to hand work to the
threads and to wait for it (``--wake``). The table has the time of a pair with one thread and the
speed-up over it by number of threads, the share of the time that pairs take with one thread, the
most tiles that are swept at once, and the bytes of C that are read for a pair. Threads that share
a memory bus or a core are slower than this.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

HALF = 32  # rows of a group; an inner tile has two
GROUPS_PER_TILE = 16  # groups for each of the inner tiles that are swept side by side
INNER_TILES = 16  # most inner tiles that are swept side by side, and groups of half a tile
BLOCK_CHUNK = 64  # rows of a piece of the product that follows inner tiles
COMMIT_CHUNK = 256  # rows of a piece of the product that commits a tile


@dataclass
class Machine:
    """Seconds of a pair, of a multiply-add, and of waking threads."""

    pair: float
    multiply_add: float
    wake: float
    threads: int

    def product(self, rows: int, work: float, chunk: int) -> float:
        """The seconds of a product whose rows are cut into chunks."""
        pieces = math.ceil(rows / chunk)
        turns = math.ceil(pieces / self.threads)
        return work / pieces * turns * self.multiply_add + self.wake * (self.threads > 1)


def together(n: int) -> int:
    """The number of tiles that are swept side by side."""
    share = (math.ceil(n / HALF) + GROUPS_PER_TILE // 2) // GROUPS_PER_TILE
    return min(INNER_TILES, 2 ** max(0, share.bit_length() - 1))


def rounds(lead: int, rest: int) -> list[tuple[int, int]]:
    """(tiles of a round, pairs of one of them), for groups of a tile; rest 0: all pairs of lead."""
    if rest:
        return [(min(lead, rest), HALF * HALF)] * max(lead, rest)
    own = (lead, HALF * (HALF - 1) // 2)
    return [own] + [(lead // 2, HALF * HALF)] * (lead + lead % 2 - 1)


def visit(n: int, r: int, lead: int, rest: int, machine: Machine) -> tuple[float, float, int]:
    """Seconds of a tile, seconds of its pairs, and its number of pairs."""
    rows = HALF * (lead + rest)
    seconds, solving, pairs = 0.0, 0.0, 0
    for tiles, size in rounds(lead, rest):
        for start in range(0, tiles, together(n)):
            count = min(together(n), tiles - start)
            turns = math.ceil(count / machine.threads)
            seconds += turns * size * machine.pair
            seconds += machine.wake * (machine.threads > 1 and count > 1)
            seconds += machine.product(rows, rows * 2 * HALF * count * r, BLOCK_CHUNK)
            solving += count * size * machine.pair
            pairs += count * size
    # C of the tile is copied by one thread: an entry takes about as long as a multiply-add.
    seconds += rows * rows * machine.multiply_add
    return seconds + machine.product(n, n * rows * r, COMMIT_CHUNK), solving, pairs


def sweep(n: int, r: int, machine: Machine) -> tuple[float, float, float]:
    """Seconds of a sweep, those of its pairs, and the bytes of C that are read for a pair."""
    groups = math.ceil(n / HALF)
    if groups <= 2 * INNER_TILES:
        visits = [(groups, 0, 1)]
    else:
        count = math.ceil(groups / INNER_TILES)
        size = math.ceil(groups / count)
        visits = [(size, 0, count), (size, size, count * (count - 1) // 2)]
    seconds = solving = read = 0.0
    pairs = 0
    for lead, rest, times in visits:
        some = visit(n, r, lead, rest, machine)
        rows = HALF * (lead + rest)
        steps = sum(math.ceil(tiles / together(n)) for tiles, _ in rounds(lead, rest))
        panels = steps * rows * 2 * HALF * min(together(n), lead)
        read += times * 8.0 * (rows * rows + panels + n * rows)
        seconds, solving = seconds + times * some[0], solving + times * some[1]
        pairs += times * some[2]
    return seconds, solving, read / pairs


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 2000, 4000, 8000, 16000])
    parser.add_argument("--components", type=int, default=20)
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 8, 32, 128])
    parser.add_argument("--pair", type=float, default=0.9)
    parser.add_argument("--rate", type=float, default=12.0)
    parser.add_argument("--wake", type=float, default=10.0)
    options = parser.parse_args()
    head = " | ".join(f"{threads} threads" for threads in options.threads)
    print(f"| n | 1 thread, µs a pair | {head} | share of pairs | at once | bytes a pair |")
    print("|---" * (5 + len(options.threads)) + "|")
    for n in options.sizes:

        def of(threads: int, n: int = n) -> tuple[float, float, float]:
            machine = Machine(
                options.pair * 1e-6, 1e-9 / options.rate, options.wake * 1e-6, threads
            )
            return sweep(n, options.components, machine)

        alone, solving, read = of(1)
        ratios = " | ".join(f"{alone / of(threads)[0]:.1f}" for threads in options.threads)
        share = solving / alone
        micro = options.pair / share
        print(f"| {n} | {micro:.2f} | {ratios} | {share:.0%} | {together(n)} | {read:.0f} |")


if __name__ == "__main__":
    main()
