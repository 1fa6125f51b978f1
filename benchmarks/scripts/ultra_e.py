"""UltraE on cores of WN18RR, FB15k and FB15k-237 and on the whole graphs, against its controls.

    python scripts/ultra_e.py core [--graph wn18rr] [--epochs 120] [--seeds 3] [--out DIR]
    python scripts/ultra_e.py curves [--graph wn18rr] [--epochs 120] [--seeds 3] --out DIR
    python scripts/ultra_e.py select [--graph wn18rr] [--epochs 120]
    python scripts/ultra_e.py whole [--graph wn18rr] [--seeds 3] [--minutes 120] [--checkpoint FILE]

``core`` prints test MRR and Hits for every seed and rule, with seconds per epoch; ``--out`` adds
the runs as JSON. The core of WN18RR has 208 entities, 813 triples and 4 relations: the entity of
least degree (ties: the larger number) is removed repeatedly. ``default_rng(0).permutation`` splits
its triples 569/244. The core of FB15k-237 takes the fewest entities of highest degree (ties: the
smaller number first) of which 135 have a triple of the 22 commonest relations among them. Of these
triples the permutation draws 1027, the size of the JOBCD paper's FB15k batch, and splits them
719/308; they have 127 entities and 22 relations. The core of FB15k follows the same rule from the
505,436 available triples (its training triples are not complete).

``curves`` runs all rules, stores the runs and draws loss, MRR and Hits per epoch and per second.
``--paper`` takes the paper's space and loss (half of the signs -1, radius 1, logistic). The data
folder is ORTHOBCD_DATA.

``select`` chooses the step of every rule without the test triples and on other seeds: the last
fifth of the training triples validates models of the others, seeds 100, 101, 102. Then ``select``
prints the test MRR of models of all training triples, seeds 10, 11, 12.

``whole`` trains on a whole graph with the settings ``WHOLE``, at most ``--minutes`` processor
minutes per seed, and ranks the test triples with the model of the best validation MRR. Options of
the model on the command line override ``WHOLE`` and, in ``core``, the defaults.
"""

from __future__ import annotations

import argparse
import json
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
    curves = []
    for rule in args.relations:
        for seed in range(args.seeds):
            paper = PAPER if args.paper else {}
            options = {**paper, **given(args), "seed": seed, "max_epochs": args.epochs}
            model = embedding(rule, entities, relations, options)
            points: dict[int, ob.kg.Ranking] = {}

            def look(event: dict[str, float], model=model, points=points) -> None:
                epoch = int(event["epoch"])
                if epoch % args.every == 0 or epoch in (60, args.epochs):
                    points[epoch] = model.rank(test, known)

            model.fit(train, callback=look)
            seconds = np.cumsum(model.history_["seconds"])
            curves.append(
                {
                    "relations": rule,
                    "seed": seed,
                    "epoch": list(points),
                    "mrr": [r.mrr for r in points.values()],
                    "hits": [[r.hits(k) for k in (1, 3, 10)] for r in points.values()],
                    "seconds": [float(seconds[e - 1]) for e in points],
                    "seconds_per_epoch": float(model.history_["seconds"].mean()),
                    "loss": model.history_["loss"].tolist(),
                }
            )
            shown = "  ".join(
                f"@{e}: {points[e]!r}" for e in sorted({60, args.epochs} & set(points))
            )
            print(
                f"{rule:7s} seed {seed}  {shown}  {model.history_['seconds'].mean():.4f} s/epoch",
                flush=True,
            )
        mine = [c for c in curves if c["relations"] == rule]
        for epoch in (60, args.epochs):
            if all(epoch in c["epoch"] for c in mine):
                at = [c["mrr"][c["epoch"].index(epoch)] for c in mine]
                hits = np.mean([c["hits"][c["epoch"].index(epoch)] for c in mine], axis=0)
                print(
                    f"{rule:7s} mean MRR @{epoch}: {np.mean(at):.4f} (min {min(at):.4f}), "
                    f"Hits@1/3/10 {hits[0]:.3f}/{hits[1]:.3f}/{hits[2]:.3f}, "
                    f"{np.mean([c['seconds_per_epoch'] for c in mine]):.4f} s/epoch",
                    flush=True,
                )
    if args.out:
        out = Path(args.out)
        out.mkdir(parents=True, exist_ok=True)
        (out / stored(args)).write_text(json.dumps(curves))


def stored(args: argparse.Namespace) -> str:
    """The file of the runs on a core."""
    return f"ultra_e_{args.graph}{'_paper' if args.paper else ''}.json"


NAMES = {
    "jobcd": "J-JOBCD",
    "jobcd-pairs": "J-JOBCD, a curvature per pair",
    "page-jobcd": "VR-J-JOBCD (PAGE)",
    "csdm": "CSDM, full rotations",
    "csdm-givens": "CSDM, Givens rotations",
    "frozen": "relations stay at I",
}


def run_curves(args: argparse.Namespace) -> None:
    run_core(args)
    draw(args)


def draw(args: argparse.Namespace) -> None:
    """Draw loss, MRR and Hits per epoch and per second: means and ranges over the seeds."""
    from matplotlib.figure import Figure

    runs = json.loads((Path(args.out) / stored(args)).read_text())
    figure = Figure(figsize=(13, 6), layout="constrained")
    axes = figure.subplots(2, 4)
    for rule in dict.fromkeys(run["relations"] for run in runs):
        mine = [run for run in runs if run["relations"] == rule]
        epochs = np.array(mine[0]["epoch"])
        seconds = np.mean([run["seconds"] for run in mine], axis=0)
        values = [np.array([np.array(run["loss"])[epochs - 1] for run in mine])]
        values.append(np.array([run["mrr"] for run in mine]))
        values += [np.array([run["hits"] for run in mine])[:, :, k] for k in (0, 2)]
        for row, x in zip(axes, (epochs, seconds), strict=True):
            for ax, y in zip(row, values, strict=True):
                line = ax.plot(x, y.mean(axis=0), label=NAMES[rule])[0]
                ax.fill_between(x, y.min(axis=0), y.max(axis=0), color=line.get_color(), alpha=0.2)
    for row, unit in zip(axes, ("epoch", "seconds of training"), strict=True):
        for ax, name in zip(row, ("loss", "MRR", "Hits@1", "Hits@10"), strict=True):
            ax.set(xlabel=unit, title=name)
    lines, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncols=len(names), frameon=False)
    figure.savefig(Path(args.out) / stored(args).replace(".json", ".png"), dpi=90)


CURVATURES = (0.05, 0.1, 0.14, 0.2, 0.3, 0.4, 0.6, 0.9)
STEPS = (0.01, 0.02, 0.05, 0.07, 0.1, 0.2, 0.4)
CHOICES: dict[str, list[dict[str, float]]] = {
    "jobcd": [{"relation_curvature": c} for c in CURVATURES]
    + [{"relation_curvature": c, "relation_matchings": 2} for c in (0.14, 0.2)],
    "jobcd-pairs": [
        {"relation_step": s, "relation_matchings": m} for m in (1, 6) for s in STEPS[2:]
    ],
    "page-jobcd": [{"relation_curvature": c} for c in CURVATURES],
    "csdm": [{"relation_step": s} for s in STEPS],
    "csdm-givens": [{"relation_step": s} for s in STEPS],
    "frozen": [{}],
}
"""The settings that ``select`` compares."""


def run_select(args: argparse.Namespace) -> None:
    train, test, entities, relations = CORES[args.graph]()
    cut = round(0.8 * len(train))
    print(f"fit {cut}, validation {len(train) - cut}, test {len(test)}")

    def mrr(
        rule: str, choice: dict[str, float], part: np.ndarray, held: np.ndarray, seed: int
    ) -> tuple[float, float]:
        paper = PAPER if args.paper else {}
        options = {**paper, **choice, "seed": seed, "max_epochs": args.epochs}
        model = embedding(rule, entities, relations, options).fit(part)
        known = np.concatenate([part, held])
        return model.rank(held, known).mrr, float(model.history_["seconds"].mean())

    for rule, choices in CHOICES.items():
        means = []
        for choice in choices:
            values = [mrr(rule, choice, train[:cut], train[cut:], s)[0] for s in (100, 101, 102)]
            means.append(float(np.mean(values)))
            print(f"{rule:7s} {choice}: mean validation MRR {means[-1]:.4f}", flush=True)
        best = choices[int(np.argmax(means))]
        runs = [mrr(rule, best, train, test, seed) for seed in (10, 11, 12)]
        values, seconds = zip(*runs, strict=True)
        print(
            f"{rule:7s} chosen {best}: mean test MRR {np.mean(values):.4f} "
            f"({', '.join(f'{v:.4f}' for v in values)}), {np.mean(seconds):.4f} s/epoch",
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
    parser.add_argument("what", choices=["core", "curves", "select", "whole"])
    parser.add_argument("--graph", choices=list(CORES), default="wn18rr")
    parser.add_argument("--paper", action="store_true")
    parser.add_argument("--epochs", type=int, help="by default 120, or that of WHOLE")
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--checkpoint")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--relations", nargs="+", default=RULES)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="first seed of whole")
    for name, kind in OPTIONS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind)
    parser.add_argument("--out")
    args = parser.parse_args()
    if args.what != "whole" and args.epochs is None:
        args.epochs = 120
    if args.what == "curves" and not args.out:
        parser.error("--out must be given for curves")
    runs = {"core": run_core, "curves": run_curves, "select": run_select, "whole": run_whole}
    runs[args.what](args)


if __name__ == "__main__":
    main()
