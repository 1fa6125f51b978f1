"""UltraE on cores of WN18RR, FB15k and FB15k-237 and on the whole graphs, against its controls.

    python scripts/ultra_e.py core [--graph wn18rr] [--epochs 120] [--seeds 3]
    python scripts/ultra_e.py whole [--graph wn18rr] [--seeds 3] [--minutes 120] [--checkpoint FILE]

``core`` prints test MRR and Hits for every seed and rule, with seconds per epoch. The core of
WN18RR has 208 entities, 813 triples and 4 relations: the entity of least degree (ties: the larger
number) is removed repeatedly. ``default_rng(0).permutation`` splits its triples 569/244. The core
of FB15k-237 takes the fewest entities of highest degree (ties: the smaller number first) of which
135 have a triple of the 22 commonest relations among them. Of these triples the permutation draws
1027, the size of the JOBCD paper's FB15k batch, and splits them 719/308; they have 127 entities and
22 relations. The core of FB15k follows the same rule from the 505,436 available triples (its
training triples are not complete). ``--paper`` takes the paper's space and loss (half of the signs
-1, radius 1, logistic). The data folder is ORTHOBCD_DATA.

``whole`` trains on a whole graph with the settings ``WHOLE``, at most ``--minutes`` processor
minutes per seed, and ranks the test triples with the model of the best validation MRR. Options of
the model on the command line override ``WHOLE`` and, in ``core``, the defaults.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import orthobcd as ob
from orthobcd_bench.baselines import CsdmUltraE

DATA = Path(
    os.environ.get("ORTHOBCD_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")
)


Core = tuple[np.ndarray, np.ndarray, int, int]
"""Training triples, test triples, number of entities, number of relations."""


def splits(graph: str) -> tuple[np.ndarray, ...]:
    """Training, validation and test triples of a whole graph."""
    train = "train_partial" if graph == "fb15k" else "train"
    files = (DATA / f"{graph}_{name}.tsv.gz" for name in (train, "valid", "test"))
    return ob.kg.load_triples(*files, ids=True).splits


def wn18rr_core(size: int = 208) -> Core:
    """The core of WN18RR."""
    core, entities, relations = ob.kg.dense_core(np.concatenate(splits("wn18rr")), size)
    order = np.random.default_rng(0).permutation(len(core))
    core = core[order]
    cut = round(0.7 * len(core))
    return core[:cut], core[cut:], len(entities), len(relations)


def fb15k_core(graph: str, sizes: tuple[int, int, int, int] = (719, 308, 135, 22)) -> Core:
    """The core of FB15k or FB15k-237, near the sizes (train, test, entities, relations)."""
    n_train, n_test, n_entities, n_relations = sizes
    triples = np.concatenate(splits(graph))
    degrees = np.bincount(triples[:, [0, 2]].ravel())
    place = np.argsort(np.argsort(-degrees, kind="stable"))
    last = place[triples[:, [0, 2]]].max(axis=1)
    for count in range(n_entities, len(degrees)):
        core = triples[last < count]
        common = np.argsort(-np.bincount(core[:, 1]), kind="stable")[:n_relations]
        core = core[np.isin(core[:, 1], common)]
        if len(np.unique(core[:, [0, 2]])) >= n_entities:
            break
    core = core[np.random.default_rng(0).permutation(len(core))[: n_train + n_test]]
    entities, ends = np.unique(core[:, [0, 2]], return_inverse=True)
    relations, kinds = np.unique(core[:, 1], return_inverse=True)
    ends = ends.reshape(-1, 2)
    core = np.stack([ends[:, 0], kinds.ravel(), ends[:, 1]], axis=1)
    return core[:n_train], core[n_train:], len(entities), len(relations)


CORES: dict[str, Callable[[], Core]] = {
    "wn18rr": wn18rr_core,
    "fb15k": partial(fb15k_core, "fb15k"),
    "fb15k237": partial(fb15k_core, "fb15k237"),
}
OPTIONS: dict[str, type] = {
    "dim": int,
    "batch_size": int,
    "n_negatives": int,
    "learning_rate": float,
    "rate_decay": float,
    "moment_decay": float,
    "weight_decay": float,
    "init_scale": float,
    "relation_curvature": float,
    "relation_matchings": int,
    "relation_step": float,
    "relation_angle": float,
}
"""Options of the model that the command line takes, by their names."""

RULES = ["jobcd", "page-jobcd", "csdm", "csdm-givens", "frozen"]
PAPER = {"signature": [1] * 18 + [-1] * 18, "radius": 1.0, "loss": "logistic"}


def given(args: argparse.Namespace) -> dict[str, Any]:
    """The options of the model that are given on the command line."""
    return {name: getattr(args, name) for name in OPTIONS if getattr(args, name) is not None}


def embedding(rule: str, entities: int, relations: int, options: dict[str, Any]) -> ob.kg.UltraE:
    """The model whose relations follow a rule of `RULES`; CSDM is a baseline in NumPy."""
    options = {**options, "n_entities": entities, "n_relations": relations}
    if not rule.startswith("csdm"):
        return ob.kg.UltraE(**options, relations=rule)
    step = options.pop("relation_step", 0.1)
    return CsdmUltraE("givens" if rule.endswith("givens") else "full", step, **options)


def run_core(args: argparse.Namespace) -> None:
    train, test, entities, relations = CORES[args.graph]()
    print(f"train {len(train)}, test {len(test)}, entities {entities}, relations {relations}")
    known = np.concatenate([train, test])
    shown = sorted({60, args.epochs})
    for rule in args.relations:
        rankings: list[dict[int, ob.kg.Ranking]] = []
        seconds: list[float] = []
        for seed in range(args.seeds):
            paper = PAPER if args.paper else {}
            options = {**paper, **given(args), "seed": seed, "max_epochs": args.epochs}
            model = embedding(rule, entities, relations, options)
            points: dict[int, ob.kg.Ranking] = {}

            def look(event: dict[str, float], model=model, points=points) -> None:
                if int(event["epoch"]) in shown:
                    points[int(event["epoch"])] = model.rank(test, known)

            model.fit(train, callback=look)
            rankings.append(points)
            seconds.append(float(model.history_["seconds"].mean()))
            ranks = "  ".join(f"@{e}: {points[e]!r}" for e in points)
            print(f"{rule:7s} seed {seed}  {ranks}  {seconds[-1]:.4f} s/epoch", flush=True)
        for epoch in rankings[0]:
            at = [points[epoch].mrr for points in rankings]
            hits = [[points[epoch].hits(k) for k in (1, 3, 10)] for points in rankings]
            print(
                f"{rule:7s} mean MRR @{epoch}: {np.mean(at):.4f} (min {min(at):.4f}), "
                f"Hits@1/3/10 {'/'.join(f'{h:.3f}' for h in np.mean(hits, axis=0))}, "
                f"{np.mean(seconds):.4f} s/epoch",
                flush=True,
            )


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
"""The settings of ``whole``, chosen on the validation triples."""


def run_whole(args: argparse.Namespace) -> None:
    train, valid, test = splits(args.graph)
    options = {**WHOLE[args.graph], **given(args)}
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
    parser.add_argument("what", choices=["core", "whole"])
    parser.add_argument("--graph", choices=list(CORES), default="wn18rr")
    parser.add_argument("--paper", action="store_true")
    parser.add_argument("--epochs", type=int, help="by default 120, or that of WHOLE")
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--checkpoint")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--relations", nargs="+", default=RULES)
    parser.add_argument("--first", type=int, default=0, help="first seed of whole")
    for name, kind in OPTIONS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind)
    args = parser.parse_args()
    if args.what == "core":
        args.epochs = args.epochs or 120
        run_core(args)
    else:
        run_whole(args)


if __name__ == "__main__":
    main()
