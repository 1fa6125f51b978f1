use super::*;
use ndarray::Array2;
use rand::SeedableRng;

struct Unscored;

impl Scores for Unscored {
    fn subgradients(&mut self) -> ArrayView2<'_, f64> {
        unreachable!()
    }

    fn products(&mut self, _: usize, _: usize) -> ([f64; 4], [f64; 3]) {
        unreachable!()
    }
}

#[test]
fn a_cycle_holds_every_set_of_rows_once_in_lexicographic_order() {
    for (n, k, count) in [(7, 2, 21), (7, 3, 35), (7, 4, 35), (6, 5, 6), (5, 5, 1)] {
        assert_eq!(blocks(n, k), Some(count));
        let mut schedule = Schedule::new(WorkingSet::Cyclic, n, k, 64);
        let (mut visit, x) = (Visit::default(), Array2::<f64>::eye(n));
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(0);
        let mut cycle = || -> Vec<Vec<usize>> {
            (0..count)
                .map(|_| {
                    schedule.next(&mut visit, x.view(), &mut rng, &mut Unscored, 0.0, 0.0);
                    [visit.lead.as_slice(), &visit.rest].concat()
                })
                .collect()
        };
        let first = cycle();
        assert!(first.iter().all(|rows| rows.len() == k && rows[k - 1] < n));
        assert!(first.iter().all(|rows| rows.windows(2).all(|w| w[0] < w[1])));
        assert!(first.windows(2).all(|w| w[0] < w[1]));
        assert_eq!(cycle(), first);
    }
}

/// Every pair meets once in a sweep, and only the tiles of one round are listed at a time.
#[test]
fn a_sweep_is_laid_round_by_round() {
    for (n, nonzero, tile, together) in [(90, 90, 4, 2), (90, 7, 4, 2), (33, 12, 8, 1), (64, 1, 2, 4)] {
        let x = Array2::from_shape_fn((n, 2), |(i, _)| f64::from(u8::from(i < nonzero)));
        let mut schedule = Schedule::new(WorkingSet::Tiled, n, 2, tile);
        let (mut visit, mut rng) = (Visit::default(), Xoshiro256PlusPlus::seed_from_u64(0));
        let mut met = vec![0; n * n];
        while schedule.ended().is_none() {
            schedule.next(&mut visit, x.view(), &mut rng, &mut Unscored, 0.0, 0.0);
            let (lead, rest) = (&visit.lead, &visit.rest);
            let groups = n.div_ceil(INNER_TILES * tile / 2) + 1;
            assert!(schedule.tiles.order.len() <= groups, "{n} {nonzero} {tile}");
            let (rows, most) = (lead.len() + rest.len(), INNER_TILES * tile);
            assert!(rows <= most, "{n} {nonzero} {tile}");
            assert_eq!(visit.inner.is_some(), rows > tile, "{n} {nonzero} {tile}");
            let inner = InnerTiles { half: tile.div_ceil(2), together };
            assert!(visit.inner.is_none_or(|tiles| tiles == inner), "{n} {nonzero} {tile}");
            let inside = lead.iter().flat_map(|&i| lead.iter().map(move |&j| (i, j)));
            let across = lead.iter().flat_map(|&i| rest.iter().map(move |&j| (i, j)));
            let pairs: Vec<(usize, usize)> = match visit.pairs {
                None => vec![],
                Some(Pairs::All) => inside.filter(|(i, j)| i < j).collect(),
                Some(Pairs::Cross) => across.collect(),
            };
            pairs.iter().for_each(|&(i, j)| met[i.min(j) * n + i.max(j)] += 1);
        }
        for (i, j) in (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))) {
            // Zero rows never share groups with nonzero rows, and do not meet each other.
            let expected = usize::from(i < nonzero);
            assert_eq!(met[i * n + j], expected, "{n} {nonzero} {tile} {i} {j}");
        }
    }
}

/// The score |S_ij| of a pair is the entry of a table.
struct Table(Vec<f64>, usize);

impl Table {
    fn score(&self, i: usize, j: usize) -> f64 {
        self.0[i.min(j) * self.1 + i.max(j)]
    }
}

impl Scores for Table {
    fn subgradients(&mut self) -> ArrayView2<'_, f64> {
        ArrayView2::from_shape((0, 0), &[]).unwrap()
    }

    fn products(&mut self, i: usize, j: usize) -> ([f64; 4], [f64; 3]) {
        assert!(i < j);
        ([0.0, 0.0, self.score(i, j), 0.0], [0.0; 3])
    }
}

fn choose(schedule: &mut Schedule, visit: &mut Visit, rng: &mut Xoshiro256PlusPlus, table: &mut Table) -> Vec<usize> {
    let x = Array2::<f64>::zeros((table.1, 1));
    schedule.next(visit, x.view(), rng, table, 0.0, 0.0);
    [visit.lead.as_slice(), &visit.rest].concat()
}

/// A sample is one row with p different partners; while nothing moves, its pairs come in decreasing order of
/// score. Every row gets its turn.
#[test]
fn the_greedy_rule_follows_the_scores_of_one_row_until_a_pair_moves() {
    let (n, mut rng) = (30, Xoshiro256PlusPlus::seed_from_u64(1));
    for p in [1, 5, SCORED_PAIRS, n - 1, n + 7] {
        let scores = (0..n * n).map(|_| rng.random_range(0.0..1.0)).collect();
        let mut table = Table(scores, n);
        let mut schedule = Schedule::new(WorkingSet::WssSv, n, 2, 64).scoring(Some(p));
        let (mut visit, mut turns) = (Visit::default(), vec![0; n]);
        for sample in 0..400 {
            let length = if sample % 2 == 0 { p.min(n - 1) } else { 1 + sample % p.min(n - 1) };
            let pairs: Vec<Vec<usize>> =
                (0..length).map(|_| choose(&mut schedule, &mut visit, &mut rng, &mut table)).collect();
            visit.moved = length < p.min(n - 1);
            assert!(pairs.windows(2).all(|w| table.score(w[0][0], w[0][1]) >= table.score(w[1][0], w[1][1])));
            let common: Vec<usize> = (0..n).filter(|row| pairs.iter().all(|pair| pair.contains(row))).collect();
            assert_eq!(common.len(), if length == 1 { 2 } else { 1 }, "{pairs:?}");
            let mut partners: Vec<usize> = pairs.concat();
            partners.retain(|row| *row != common[0]);
            partners.sort_unstable();
            partners.dedup();
            assert_eq!(partners.len(), length);
            // Of a single pair either row may be the one that was drawn.
            turns[common[0]] += usize::from(length > 1);
        }
        assert!(p == 1 || turns.iter().all(|&turns| turns > 0), "{turns:?}");
    }
}

/// Where all scores are 0, all pairs are equally likely.
#[test]
fn the_greedy_rule_is_uniform_where_all_scores_are_zero() {
    let (n, visits) = (6, 15_000);
    let mut table = Table(vec![0.0; n * n], n);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
    let mut schedule = Schedule::new(WorkingSet::WssOr, n, 2, 64);
    let (mut visit, mut seen) = (Visit::default(), vec![0; n * n]);
    for _ in 0..visits {
        visit.moved = true;
        let rows = choose(&mut schedule, &mut visit, &mut rng, &mut table);
        seen[rows[0].min(rows[1]) * n + rows[0].max(rows[1])] += 1;
    }
    let expected = f64::from(visits) / 15.0;
    for (i, j) in (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))) {
        let deviation = (f64::from(seen[i * n + j]) - expected).abs();
        assert!(deviation < 5.0 * expected.sqrt(), "({i}, {j}): {}", seen[i * n + j]);
    }
}

#[test]
fn cycles_end() {
    assert_eq!(blocks(392, 3), Some(9_962_680));
    assert_eq!(blocks(393, 3), None);
    assert_eq!(blocks(393, 391), Some(77_028));
    assert_eq!(blocks(100_000, 50_000), None);
}
