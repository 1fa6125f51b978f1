//! A private thread pool. Threads are an argument, never ambient, and no result depends on their
//! number: work is cut into pieces of fixed size, and every piece is computed by one thread.

use std::sync::Arc;

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
            .map_err(|e| {
                Error::invalid("n_threads", format!("could not start {count} threads: {e}"))
            })?;
        Ok(Self {
            pool: Some(Arc::new(pool)),
            count,
        })
    }

    /// Returns the number of available cores.
    pub(crate) fn available() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    /// Returns the calling thread alone.
    pub fn serial() -> Self {
        Self {
            pool: None,
            count: 1,
        }
    }

    /// Returns the number of threads.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Calls `body` on a thread of the pool, so that products in `body` need not wake the pool.
    pub(crate) fn install<T: Send>(&self, body: impl FnOnce() -> T + Send) -> T {
        match &self.pool {
            Some(pool) => pool.install(body),
            None => body(),
        }
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
            Some(pool) if work >= PARALLEL_FLOOR && data.len() > chunk => pool.install(|| {
                data.par_chunks_mut(chunk)
                    .enumerate()
                    .with_max_len(1)
                    .for_each(|(i, piece)| body(i, piece));
            }),
            _ => data
                .chunks_mut(chunk)
                .enumerate()
                .for_each(|(i, piece)| body(i, piece)),
        }
    }

    /// Runs `body` for 0..count and collects the results in order, in parallel.
    pub fn map<T: Send>(&self, count: usize, body: impl Fn(usize) -> T + Sync) -> Vec<T> {
        match &self.pool {
            Some(pool) if count > 1 => {
                pool.install(|| (0..count).into_par_iter().map(&body).collect())
            }
            _ => (0..count).map(body).collect(),
        }
    }
}
