//! Sweeping the pairs of a block allocates nothing once its buffers have their size.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ndarray::Array2;
use orthobcd::Curvature;
use orthobcd::block::{Block, Outcome, PairOptions, Pairs};
use orthobcd::pair::Scratch;
use orthobcd::penalty::Penalty;
use orthobcd::start;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn sweep(block: &mut Block, penalty: &Penalty, scratch: &mut Scratch) -> Outcome {
    let options = PairOptions { curvature: Curvature::Exact, shift: 0.0, proximal: 1e-5, metric: None };
    block.sweep(Pairs::Cross, penalty, options, scratch)
}

fn allocations(penalty: &Penalty, x: &Array2<f64>) -> usize {
    let (n, r) = x.dim();
    let rows: Vec<usize> = (0..n).collect();
    let mut block = Block::new(r);
    let mut scratch = Scratch::new(r);
    let mut counted = usize::MAX;
    // The first round sizes the buffers, the second one is counted.
    for _ in 0..2 {
        let before = ALLOCATIONS.with(Cell::get);
        block.load(x.view(), &rows[..n / 2], &rows[n / 2..]);
        for k in 0..n {
            for (l, g) in block.gradient_row_mut(k).iter_mut().enumerate() {
                *g = ((k * 31 + l * 17) % 13) as f64 - 6.0;
            }
        }
        for (k, c) in block.curvature_mut().iter_mut().enumerate() {
            *c = if k % (n + 1) == 0 { -1.0 } else { 0.0 };
        }
        let outcome = sweep(&mut block, penalty, &mut scratch);
        block.moved();
        assert!(outcome.updates > 0, "the sweep must have something to do");
        counted = ALLOCATIONS.with(Cell::get) - before;
    }
    counted
}

#[test]
fn a_second_sweep_allocates_nothing() {
    let (n, r) = (32, 10);
    let dense = start::random(n, r, 1);
    assert_eq!(allocations(&Penalty::NONE, &dense), 0);
    assert_eq!(allocations(&Penalty::l0(0.1), &dense), 0);
    assert_eq!(allocations(&Penalty::l1(0.1), &dense), 0);
    let weights = Penalty::l1(Array2::from_shape_fn((n, r), |(i, _)| 0.1 + 1e-3 * i as f64));
    assert_eq!(allocations(&weights, &dense), 0);
    assert_eq!(allocations(&Penalty::NONNEGATIVE, &start::partition(n, r, 1)), 0);
}

#[test]
fn the_counter_counts() {
    let before = ALLOCATIONS.with(Cell::get);
    let boxed = std::hint::black_box(Box::new(1.0f64));
    assert!(*boxed > 0.0);
    assert_eq!(ALLOCATIONS.with(Cell::get) - before, 1);
}
