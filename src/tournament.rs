//! Round-robin tournaments: every two players meet once, and in a round no player meets two others, so
//! that the pairs of a round can move side by side.

use std::iter;

/// Which pairs of a block are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairs {
    /// All pairs.
    All,
    /// Only pairs of one row of the lead and one of the rest.
    Cross,
}

/// Returns the number of rounds in which any two of `players` meet once.
pub(crate) fn rounds(players: usize) -> usize {
    (players + players % 2).saturating_sub(1)
}

/// Returns the pairs that meet in `round`, by the circle method: player 0 stays, the others turn. If `players` is
/// odd, one pair contains the index `players`, a bye.
pub(crate) fn meetings(players: usize, round: usize) -> impl Iterator<Item = (usize, usize)> {
    let even = players + players % 2;
    let seat = move |k: usize| {
        if k == 0 { 0 } else { 1 + (k - 1 + round) % (even - 1) }
    };
    (0..even / 2).map(move |k| {
        let (a, b) = (seat(k), seat(even - 1 - k));
        (a.min(b), a.max(b))
    })
}

/// Returns rounds in which every one of `leads` players meets itself and every other one or, if there are `rests` others,
/// every one of those.
pub(crate) fn group_rounds(leads: usize, rests: usize) -> Vec<Vec<(usize, usize)>> {
    if rests == 0 {
        let own = iter::once((0..leads).map(|player| (player, player)).collect());
        let met = |round| meetings(leads, round).filter(|&(_, second)| second < leads).collect();
        return own.chain((0..rounds(leads)).map(met)).collect();
    }
    let (few, many) = (leads.min(rests), leads.max(rests));
    let met = |round: usize, player: usize| {
        let other = (player + round) % many;
        if leads <= rests { (player, other) } else { (other, player) }
    };
    (0..many).map(|round| (0..few).map(|player| met(round, player)).collect()).collect()
}

/// The pairs i < j among `order` that meet in a round; in round 0 these are neighbours.
pub(crate) fn matching(order: &[usize], round: usize) -> Vec<[usize; 2]> {
    let even = order.len() + order.len() % 2;
    // Seats 0, 1, … hold every other player, and those opposite them their neighbours.
    let at = |seat: usize| {
        let index = if seat < even / 2 { 2 * seat } else { 2 * (even - 1 - seat) + 1 };
        order.get(index).copied()
    };
    meetings(even, round)
        .filter_map(|(a, b)| {
            let (i, j) = (at(a)?, at(b)?);
            Some([i.min(j), i.max(j)])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tournament_holds_every_pair_once() {
        for n in [2usize, 3, 4, 7, 8] {
            let order: Vec<usize> = (0..n).rev().collect();
            let mut seen = vec![0; n * n];
            for round in 0..n + n % 2 - 1 {
                let mut busy = vec![false; n];
                for [i, j] in matching(&order, round) {
                    assert!(i < j && !busy[i] && !busy[j]);
                    (busy[i], busy[j]) = (true, true);
                    seen[i * n + j] += 1;
                }
            }
            for i in 0..n {
                for j in i + 1..n {
                    assert_eq!(seen[i * n + j], 1, "n = {n}: pair ({i}, {j})");
                }
            }
            let first: Vec<[usize; 2]> = order.chunks_exact(2).map(|p| [p[0].min(p[1]), p[0].max(p[1])]).collect();
            assert_eq!(matching(&order, 0), first);
        }
    }

    /// In a round no player meets two others.
    #[test]
    fn group_rounds_hold_every_pair_once() {
        for (leads, rests) in [(1, 0), (2, 0), (5, 0), (8, 0), (1, 1), (3, 7), (7, 3), (8, 8)] {
            let mut seen = vec![0; leads * leads.max(rests)];
            for round in group_rounds(leads, rests) {
                let mut busy = vec![false; leads + rests];
                for (a, b) in round {
                    let other = if rests == 0 { b } else { leads + b };
                    assert!(!std::mem::replace(&mut busy[a], true));
                    assert!(a == other || !std::mem::replace(&mut busy[other], true));
                    seen[a * leads.max(rests) + b] += 1;
                }
            }
            for (a, b) in (0..leads).flat_map(|a| (0..leads.max(rests)).map(move |b| (a, b))) {
                let expected = usize::from(if rests == 0 { a <= b } else { b < rests });
                assert_eq!(seen[a * leads.max(rests) + b], expected, "{leads} {rests}");
            }
        }
    }
}
