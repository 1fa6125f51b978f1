"""
Embedding a knowledge graph
===========================

WN18RR has 40,943 words and 11 relations between them. The densest part of WN18RR trains in
seconds. ``dense_core`` finds it by removing the entity of least degree until 208 are left:
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import orthobcd as ob

data = Path(os.environ.get("ORTHOBCD_DATA", "data"))
files = [data / f"wn18rr_{split}.tsv.gz" for split in ("train", "valid", "test")]
core, entities, relations = ob.kg.dense_core(np.concatenate(ob.kg.load_triples(*files).splits), 208)
core = core[np.random.default_rng(0).permutation(len(core))]
train, test = core[:569], core[569:]

# %%
# :doc:`UltraE </knowledge-graphs>` moves the isometry of every relation by J-JOBCD, or by
# VR-J-JOBCD, whose gradients have less variance. As a control the isometries stay at I:

curves, models = {}, {}
for rule in ("jobcd", "page-jobcd", "frozen"):
    model = ob.kg.UltraE(dim=36, relations=rule, max_epochs=120)
    mrr = {}

    def look(event, model=model, mrr=mrr):
        if event["epoch"] % 10 == 0:
            mrr[int(event["epoch"])] = model.rank(test).mrr

    models[rule], curves[rule] = model.fit(train, known=test, callback=look), mrr
    ranking = model.rank(test)
    figures = f"MRR {ranking.mrr:.3f}, Hits@10 {ranking.hits(10):.3f}"
    print(f"{rule:10} {figures}, mean rank {ranking.mean_rank:.1f}")

# %%
# Ranks are *filtered*: other entities that complete a known triple do not count against the true
# one. Known are the triples of ``fit``, and those of ``known``.

names = {"jobcd": "J-JOBCD", "page-jobcd": "VR-J-JOBCD", "frozen": "relations stay at I"}
figure, (by_epoch, by_second) = plt.subplots(
    1, 2, figsize=(8.5, 3.4), sharey=True, layout="constrained"
)
for rule, mrr in curves.items():
    epochs = np.array(list(mrr))
    seconds = np.cumsum(models[rule].history_["seconds"])[epochs - 1]
    for ax, at in ((by_epoch, epochs), (by_second, seconds)):
        ax.plot(at, list(mrr.values()), marker="o", markersize=3, label=names[rule])
by_epoch.set(xlabel="epoch", ylabel="filtered MRR of the test triples", ylim=0)
by_second.set(xlabel="seconds of training")
by_epoch.legend(frameon=False)
