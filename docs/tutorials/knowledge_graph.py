"""UltraE on the densest part of WN18RR, against its two controls."""

# [start:data]
import os
from pathlib import Path

import numpy as np

import orthobcd as ob

data = Path(os.environ.get("ORTHOBCD_DATA", "../shared/data"))
files = [data / f"wn18rr_{split}.tsv.gz" for split in ("train", "valid", "test")]
core, entities, relations = ob.kg.dense_core(np.concatenate(ob.kg.load_triples(*files).splits), 208)
core = core[np.random.default_rng(0).permutation(len(core))]
train, test = core[:569], core[569:]
# [end:data]

# [start:fit]
curves, models = {}, {}
for rule in ("jobcd", "csdm", "frozen"):
    model = ob.kg.UltraE(dim=36, relations=rule, max_epochs=120)
    mrr = {}

    def look(event, model=model, mrr=mrr):
        if event["epoch"] % 10 == 0:
            mrr[int(event["epoch"])] = model.rank(test).mrr

    models[rule], curves[rule] = model.fit(train, known=test, callback=look), mrr
    ranking = model.rank(test)
    figures = f"MRR {ranking.mrr:.3f}, Hits@10 {ranking.hits(10):.3f}"
    print(f"{rule:7} {figures}, mean rank {ranking.mean_rank:.1f}")
# [end:fit]

# [start:plot]
from matplotlib.figure import Figure  # noqa: E402

names = {"jobcd": "J-JOBCD", "csdm": "CSDM, full rotations", "frozen": "relations stay at I"}
figure = Figure(figsize=(8.5, 3.4), layout="constrained")
by_epoch, by_second = figure.subplots(1, 2, sharey=True)
for rule, mrr in curves.items():
    epochs = np.array(list(mrr))
    seconds = np.cumsum(models[rule].history_["seconds"])[epochs - 1]
    for ax, at in ((by_epoch, epochs), (by_second, seconds)):
        ax.plot(at, list(mrr.values()), marker="o", markersize=3, label=names[rule])
by_epoch.set(xlabel="epoch", ylabel="filtered MRR of the test triples", ylim=0)
by_second.set(xlabel="seconds of training")
by_epoch.legend(frameon=False)
# [end:plot]

final = {rule: mrr[120] for rule, mrr in curves.items()}
assert final["jobcd"] > 0.6
assert final["jobcd"] > final["frozen"] + 0.1


def save(folder: Path) -> None:
    """Write the figure of the page."""
    figure.savefig(folder / "ultra-e-mrr.png", dpi=110)
