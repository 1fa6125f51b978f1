"""UltraE on WN18RR's core and on FB15k-237: quality and time, against the two controls.

    python scripts/ultra_e.py core [--epochs 120] [--seeds 3] [--relations jobcd ...] [--out DIR]
    python scripts/ultra_e.py select [--epochs 120]
    python scripts/ultra_e.py fb15k237 [--epochs 1] [--batch 512]

``core`` peels the entity of least degree (ties: the larger number) from all of WN18RR until 208 are
left (813 triples, 4 relations), splits them 569/244 by ``default_rng(0).permutation``, and prints
test MRR and Hits at 60 and 120 epochs for every seed and rule, with seconds per epoch. ``--out``
adds the curves as JSON. The data folder is ORTHOBCD_DATA.

``select`` chooses J-JOBCD's κ and matchings and CSDM's step without the test triples and on other
seeds: the last fifth of the training triples validates models of the rest, seeds 100, 101, 102.
Then it prints the test MRR of models of all training triples, seeds 10, 11, 12.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np

import orthobcd as ob

DATA = Path(
    os.environ.get("ORTHOBCD_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")
)


def wn18rr_core(data: Path = DATA, size: int = 208) -> tuple[np.ndarray, np.ndarray, int, int]:
    """(train, test, entities, relations) of the core of WN18RR."""
    splits = ob.load_triples(
        *(data / f"wn18rr_{name}.tsv.gz" for name in ("train", "valid", "test"))
    ).splits
    core, entities, relations = ob.dense_core(np.concatenate(splits), size)
    order = np.random.default_rng(0).permutation(len(core))
    core = core[order]
    cut = round(0.7 * len(core))
    return core[:cut], core[cut:], len(entities), len(relations)


def run_core(args: argparse.Namespace) -> None:
    train, test, entities, relations = wn18rr_core()
    print(f"train {len(train)}, test {len(test)}, entities {entities}, relations {relations}")
    known = np.concatenate([train, test])
    curves = []
    for rule in args.relations:
        for seed in range(args.seeds):
            model = ob.UltraE(
                entities,
                relations,
                36,
                relations=rule,
                max_epochs=args.epochs,
                seed=seed,
                relation_curvature=args.curvature,
                relation_matchings=args.matchings,
                relation_step=args.step,
                init_scale=args.scale,
                learning_rate=args.rate,
            )
            points: dict[int, ob.Ranking] = {}

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
        (out / "ultra_e_core.json").write_text(json.dumps(curves))


CHOICES: dict[str, list[dict[str, float]]] = {
    "jobcd": [{"relation_curvature": c} for c in (0.03, 0.05, 0.07, 0.1, 0.14, 0.2, 0.3)]
    + [{"relation_curvature": c, "relation_matchings": 2} for c in (0.14, 0.2)],
    "csdm": [{"relation_step": s} for s in (0.01, 0.02, 0.05, 0.07, 0.1, 0.2, 0.4)],
    "frozen": [{}],
}
"""The settings that ``select`` compares."""


def run_select(args: argparse.Namespace) -> None:
    train, test, entities, relations = wn18rr_core()
    cut = round(0.8 * len(train))
    print(f"fit {cut}, validation {len(train) - cut}, test {len(test)}")

    def mrr(
        rule: str, choice: dict[str, float], part: np.ndarray, held: np.ndarray, seed: int
    ) -> tuple[float, float]:
        model = ob.UltraE(
            entities, relations, 36, relations=rule, max_epochs=args.epochs, seed=seed, **choice
        )
        model.fit(part)
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


def run_fb15k237(args: argparse.Namespace) -> None:
    files = (DATA / f"fb15k237_{name}.tsv.gz" for name in ("train", "valid", "test"))
    graph = ob.load_triples(
        *files,
        entities=DATA / "fb15k237_entities.txt.gz",
        relations=DATA / "fb15k237_relations.txt.gz",
    )
    train, valid, test = graph.splits
    model = ob.UltraE(
        len(graph.entities),
        len(graph.relations),
        36,
        batch_size=args.batch,
        relations=args.relations[0],
        max_epochs=args.epochs,
        valid_every=1,
        init_scale=args.scale,
        learning_rate=args.rate,
        verbose=True,
    )
    started = time.perf_counter()
    model.fit(train, valid, known=test)
    print(f"train {len(train)} triples, {time.perf_counter() - started:.1f} s in all")
    for name in ("seconds", "loss", "valid_mrr", "valid_seconds"):
        print(f"{name}: {model.history_[name]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["core", "select", "fb15k237"])
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--relations", nargs="+", default=None)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--curvature", type=float, default=0.14)
    parser.add_argument("--matchings", type=int, default=1)
    parser.add_argument("--step", type=float, default=0.1)
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument("--out")
    args = parser.parse_args()
    if args.what == "core":
        args.epochs = args.epochs or 120
        args.relations = args.relations or ["jobcd", "frozen", "csdm"]
        run_core(args)
    elif args.what == "select":
        args.epochs = args.epochs or 120
        run_select(args)
    else:
        args.epochs = args.epochs or 1
        args.relations = args.relations or ["jobcd"]
        run_fb15k237(args)


if __name__ == "__main__":
    main()
