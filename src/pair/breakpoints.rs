//! Breakpoints of a pair problem, sorted by angle, and the arcs between them.
//!
//! The data are separate arrays, padded to whole vectors, so that all work per breakpoint is vector code. Up
//! to [`RANK_SORT`] breakpoints are sorted by rank, the number of smaller keys. This takes a quadratic number
//! of comparisons, but in vectors and without branches. More breakpoints are sorted by the standard sort.

use pulp::Simd;

use crate::simd::LANES;

/// Largest number of breakpoints that are sorted by rank; of more, the standard sort is faster.
const RANK_SORT: usize = 64;

/// The largest index of a part of the period, see [`unsorted`](Breakpoints::unsorted).
const LAST_PART: f64 = 255.0;

/// Breakpoints with the jumps of h = A cosθ + B sinθ across them, and the arcs in between.
///
/// Slots are filled in any order, one per column or term; a slot without a breakpoint is inert: key
/// beyond every angle, no jump.
#[derive(Debug, Clone, Default)]
pub(crate) struct Breakpoints {
    slots: usize,
    /// Slots from this index on are crossings of a bound, see [`bound`](Self::bound).
    free: usize,
    /// Number of columns beyond the bound at θ = 0.
    outside: isize,
    /// Number of slots after these that hold the ends of the gap, see [`narrow`](Self::narrow).
    ends: usize,
    live: usize,
    key: Vec<f64>,
    packed: Vec<u64>,
    rank: Vec<u64>,
    order: Vec<u32>,
    slot: [Vec<f64>; 4],
    /// Per point: cosine, sine, A and B of the arc that follows.
    point: [Vec<f64>; 4],
    /// Work arrays, per point.
    work: [Vec<f64>; 3],
    /// For arcs with a second harmonic: jumps of P, Q and of the constant, and their values per point.
    bend: [Vec<f64>; 3],
    bent: [Vec<f64>; 3],
    /// Arcs beyond a bound, and the arcs of the gap.
    excluded: Vec<usize>,
}

/// h = A cosθ + B sinθ + P cos2θ + Q sin2θ + K on an arc; P, Q and K are only used where the arcs are bent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Arc {
    pub(crate) a: f64,
    pub(crate) b: f64,
    pub(crate) p: f64,
    pub(crate) q: f64,
    pub(crate) k: f64,
    /// A lower bound of h on the circle, in the first arc.
    pub(crate) lowest: f64,
}

/// Views of the points: cosine, sine, A, B (each with one vector more than `count`, repeating the last
/// point), and the work arrays.
pub(crate) struct Arcs<'a> {
    pub(crate) count: usize,
    pub(crate) c: &'a [f64],
    pub(crate) s: &'a [f64],
    pub(crate) a: &'a [f64],
    pub(crate) b: &'a [f64],
    /// P, Q and K; for penalties that jump, the drops in place of P.
    pub(crate) bent: [&'a [f64]; 3],
    pub(crate) rotation: &'a mut [f64],
    pub(crate) reflection: &'a mut [f64],
    pub(crate) bound: &'a mut [f64],
    pub(crate) excluded: &'a [usize],
}

/// The arrays of the slots to fill.
pub(crate) struct Slots<'a> {
    pub(crate) key: &'a mut [f64],
    pub(crate) c: &'a mut [f64],
    pub(crate) s: &'a mut [f64],
    pub(crate) jump_c: &'a mut [f64],
    pub(crate) jump_s: &'a mut [f64],
    /// Jumps of P, Q and K.
    pub(crate) bend: [&'a mut [f64]; 3],
}

impl<'a> Slots<'a> {
    /// Returns the arrays as vectors: key, c, s, and the jumps of A, B, P, Q and K.
    #[inline(always)]
    pub(crate) fn vectors<S: Simd>(self) -> [&'a mut [S::f64s]; 8] {
        let [p, q, k] = self.bend;
        [self.key, self.c, self.s, self.jump_c, self.jump_s, p, q, k].map(|array| S::as_mut_simd_f64s(array).0)
    }
}

impl Breakpoints {
    /// Key of a slot without a breakpoint: beyond every angle.
    pub(crate) const INERT: f64 = 4.0;

    pub(super) fn with_capacity(count: usize) -> Self {
        let mut points = Self::default();
        points.resize(count);
        points
    }

    /// Resizes the arrays to `slots` slots, all to be filled.
    #[inline(always)]
    pub(crate) fn resize(&mut self, slots: usize) {
        (self.slots, self.free, self.outside, self.ends) = (slots, slots, 0, 0);
        let size = slots.div_ceil(LANES) * LANES + 2 * LANES;
        if self.key.len() < size {
            self.key.resize(size, Self::INERT);
            for array in self
                .slot
                .iter_mut()
                .chain(&mut self.point)
                .chain(&mut self.work)
                .chain(&mut self.bend)
                .chain(&mut self.bent)
            {
                array.resize(size, 0.0);
            }
            self.packed.resize(size, u64::MAX);
            self.rank.resize(size, 0);
            self.order.resize(size, 0);
            self.excluded.clear();
            self.excluded.reserve(size);
        }
    }

    /// Returns the arrays of `count` slots from index `first` on.
    #[inline(always)]
    pub(crate) fn slots(&mut self, first: usize, count: usize) -> Slots<'_> {
        let range = first..first + count;
        let [c, s, jump_c, jump_s] = &mut self.slot;
        Slots {
            key: &mut self.key[range.clone()],
            c: &mut c[range.clone()],
            s: &mut s[range.clone()],
            jump_c: &mut jump_c[range.clone()],
            jump_s: &mut jump_s[range.clone()],
            bend: self.bend.each_mut().map(|array| &mut array[range.clone()]),
        }
    }

    /// Fills one slot: sort key in [0, 2], increasing with the angle; direction; jump.
    #[inline(always)]
    pub(crate) fn set(&mut self, slot: usize, key: f64, direction: (f64, f64), jump: (f64, f64)) {
        self.key[slot] = key;
        let values = [direction.0, direction.1, jump.0, jump.1];
        for (array, value) in self.slot.iter_mut().zip(values) {
            array[slot] = value;
        }
    }

    /// Makes the slots from index `free` on crossings of a bound: in the first half of them a column returns from beyond
    /// the bound, in the second half a column leaves. `outside` is the number of columns that are beyond at θ = 0.
    #[inline(always)]
    pub(crate) fn bound(&mut self, free: usize, outside: f64) {
        (self.free, self.outside) = (free, outside as isize);
        self.bend[2][free..self.slots].fill(0.0);
    }

    /// Returns the index of the first slot in which a column leaves its bounds.
    #[inline(always)]
    fn departures(&self) -> usize {
        self.free.midpoint(self.slots)
    }

    /// Makes the breakpoints between two directions, the gap, inert. The sum of their jumps is the jump at the end of
    /// the gap.
    #[inline(always)]
    pub(crate) fn narrow<S: Simd, const BENT: bool>(&mut self, simd: S, [from, to]: [(f64, f64); 2]) {
        let key = |(c, s): (f64, f64)| {
            let part = s / (c.abs() + s);
            if c >= 0.0 { part } else { 2.0 - part }
        };
        let (low, high) = (key(from), key(to));
        let padded = self.free.div_ceil(LANES) * LANES;
        self.key[self.free..padded].fill(Self::INERT);
        let [_, _, jump_c, jump_s] = &self.slot;
        let [p, q, k] = &self.bend;
        let jumps = [jump_c, jump_s, p, q, k].map(|array| S::as_simd_f64s(&array[..padded]).0);
        let (keys, _) = S::as_mut_simd_f64s(&mut self.key[..padded]);
        let (above, below) = (simd.splat_f64s(low), simd.splat_f64s(high));
        let (zero, inert) = (simd.splat_f64s(0.0), simd.splat_f64s(Self::INERT));
        let mut sums = [zero; 5];
        let terms = if BENT { 5 } else { 2 };
        for (m, key) in keys.iter_mut().enumerate() {
            let gap = simd.and_m64s(simd.less_than_f64s(above, *key), simd.less_than_f64s(*key, below));
            for (sum, jumps) in sums.iter_mut().zip(&jumps).take(terms) {
                *sum = simd.add_f64s(*sum, simd.select_f64s(gap, jumps[m], zero));
            }
            *key = simd.select_f64s(gap, inert, *key);
        }
        let mut total = [0.0; 5];
        for (total, sum) in total.iter_mut().zip(sums).take(terms) {
            *total = simd.reduce_sum_f64s(sum);
        }
        self.ends = 2;
        for (slot, key, direction, [a, b, p, q, k]) in
            [(self.slots, low, from, [0.0; 5]), (self.slots + 1, high, to, total)]
        {
            self.set(slot, key, direction, (a, b));
            for (array, jump) in self.bend.iter_mut().zip([p, q, k]) {
                array[slot] = jump;
            }
        }
    }

    /// Finds the arcs of the gap, where the coefficients are not those of h, and the arcs beyond a bound. K is ∞ at points
    /// between two of them.
    #[inline(always)]
    pub(crate) fn exclude_arcs(&mut self) {
        self.excluded.clear();
        if self.free == self.slots {
            let start = self.slots as u32;
            let mut live = self.order[..self.live].iter();
            if self.ends > 0
                && let Some(m) = live.position(|&k| k == start)
            {
                self.excluded.push(m + 1);
            }
            return;
        }
        let departures = self.departures();
        let mut outside = self.outside;
        if outside > 0 {
            self.excluded.push(0);
        }
        for (m, &slot) in self.order[..self.live].iter().enumerate() {
            let before = outside > 0;
            let slot = slot as usize;
            if slot >= self.free {
                let leaves = slot == self.slots || (departures..self.slots).contains(&slot);
                outside += if leaves { 1 } else { -1 };
            }
            if outside > 0 {
                self.excluded.push(m + 1);
                if before {
                    self.bent[2][m + 1] = f64::INFINITY;
                }
            }
        }
    }

    /// Sorts the breakpoints and sums their jumps: point 0 is θ = 0, where the arc `start` begins,
    /// then come the breakpoints, then `end`, the end of the period.
    #[inline(always)]
    pub(crate) fn lay_arcs<S: Simd, const BENT: bool>(&mut self, simd: S, start: Arc, end: (f64, f64)) {
        self.sort(simd);
        let live = self.live;
        let [c, s, jump_c, jump_s] = &self.slot;
        let [pc, ps, pa, pb] = &mut self.point;
        let total = (live + 2).div_ceil(LANES) * LANES + LANES;
        let (mut a, mut b) = (start.a, start.b);
        (pc[0], ps[0], pa[0], pb[0]) = (1.0, 0.0, a, b);
        let points = pc[1..].iter_mut().zip(&mut ps[1..]).zip(&mut pa[1..]).zip(&mut pb[1..]);
        let order = &self.order[..live];
        let [jump_p, jump_q, jump_k] = &self.bend;
        let [pp, pq, pk] = &mut self.bent;
        let (mut p, mut q, mut constant) = (start.p, start.q, start.k);
        if BENT {
            (pp[0], pq[0], pk[0]) = (p, q, constant);
            let bent = pp[1..].iter_mut().zip(&mut pq[1..]).zip(&mut pk[1..]);
            // One loop, as the sums would wait for each other otherwise.
            for ((&k, (((pc, ps), pa), pb)), ((pp, pq), pk)) in order.iter().zip(points).zip(bent) {
                let k = k as usize;
                a += jump_c[k];
                b += jump_s[k];
                p += jump_p[k];
                q += jump_q[k];
                constant += jump_k[k];
                (*pc, *ps, *pa, *pb) = (c[k], s[k], a, b);
                (*pp, *pq, *pk) = (p, q, constant);
            }
            for (array, value) in self.bent.iter_mut().zip([p, q, constant]) {
                array[live + 1..total].fill(value);
            }
        } else {
            for (&k, (((pc, ps), pa), pb)) in order.iter().zip(points) {
                let k = k as usize;
                a += jump_c[k];
                b += jump_s[k];
                (*pc, *ps, *pa, *pb) = (c[k], s[k], a, b);
            }
        }
        for (array, value) in self.point.iter_mut().zip([end.0, end.1, a, b]) {
            array[live + 1..total].fill(value);
        }
    }

    /// Sorts the slots with a breakpoint by their keys.
    #[inline(always)]
    fn sort<S: Simd>(&mut self, simd: S) {
        let slots = self.slots + self.ends;
        // Keys as integers with the slot in the low bits: all different, so ranks are a permutation.
        let bits = usize::BITS - slots.leading_zeros();
        let scale = (1u64 << (61 - bits)) as f64;
        for (k, (packed, &key)) in self.packed[..slots].iter_mut().zip(&self.key).enumerate() {
            *packed = (((key * scale) as u64) << bits) | k as u64;
        }
        // Inert slots are removed first.
        let mut count = 0;
        for (k, &key) in self.key[..slots].iter().enumerate() {
            self.packed[count] = self.packed[k];
            count += usize::from(key < Self::INERT);
        }
        self.live = count;
        let mask = (1u64 << bits) - 1;
        if count <= RANK_SORT {
            let padded = count.div_ceil(LANES) * LANES;
            let (keys, _) = S::as_simd_u64s(&self.packed[..padded]);
            let (ranks, _) = S::as_mut_simd_u64s(&mut self.rank[..padded]);
            let (zero, one) = (simd.splat_u64s(0), simd.splat_u64s(1));
            for (own, rank) in keys.iter().zip(ranks) {
                let mut sum = zero;
                for &other in &self.packed[..count] {
                    let less = simd.less_than_u64s(simd.splat_u64s(other), *own);
                    sum = simd.add_u64s(sum, simd.select_u64s(less, one, zero));
                }
                *rank = sum;
            }
            for (&packed, &rank) in self.packed[..count].iter().zip(&self.rank) {
                self.order[rank as usize] = (packed & mask) as u32;
            }
        } else {
            let sorted = &mut self.packed[..count];
            sorted.sort_unstable();
            for (order, packed) in self.order.iter_mut().zip(sorted) {
                *order = (*packed & mask) as u32;
            }
        }
    }

    /// Sets the drop of the penalty where the entry of a slot vanishes.
    #[inline(always)]
    pub(crate) fn set_drop(&mut self, slot: usize, drop: f64) {
        self.bend[0][slot] = drop;
    }

    /// Sets the drop of the penalty in all slots.
    #[inline(always)]
    pub(crate) fn fill_drops(&mut self, drop: f64) {
        self.bend[0][..self.slots].fill(drop);
    }

    /// Returns the slots as points in no order, with one drop where h is lower by `drop` for every column whose entry
    /// vanishes: a bound of the sums of [`lay_drops`](Self::lay_drops). Columns in different parts of the period do not
    /// vanish at one angle, except for `far` columns.
    #[inline(always)]
    pub(crate) fn unsorted(&mut self, drop: f64, far: u32) -> Arcs<'_> {
        let (mut live, mut near, mut parts) = (0, far, [0u64; 4]);
        let keys = self.key[..self.slots].iter();
        for &key in keys.filter(|&&key| key < Self::INERT) {
            let place = key * LAST_PART;
            let part = place as usize;
            live += 1;
            parts[part / 64] |= 1 << (part % 64);
            // Equal angles may be on both sides of a limit between two parts.
            near |= u32::from((place + 1e-9) as usize != (place - 1e-9) as usize);
        }
        let used: u32 = parts.iter().map(|part| part.count_ones()).sum();
        let most = live.min(live + 1 + near - used);
        let drops = &mut self.bent[0][..self.slots];
        for (at, &key) in drops.iter_mut().zip(&self.key) {
            *at = if key < Self::INERT { f64::from(most) * drop } else { f64::NEG_INFINITY };
        }
        let [c, s, a, b] = &self.slot;
        let [rotation, reflection, bound] = &mut self.work;
        let padded = self.slots;
        Arcs {
            count: self.slots,
            c: &c[..padded],
            s: &s[..padded],
            a: &a[..padded],
            b: &b[..padded],
            bent: self.bent.each_ref().map(|array| &array[..padded]),
            rotation: &mut rotation[..padded],
            reflection: &mut reflection[..padded],
            bound: &mut bound[..padded],
            excluded: &[],
        }
    }

    /// Adds the drop of every slot to the points that it reaches, for keys with the given period: `reaches` tells whether a
    /// slot reaches some distance. `axis` is the drop of entries that are 0 at both ends of the period.
    #[inline(always)]
    pub(crate) fn lay_drops(&mut self, period: f64, reaches: impl Fn(usize, f64) -> bool, axis: f64) {
        let (drops, sums) = (&self.bend[0], &mut self.bent[0]);
        let order = &self.order[..self.live];
        let live = order.len();
        sums[..=live].fill(0.0);
        let mut ends = axis;
        for (place, &slot) in order.iter().enumerate() {
            let slot = slot as usize;
            let (drop, key) = (drops[slot], self.key[slot]);
            if drop == 0.0 {
                continue;
            }
            if reaches(slot, around(key, 0.0, period)) {
                ends += drop;
            }
            sums[place + 1] += drop;
            // The points after this one and before it, around the period.
            let near = |place: usize| reaches(slot, around(self.key[order[place] as usize], key, period));
            let mut left = live - 1;
            for other in (place + 1..live).chain(0..place).take_while(|&other| near(other)) {
                sums[other + 1] += drop;
                left -= 1;
            }
            for other in (0..place).rev().chain((place + 1..live).rev()).take(left).take_while(|&other| near(other)) {
                sums[other + 1] += drop;
            }
        }
        sums[0] = ends;
        sums[live + 1..].fill(ends);
    }

    /// Returns the slots with a drop that reach point `m`, after [`lay_drops`](Self::lay_drops).
    pub(crate) fn dropping_at(
        &self,
        m: usize,
        period: f64,
        reaches: impl Fn(usize, f64) -> bool,
    ) -> impl Iterator<Item = u32> {
        let at = if self.is_breakpoint(m) { self.key[self.order[m - 1] as usize] } else { 0.0 };
        self.order[..self.live].iter().copied().filter(move |&k| {
            let k = k as usize;
            self.bend[0][k] > 0.0 && reaches(k, around(self.key[k], at, period))
        })
    }

    /// Returns the points and arcs of the last [`lay_arcs`](Self::lay_arcs).
    #[inline(always)]
    pub(crate) fn arcs(&mut self) -> Arcs<'_> {
        let count = self.live + 2;
        let padded = count.div_ceil(LANES) * LANES;
        let [c, s, a, b] = &self.point;
        let [rotation, reflection, bound] = &mut self.work;
        Arcs {
            count,
            c: &c[..padded + LANES],
            s: &s[..padded + LANES],
            a: &a[..padded],
            b: &b[..padded],
            bent: self.bent.each_ref().map(|array| &array[..padded]),
            rotation: &mut rotation[..padded + LANES],
            reflection: &mut reflection[..padded + LANES],
            bound: &mut bound[..padded],
            excluded: &self.excluded,
        }
    }

    /// Returns the slots of breakpoints with a jump or a bound, and with a key within `tolerance` of the key of point `m`.
    #[inline(always)]
    pub(crate) fn at_same_angle(&self, m: usize, tolerance: f64) -> impl Iterator<Item = u32> + '_ {
        let live = &self.order[..self.live];
        let key = self.key[live[m - 1] as usize];
        live.iter().copied().filter(move |&k| {
            let k = k as usize;
            k < self.slots
                && (self.key[k] - key).abs() <= tolerance
                && (self.slot[2][k] != 0.0 || self.slot[3][k] != 0.0 || k >= self.free)
        })
    }

    /// Returns whether point `m` is a breakpoint and not an end of the period or of the gap.
    #[inline(always)]
    pub(crate) fn is_breakpoint(&self, m: usize) -> bool {
        m > 0 && m <= self.live && (self.order[m - 1] as usize) < self.slots
    }
}

/// Returns the distance of two keys around the period.
#[inline(always)]
fn around(first: f64, second: f64, period: f64) -> f64 {
    let distance = (first - second).abs();
    distance.min(period - distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Lay<'a>(&'a mut Breakpoints);

    impl pulp::WithSimd for Lay<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            self.0.lay_arcs::<S, false>(simd, Arc::default(), (0.0, 1.0));
        }
    }

    #[test]
    fn both_sorts_order_by_key_then_slot_and_leave_out_inert_slots() {
        for len in [1, 2, 7, RANK_SORT, RANK_SORT + 1, 200] {
            let mut points = Breakpoints::with_capacity(len);
            points.resize(len);
            let mut live = 0;
            for k in 0..len {
                let key = ((k * 7919) % 31) as f64 / 31.0;
                if k % 5 == 4 {
                    points.set(k, Breakpoints::INERT, (0.0, 1.0), (0.0, 0.0));
                } else {
                    live += 1;
                    points.set(k, key, (key, 1.0 - key), (1.0, 0.0));
                }
            }
            crate::simd::arch().dispatch(Lay(&mut points));
            assert_eq!(points.live, live);
            for m in 1..live {
                let (before, after) = (points.order[m - 1] as usize, points.order[m] as usize);
                assert!((points.key[before], before) < (points.key[after], after));
            }
            let arcs = points.arcs();
            assert_eq!(arcs.count, live + 2);
            assert_eq!(arcs.a[live], live as f64);
            assert_eq!((arcs.c[live + 1], arcs.s[live + 1]), (0.0, 1.0));
        }
    }
}
