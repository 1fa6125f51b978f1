//! A private thread pool. Threads are an argument, never ambient, and no result depends on their
//! number: work is cut into pieces of fixed size, and every piece is computed by one thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rayon::ThreadPool;
use rayon::prelude::*;

use crate::error::{Error, Result};

/// Rows per parallel piece of a matrix product; fixed, so that the result is the same bit for bit
/// for every number of threads.
pub(crate) const CHUNK_ROWS: usize = 256;

/// Multiply-adds below which a product stays on the calling thread (about 0.1 ms of work).
const PARALLEL_FLOOR: usize = 1 << 21;

/// Threads that a solve may use.
#[derive(Debug, Clone)]
pub struct Threads {
    pool: Option<Arc<ThreadPool>>,
    count: usize,
}

impl Threads {
    /// Starts `count` threads; `None` takes the number of available cores.
    ///
    /// # Errors
    /// If `count` is zero or the operating system refuses the threads; or if the environment variable
    /// `ORTHOBCD_SIMD` is wrong.
    pub fn new(count: Option<usize>) -> Result<Self> {
        crate::simd::instructions()?;
        let count = match count {
            Some(0) => return Err(Error::invalid("n_threads", "must be at least 1, got 0")),
            Some(count) => count,
            None => Self::available(),
        };
        if count == 1 {
            return Ok(Self::serial());
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(count)
            .thread_name(|i| format!("orthobcd-{i}"))
            .build()
            .map_err(|e| Error::invalid("n_threads", format!("could not start {count} threads: {e}")))?;
        Ok(Self { pool: Some(Arc::new(pool)), count })
    }

    /// Returns the number of available cores.
    pub fn available() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    /// Returns the calling thread alone.
    pub fn serial() -> Self {
        Self { pool: None, count: 1 }
    }

    /// Returns the number of threads.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Calls `body` on a thread of the pool, so that products in `body` need not wake the pool.
    pub(crate) fn install<T: Send>(&self, body: impl FnOnce() -> T + Send) -> T {
        let Some(pool) = &self.pool else {
            return body();
        };
        let (mut body, mut result) = (Some(body), None);
        installed(pool, &mut || result = body.take().map(|body| body()));
        result.expect("the pool has called the body")
    }

    /// Calls `body(i, piece)` for every piece of `data` of `chunk` elements, in parallel if `work`
    /// multiply-adds are enough for it.
    pub fn for_chunks<T: Send>(
        &self,
        data: &mut [T],
        chunk: usize,
        work: usize,
        body: impl Fn(usize, &mut [T]) + Sync,
    ) {
        match &self.pool {
            Some(pool) if work >= PARALLEL_FLOOR && data.len() > chunk => {
                let pieces: Vec<_> = data.chunks_mut(chunk).map(Mutex::new).collect();
                let piece = |i: usize| body(i, &mut locked(&pieces[i]));
                each(pool, pieces.len(), 1, &piece);
            }
            _ => data.chunks_mut(chunk).enumerate().for_each(|(i, piece)| body(i, piece)),
        }
    }

    /// Runs `body` for 0..count and collects the results in order, in parallel.
    pub fn map<T: Send>(&self, count: usize, body: impl Fn(usize) -> T + Sync) -> Vec<T> {
        match &self.pool {
            Some(pool) if count > 1 => {
                let results: Vec<_> = (0..count).map(|_| Mutex::new(None)).collect();
                each(pool, count, count, &|i| *locked(&results[i]) = Some(body(i)));
                let results = results.into_iter().map(Mutex::into_inner);
                results.filter_map(|result| result.ok().flatten()).collect()
            }
            _ => (0..count).map(body).collect(),
        }
    }
}

// The pool is called with trait objects, so that its code is compiled once and not for every caller.

fn installed(pool: &ThreadPool, body: &mut (dyn FnMut() + Send)) {
    pool.install(body);
}

/// Calls `body` for 0..count; a thread makes at most `most` calls before another thread can take the rest.
fn each(pool: &ThreadPool, count: usize, most: usize, body: &(dyn Fn(usize) + Sync)) {
    installed(pool, &mut || {
        (0..count).into_par_iter().with_max_len(most).for_each(body);
    });
}

/// Locks a value, even if a thread has panicked while it used it.
pub fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
