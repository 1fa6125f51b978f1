//! Checkpoints of long solves: a solve that was killed continues from its file.
//!
//! A solve is a sequence of *groups* of tasks (the runs of a round, one descent, the rounds of the chains
//! under a limit). With counted work the result of a task depends on the arguments of the solve alone. A
//! checkpoint keeps the results of finished tasks. When the same solve is called again, it repeats the
//! sequence, takes recorded results instead of running their tasks, and runs the missing tasks alone. The
//! state between groups is thus never written, and the result has the same bits as without interruption.
//!
//! The file is replaced atomically (a temporary file beside it, fsync, rename). It begins with the version of its
//! format and a checksum of the rest, which is in postcard's format: the version of the package, the best point and
//! the results. Each solve begins with its settings and values of f and h at a
//! fixed point, by which another problem is recognised.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ndarray::{Array2, Axis};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::limits::PAUSE_SHARE;
use crate::problem::Problem;
use crate::start;
use crate::threads::Threads;

/// First bytes of a file; the number is the version of the format.
const MAGIC: &[u8] = b"orthobcd checkpoint 2\n";

/// Version of the package; the sequence of tasks of another version may differ.
const PACKAGE: &str = env!("CARGO_PKG_VERSION");

/// Relative difference of values of f at one point that counts as rounding.
const ROUNDING: f64 = 1e-10;

/// The result of a task: the number and the hash of its group, and its bytes.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    ordinal: u64,
    key: u64,
    payload: Vec<u8>,
}

/// The best point of a solve: the number of the solve, its objective, and its bytes.
#[derive(Debug, Serialize, Deserialize)]
struct Best {
    solve: u64,
    objective: f64,
    payload: Vec<u8>,
}

/// Identity of a solve: its settings, and values of f and h at a fixed point with their scale.
#[derive(Serialize, Deserialize)]
struct Identity {
    shape: (usize, usize),
    settings: Vec<(String, String)>,
    values: Vec<f64>,
    scale: f64,
}

/// The file of a long solve, or of several solves in a row.
///
/// A [`Monitor`](crate::Monitor) hands the checkpoint to a solve. The same calls with the same file continue
/// where the file ends.
///
/// ```
/// use orthobcd::penalty::Penalty;
/// use orthobcd::{Auto, Checkpoint, Monitor, Options, Problem, Quadratic, Signature, Threads, minimize_auto};
///
/// struct Saved(Checkpoint);
///
/// impl Monitor for Saved {
///     fn checkpoint(&mut self) -> Option<&mut Checkpoint> {
///         Some(&mut self.0)
///     }
/// }
///
/// let a = ndarray::Array2::from_shape_fn((50, 8), |(i, j)| ((i * (j + 3)) % 17) as f64 - 8.0);
/// let (smooth, penalty, signature) = (Quadratic::from_data(a.view())?, Penalty::l1(20.0), Signature::stiefel(8));
/// let problem = Problem::new(&smooth, &penalty, &signature, 3)?;
/// let auto = Auto::default().with_options(Options::default().with_max_work(100_000_000));
/// let threads = Threads::serial();
/// let path = std::env::temp_dir().join(format!("orthobcd-{}.checkpoint", std::process::id()));
/// let solve = || {
///     let mut saved = Saved(Checkpoint::open(&path, 60.0)?);
///     saved.0.begin(&problem, &[("options", format!("{auto:?}"))], &threads)?;
///     minimize_auto(&problem, None, &auto, &threads, &mut saved)
/// };
/// let first = solve()?;
/// // The second call finds all results in the file.
/// assert_eq!(solve()?.solution.x, first.solution.x);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), orthobcd::Error>(())
/// ```
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    every: Duration,
    /// Results in the order of their groups; those from `next` on have not been taken yet.
    entries: Vec<Entry>,
    next: usize,
    /// Number of groups that have begun, and the number and the hash of the present one.
    groups: u64,
    key: u64,
    /// Number of the present solve, and whether it was interrupted: later solves are not recorded.
    solve: u64,
    over: bool,
    best: Option<Best>,
    /// State of the file: changes not yet written, time of the last writing, and its duration.
    changed: bool,
    written: Instant,
    cost: Duration,
    /// Message of the first writing that failed, and whether it was reported.
    failure: Option<String>,
    reported: bool,
}

impl Checkpoint {
    /// Opens a file, or begins one; it is written at most every `every` seconds.
    ///
    /// # Errors
    /// If `every` is negative or not finite, or the file cannot be read, is no checkpoint, is damaged, or is
    /// of another version.
    pub fn open(path: impl AsRef<Path>, every: f64) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let Ok(every) = Duration::try_from_secs_f64(every) else {
            let message = format!("must be finite and nonnegative, got {every}");
            return Err(Error::invalid("checkpoint_every", message));
        };
        let refused = |why: &str| Error::invalid("checkpoint", format!("{} {why}", path.display()));
        let (entries, best) = match fs::read(&path) {
            Ok(bytes) => parsed(&bytes).map_err(|why| refused(&why))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => (Vec::new(), None),
            Err(error) => return Err(refused(&format!("cannot be read: {error}"))),
        };
        // Remains of a process that was killed while writing.
        _ = fs::remove_file(part(&path));
        Ok(Self {
            path,
            every,
            entries,
            next: 0,
            groups: 0,
            key: 0,
            solve: 0,
            over: false,
            best,
            changed: false,
            written: Instant::now(),
            cost: Duration::ZERO,
            failure: None,
            reported: false,
        })
    }

    /// Begins a solve, or continues the one in the file. A new file is written at once.
    ///
    /// # Errors
    /// If the file is of another problem or has other settings (pairs of a name and a value).
    pub fn begin(
        &mut self,
        problem: &Problem<'_>,
        settings: &[(impl ToString, impl ToString)],
        threads: &Threads,
    ) -> Result<()> {
        if self.over {
            return Ok(());
        }
        let own = Identity::new(problem, settings, threads);
        self.solve += 1;
        let Some(known) = self.group::<Identity>(&format!("solve {}", self.solve)).pop() else {
            self.add(&own);
            if self.solve == 1 {
                self.save();
            }
            return Ok(());
        };
        let why = match problem.smooth.has_failed() {
            true => known.settings_differ(&own),
            false => known.differs(&own),
        };
        why.map_or(Ok(()), |why| {
            let message = format!("{} {why}", self.path.display());
            Err(Error::invalid("checkpoint", message))
        })
    }

    /// Begins a group of tasks and returns its recorded results. If the file holds another group here, as it
    /// may under a time limit, the results from here on are dropped.
    pub(crate) fn group<T: DeserializeOwned>(&mut self, what: &str) -> Vec<T> {
        if self.over {
            return Vec::new();
        }
        self.groups += 1;
        self.key = hash(what.as_bytes());
        let rest = &self.entries[self.next..];
        let own = |entry: &&Entry| entry.ordinal == self.groups && entry.key == self.key;
        let known: Vec<&Entry> = rest.iter().take_while(own).collect();
        let values = known.iter().filter_map(|entry| postcard::from_bytes(&entry.payload).ok()).collect();
        self.next += known.len();
        if (self.entries.get(self.next)).is_some_and(|entry| entry.ordinal <= self.groups) {
            self.entries.truncate(self.next);
        }
        values
    }

    /// Appends a result to the group.
    pub(crate) fn add(&mut self, result: &impl Serialize) {
        if self.over {
            return;
        }
        let entry = Entry { ordinal: self.groups, key: self.key, payload: bytes(result) };
        self.entries.insert(self.next, entry);
        self.next += 1;
        self.changed = true;
    }

    /// Makes a result the only one of the group.
    pub(crate) fn replace(&mut self, result: &impl Serialize) {
        if self.over {
            return;
        }
        let groups = self.groups;
        let own = |entry: &Entry| entry.ordinal == groups;
        while self.next > 0 && own(&self.entries[self.next - 1]) {
            self.next -= 1;
            self.entries.remove(self.next);
        }
        self.add(result);
    }

    /// Returns the best point of the solve before it was interrupted, if lower than `objective`.
    pub(crate) fn best<T: DeserializeOwned>(&self, objective: f64) -> Option<T> {
        let best = self.best.as_ref().filter(|_| !self.over);
        let best = best.filter(|best| best.solve == self.solve && best.objective < objective)?;
        postcard::from_bytes(&best.payload).ok()
    }

    /// Returns whether it is time to write.
    pub(crate) fn is_due(&self) -> bool {
        self.written.elapsed() >= self.every.max(self.cost * PAUSE_SHARE)
    }

    /// Writes the file with the best point of the solve.
    pub(crate) fn save_best(&mut self, objective: f64, point: &impl Serialize) {
        let known = self.best.as_ref();
        let lower = |best: &Best| best.solve > self.solve || best.solve == self.solve && best.objective <= objective;
        if !self.over && !known.is_some_and(lower) {
            self.best = Some(Best { solve: self.solve, objective, payload: bytes(point) });
            self.changed = true;
        }
        self.save();
    }

    /// Writes the file a last time, after a solve that was interrupted. Later solves are not recorded.
    pub fn interrupt(&mut self) {
        self.save();
        self.over = true;
    }

    /// Writes the file if it is out of date. A failure is kept, see [`failure`](Self::failure).
    pub fn save(&mut self) {
        if !self.changed {
            self.written = Instant::now();
            return;
        }
        let begun = Instant::now();
        match self.write() {
            Ok(()) => self.changed = false,
            Err(error) => {
                _ = fs::remove_file(part(&self.path));
                let message =
                    format!("the checkpoint {} cannot be written: {error}; the fit goes on", self.path.display());
                self.failure.get_or_insert(message);
            }
        }
        self.written = Instant::now();
        self.cost = begun.elapsed();
    }

    /// Returns the message of the first writing that failed, once.
    pub fn failure(&mut self) -> Option<String> {
        let failure = self.failure.clone().filter(|_| !self.reported);
        self.reported |= failure.is_some();
        failure
    }

    fn write(&self) -> io::Result<()> {
        let part = part(&self.path);
        let content = bytes(&(PACKAGE, &self.best, &self.entries));
        let mut file = File::create(&part)?;
        file.write_all(MAGIC)?;
        file.write_all(&hash(&content).to_le_bytes())?;
        file.write_all(&content)?;
        file.sync_all()?;
        fs::rename(&part, &self.path)
    }
}

/// Writes the file at the end if it is out of date, unless a panic ends the solve.
impl Drop for Checkpoint {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.save();
        }
    }
}

impl Identity {
    fn new(problem: &Problem<'_>, settings: &[(impl ToString, impl ToString)], threads: &Threads) -> Self {
        let shape = (problem.smooth.rows(), problem.components);
        let x = match problem.penalty.nonnegative() {
            true => start::partition(shape.0, shape.1, 0),
            false => start::random(shape.0, shape.1, 0),
        };
        let gradient: Array2<f64> = problem.smooth.gradient(x.view(), threads);
        let mut values = gradient.sum_axis(Axis(1)).to_vec();
        values.push(problem.smooth.value(x.view(), threads));
        values.push(problem.penalty.value(x.view()));
        let own = settings.iter();
        let own = own.map(|(name, value)| (name.to_string(), value.to_string()));
        let finite = values.iter().filter(|v| v.is_finite());
        Self { shape, settings: own.collect(), scale: finite.fold(0.0, |most: f64, v| most.max(v.abs())), values }
    }

    /// Returns the first difference from the shape and settings of `own`, as a message.
    fn settings_differ(&self, own: &Self) -> Option<String> {
        if self.shape != own.shape {
            return Some(format!("is of a problem of shape {:?}; this one has shape {:?}", self.shape, own.shape));
        }
        let named = |settings: &[(String, String)], name: &String| {
            let found = settings.iter().find(|setting| setting.0 == *name);
            found.map_or("nothing".to_owned(), |setting| setting.1.clone())
        };
        let names = self.settings.iter().chain(&own.settings).map(|s| &s.0);
        let differs = |name: &&String| named(&self.settings, name) != named(&own.settings, name);
        let name = names.into_iter().find(differs)?;
        Some(format!(
            "is of a solve with another {name}: {}; this one has {}",
            named(&self.settings, name),
            named(&own.settings, name)
        ))
    }

    fn differs(&self, own: &Self) -> Option<String> {
        let same = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= ROUNDING * self.scale;
        self.settings_differ(own).or_else(|| {
            let data =
                self.values.len() == own.values.len() && self.values.iter().zip(&own.values).all(|(&a, &b)| same(a, b));
            (!data).then(|| "is of other data: the objectives have different values at one point".to_owned())
        })
    }
}

/// Returns the path of the temporary file beside a checkpoint.
fn part(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.part"))
}

/// Returns a hash of bytes. A change of one bit changes the hash.
fn hash(bytes: &[u8]) -> u64 {
    // The odd multiplier is 2⁶⁴ divided by the golden ratio.
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    bytes.chunks(8).fold(mix(0, bytes.len() as u64), |sum, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(sum, u64::from_le_bytes(word))
    })
}

/// Returns a value as bytes; [`postcard::from_bytes`] reads the same bits back.
fn bytes(value: &impl Serialize) -> Vec<u8> {
    postcard::to_extend(value, Vec::new()).expect("a value in memory can be written to memory")
}

/// Parses a file; the error is the reason why the file is refused.
fn parsed(file: &[u8]) -> std::result::Result<(Vec<Entry>, Option<Best>), String> {
    let Some(rest) = file.strip_prefix(MAGIC) else {
        return Err("is no checkpoint of this version of the format".to_owned());
    };
    let damaged = || "is damaged".to_owned();
    let (sum, content) = rest.split_first_chunk().ok_or_else(damaged)?;
    if u64::from_le_bytes(*sum) != hash(content) {
        return Err(damaged());
    }
    let (package, rest): (String, _) = postcard::take_from_bytes(content).map_err(|_| damaged())?;
    if package != PACKAGE {
        return Err(format!("was written by orthobcd {package}; this is orthobcd {PACKAGE}"));
    }
    let (best, entries) = postcard::from_bytes(rest).map_err(|_| damaged())?;
    Ok((entries, best))
}

/// Matrices written by their nonzeros, for points of a search, which are often sparse.
pub(crate) mod nonzeros {
    use ndarray::Array2;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Writes the shape of X, and each nonzero with the number of zeros before it.
    pub(crate) fn serialize<S: Serializer>(x: &Array2<f64>, to: S) -> Result<S::Ok, S::Error> {
        let mut next = 0;
        let nonzeros = x.iter().enumerate().filter(|(_, v)| v.to_bits() != 0);
        let entries = nonzeros.map(|(at, &v)| (at - std::mem::replace(&mut next, at + 1), v));
        (x.dim(), entries.collect::<Vec<(usize, f64)>>()).serialize(to)
    }

    /// # Errors
    /// If an entry lies outside of X, or X is too large for the memory.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Array2<f64>, D::Error> {
        let ((n, r), entries) = <((usize, usize), Vec<(usize, f64)>)>::deserialize(from)?;
        let mut values = Vec::new();
        let count = n.checked_mul(r).filter(|&count| values.try_reserve_exact(count).is_ok());
        values.resize(count.ok_or_else(|| D::Error::custom("the shape is too large"))?, 0.0);
        let mut rest = values.iter_mut();
        for (zeros, value) in entries {
            *rest.nth(zeros).ok_or_else(|| D::Error::custom("an entry lies outside"))? = value;
        }
        Array2::from_shape_vec((n, r), values).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Mutex;

    use ndarray::{Array2, Axis, array};
    use serde::de::DeserializeOwned;
    use serde::{Deserialize, Serialize};

    use super::{bytes, nonzeros};
    use crate::pair::Recession;
    use crate::solver::Status;

    #[derive(Serialize, Deserialize)]
    struct Matrix(#[serde(with = "nonzeros")] Array2<f64>);

    /// Checks that a value has the same bytes after reading, and that each truncation is refused.
    fn returns<T: Serialize + DeserializeOwned>(value: &T) {
        let whole = bytes(value);
        let (read, rest): (T, _) = postcard::take_from_bytes(&whole).unwrap();
        assert!(rest.is_empty());
        assert_eq!(bytes(&read), whole);
        for end in 0..whole.len() {
            assert!(postcard::from_bytes::<T>(&whole[..end]).is_err());
        }
    }

    #[test]
    fn values_return() {
        returns(&(3usize, u64::MAX, f64::NEG_INFINITY, true));
        returns(&vec![Some("é".to_owned()), None]);
        returns(&HashMap::from([(vec![1, 2], 3.0)]));
        returns(&vec![Mutex::new(-0.0)]);
        let statuses = [Status::Converged, Status::MaxWork, Status::Contradiction];
        returns(
            &statuses
                .map(|status| (status, Recession { pair: (3, 1), columns: true, signs: [1.0, -1.0], upwards: false })),
        );
        for x in [array![[0.0, 0.0, 1.5], [0.0, 0.0, 0.0]], array![[1.0, 2.0], [3.0, 0.0]], Array2::zeros((0, 3))] {
            returns(&Matrix(x.clone()));
            returns(&x);
        }
    }

    #[test]
    fn matrices_keep_their_bits_and_their_order() {
        let bits = |x: &Array2<f64>| x.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        let mut x = array![
            [-0.0, 0.0, f64::INFINITY, 0.0, f64::from_bits(0x7ff8_0000_0000_1234)],
            [0.0, f64::MIN_POSITIVE / 8.0, f64::NEG_INFINITY, 0.0, 1.0 / 3.0]
        ];
        for _ in 0..3 {
            let Matrix(sparse) = postcard::from_bytes(&bytes(&Matrix(x.clone()))).unwrap();
            let dense: Array2<f64> = postcard::from_bytes(&bytes(&x)).unwrap();
            assert_eq!((bits(&sparse), bits(&dense)), (bits(&x), bits(&x)));
            assert_eq!((sparse.dim(), dense.dim()), (x.dim(), x.dim()));
            x.invert_axis(Axis(1));
            x = x.reversed_axes();
        }
    }

    #[test]
    fn hostile_counts_are_refused() {
        let none = Vec::<(usize, f64)>::new();
        for shape in [(usize::MAX, usize::MAX), (1 << 60, 1)] {
            assert!(postcard::from_bytes::<Matrix>(&bytes(&(shape, &none))).is_err());
            assert!(postcard::from_bytes::<Array2<f64>>(&bytes(&(1u8, shape, &none))).is_err());
        }
        let huge = bytes(&(usize::MAX, 0));
        assert!(postcard::from_bytes::<Vec<f64>>(&huge).is_err());
        assert!(postcard::from_bytes::<String>(&huge).is_err());
        assert!(
            postcard::from_bytes::<Matrix>(&bytes(&((2usize, 2usize), [(3usize, 1.0), (0, 1.0)].as_slice()))).is_err()
        );
    }
}
