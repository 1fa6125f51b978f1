"""UltraE on the whole graphs WN18RR and FB15k-237.

    python scripts/ultra_e.py [--graph wn18rr] [--seeds 3] [--minutes 120] [--checkpoint FILE]

trains with the settings ``WHOLE``, at most ``--minutes`` processor minutes per seed, and ranks the
test triples with the model of the best validation MRR. The data folder is ORTHOBCD_DATA.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np

import orthobcd as ob

DATA = Path(
    os.environ.get("ORTHOBCD_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")
)


def splits(graph: str) -> tuple[np.ndarray, ...]:
    """Training, validation and test triples of a whole graph."""
    files = (DATA / f"{graph}_{name}.tsv.gz" for name in ("train", "valid", "test"))
    return ob.kg.load_triples(*files, ids=True).splits


WHOLE: dict[str, dict[str, Any]] = {
    "wn18rr": {
        "dim": 128,
        "batch_size": 128,
        "n_negatives": 128,
        "relations": "jobcd-pairs",
        "relation_matchings": 40,
        "relation_step": 0.05,
        "relation_angle": 2.0,
        "learning_rate": 0.02,
        "rate_decay": 0.98,
        "moment_decay": 0.97,
        "weight_decay": 1.8,
        "max_epochs": 100,
        "valid_every": 10,
    },
    "fb15k237": {
        "dim": 128,
        "batch_size": 512,
        "n_negatives": 256,
        "relations": "jobcd-pairs",
        "relation_matchings": 8,
        "relation_step": 0.05,
        "learning_rate": 0.01,
        "rate_decay": 0.94,
        "moment_decay": 0.98,
        "weight_decay": 0.6,
        "max_epochs": 40,
        "valid_every": 5,
    },
}
"""Settings that are chosen on the validation triples."""


def run(args: argparse.Namespace) -> None:
    """Trains and ranks for each seed; prints the means."""
    train, valid, test = splits(args.graph)
    options = dict(WHOLE[args.graph])
    if args.epochs is not None:
        options["max_epochs"] = args.epochs
    figures = []
    for seed in range(args.first, args.first + args.seeds):
        model = ob.kg.UltraE(**options, seed=seed)
        start = time.process_time()

        def look(event: dict[str, float], seed=seed, start=start) -> bool:
            spent = time.process_time() - start
            if "valid_mrr" in event:
                print(
                    f"seed {seed}, epoch {event['epoch']:.0f}, {spent:.0f} processor seconds, "
                    f"loss {event['loss']:.4f}, validation MRR {event['valid_mrr']:.4f}",
                    flush=True,
                )
            return spent > 60 * args.minutes

        path = args.checkpoint and f"{args.checkpoint}.{seed}.npz"
        model.fit(train, valid, known=test, callback=look, checkpoint=path, checkpoint_every=5)
        spent = time.process_time() - start
        ranking = model.rank(test)
        best = np.nanmax(model.history_["valid_mrr"], initial=0.0)
        figures.append([best, ranking.mrr, *(ranking.hits(k) for k in (1, 3, 10))])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"seed {seed}, {model.n_epochs_} epochs (best {model.best_epoch_}), "
            f"{model.history_['seconds'].mean():.2f} s an epoch, {spent:.0f} processor seconds, "
            f"validation MRR {best:.4f}, test {ranking!r}, peak {peak:.2f} GiB",
            flush=True,
        )
    names = ("validation MRR", "test MRR", "Hits@1", "Hits@3", "Hits@10")
    for name, values in zip(names, np.transpose(figures), strict=True):
        print(f"{name}: mean {values.mean():.4f}, {values.min():.4f} to {values.max():.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", choices=list(WHOLE), default="wn18rr")
    parser.add_argument("--epochs", type=int, help="by default that of WHOLE")
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--checkpoint")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
