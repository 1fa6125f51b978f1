"""`Ranking`: numbers of candidates, indices and tables."""

from __future__ import annotations

import numpy as np
import pytest

import orthobcd as ob

RELATIONS = ("follows", "mirrors")


@pytest.mark.parametrize("seed", range(5))
def test_candidates_by_counting(seed):
    from orthobcd.kg.ranking import candidates

    rng = np.random.default_rng(seed)
    n = 7
    triples, known = (rng.integers(0, [n, 2, n], (k, 3)) for k in (9, 40))
    for given in (known, known[:0], np.concatenate([known, triples, triples])):
        true = set(map(tuple, given.tolist()))
        for place in (0, 2):
            expected = []
            for row in triples.tolist():
                others = [e for e in range(n) if e != row[place]]
                completed = [(*row[:place], e, *row[place + 1 :]) for e in others]
                expected.append(1 + sum(triple not in true for triple in completed))
            assert candidates(triples, given, n, place).tolist() == expected


def ranking_of(ranks: np.ndarray, counts: np.ndarray, names: tuple | None = None) -> ob.kg.Ranking:
    half = len(ranks) // 2
    relations = np.arange(half) % 2
    return ob.kg.Ranking(ranks[:half], ranks[half:], counts[:half], counts[half:], relations, names)


def test_the_adjusted_index_is_1_for_first_0_for_random_and_at_least_minus_1():
    rng = np.random.default_rng(0)
    counts = rng.integers(2, 400, 20_000)
    first, last = np.ones(len(counts)), counts.astype(float)
    assert ranking_of(first, counts).adjusted_mean_rank_index == 1.0
    assert ranking_of(last, counts).adjusted_mean_rank_index == pytest.approx(-1.0)
    drawn = ranking_of(rng.integers(1, counts + 1).astype(float), counts)
    assert abs(drawn.adjusted_mean_rank_index) < 0.03
    # The formula is that of Berrendorf and coauthors, as in PyKEEN.
    expected = np.mean((counts + 1) / 2)
    index = 1 - (drawn.mean_rank - 1) / (expected - 1)
    assert drawn.adjusted_mean_rank_index == pytest.approx(index, rel=1e-12)
    assert np.isnan(ranking_of(first[:4], np.ones(4, int)).adjusted_mean_rank_index)
    assert np.isnan(ranking_of(first[:0], counts[:0]).mean_rank)


@pytest.mark.parametrize("names", [None, RELATIONS])
def test_tables_by_relation(names):
    rng = np.random.default_rng(1)
    counts = np.full(22, 50)
    ranking = ranking_of(rng.integers(1, 51, 22).astype(float), counts, names)
    parts = ranking.by_relation()
    assert list(parts) == list(names or (0, 1))
    sizes = {label: part.ranks.size for label, part in parts.items()}
    for measure in ("mrr", "mean_rank", "adjusted_mean_rank_index"):
        total = sum(sizes[label] * getattr(part, measure) for label, part in parts.items())
        assert total / 22 == pytest.approx(getattr(ranking, measure))
    lines = ranking.summary().splitlines()
    assert [line.split()[0] for line in lines] == ["relation", *map(str, parts), "all"]
    assert len({len(line) for line in lines}) == 1
    assert f"MR={ranking.mean_rank:.1f}" in repr(ranking)
    frame = ranking.to_frame().set_index("relation")
    assert frame.loc[next(iter(parts)), "hits_10"] == next(iter(parts.values())).hits(10)
