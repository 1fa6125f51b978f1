//! The open nodes of a best-first search.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Nodes by their bounds: the node of largest bound is the first, and of equal bounds the oldest.
pub(super) struct Open<T> {
    nodes: BTreeMap<(i64, Reverse<usize>), (f64, T)>,
    pushed: usize,
}

impl<T> Open<T> {
    pub(super) fn new() -> Self {
        Self { nodes: BTreeMap::new(), pushed: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the first node and its bound, which is the largest.
    pub(super) fn first(&self) -> Option<&(f64, T)> {
        self.nodes.last_key_value().map(|(_, first)| first)
    }

    pub(super) fn push(&mut self, bound: f64, node: T) {
        // The integers are ordered like the numbers, as in `f64::total_cmp`.
        let bits = bound.to_bits() as i64;
        let order = bits ^ (((bits >> 63) as u64) >> 1) as i64;
        self.nodes.insert((order, Reverse(self.pushed)), (bound, node));
        self.pushed += 1;
    }

    /// Takes the first node.
    pub(super) fn pop(&mut self) -> Option<T> {
        self.nodes.pop_last().map(|(_, (_, node))| node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_bound_is_first_and_of_equal_ones_the_oldest() {
        let mut open = Open::new();
        for (bound, node) in
            [(1.0, 3), (2.0, 5), (2.0, 7), (-1.0, 1), (-0.0, 9), (0.0, 8), (-2.0, 0), (f64::INFINITY, 2)]
        {
            open.push(bound, node);
        }
        assert_eq!((open.len(), open.first()), (8, Some(&(f64::INFINITY, 2))));
        let order: Vec<usize> = std::iter::from_fn(|| open.pop()).collect();
        assert_eq!(order, [2, 5, 7, 3, 8, 9, 1, 0]);
        assert!(open.first().is_none());
    }
}
