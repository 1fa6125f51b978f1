//! Checkpoints of long solves: a solve that was killed continues from its file.
//!
//! A solve is a sequence of *groups* of tasks (the runs of a round, one descent, the rounds of the chains
//! under a limit). With counted work the result of a task depends on the arguments of the solve alone. A
//! checkpoint keeps the results of finished tasks. When the same solve is called again, it repeats the
//! sequence, takes recorded results instead of running their tasks, and runs the missing tasks alone. The
//! state between groups is thus never written, and the result has the same bits as without interruption.
//!
//! The file is replaced atomically (a temporary file beside it, fsync, rename) and ends with a checksum. It
//! begins with the version of the package. Each solve begins with its settings and values of f and h at a
//! fixed point, by which another problem is recognised.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ndarray::{Array2, Axis};

use crate::error::{Error, Result};
use crate::problem::Problem;
use crate::start;
use crate::stored::{Stored, stored, taken};
use crate::threads::Threads;

/// First bytes of a file; the number is the version of the format.
const MAGIC: &[u8] = b"orthobcd checkpoint 1\n";

/// Version of the package; the sequence of tasks of another version may differ.
const PACKAGE: &str = env!("CARGO_PKG_VERSION");

/// The pause after writing is at least this multiple of the duration of writing.
const WRITING_SHARE: u32 = 20;

/// Relative difference of values of f at one point that counts as rounding.
const ROUNDING: f64 = 1e-10;

/// The result of a task: the number and the hash of its group, and its bytes.
#[derive(Debug, Clone)]
struct Entry {
    ordinal: u64,
    key: u64,
    payload: Vec<u8>,
}

stored!(Entry { ordinal, key, payload });

/// The best point of a solve: the number of the solve, its objective, and its bytes.
#[derive(Debug)]
struct Best {
    solve: u64,
    objective: f64,
    payload: Vec<u8>,
}

stored!(Best { solve, objective, payload });

/// Identity of a solve: its settings, and values of f and h at a fixed point with their scale.
struct Identity {
    shape: (usize, usize),
    settings: Vec<(String, String)>,
    values: Vec<f64>,
    scale: f64,
}

stored!(Identity { shape, settings, values, scale });

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
        let known = self.group(&format!("solve {}", self.solve)).into_iter().next();
        let Some(known) = known else {
            self.add(own.bytes());
            if self.solve == 1 {
                self.save();
            }
            return Ok(());
        };
        let known = Identity::load(&mut known.as_slice());
        let why = match known {
            Some(known) if problem.smooth.has_failed() => known.settings_differ(&own),
            Some(known) => known.differs(&own),
            None => Some("is damaged".to_owned()),
        };
        why.map_or(Ok(()), |why| {
            let message = format!("{} {why}", self.path.display());
            Err(Error::invalid("checkpoint", message))
        })
    }

    /// Begins a group of tasks and returns its recorded results. If the file holds another group here, as it
    /// may under a time limit, the results from here on are dropped.
    pub(crate) fn group(&mut self, what: &str) -> Vec<Vec<u8>> {
        if self.over {
            return Vec::new();
        }
        self.groups += 1;
        self.key = hash(0, what.as_bytes());
        let rest = &self.entries[self.next..];
        let own = |entry: &&Entry| entry.ordinal == self.groups && entry.key == self.key;
        let known: Vec<Vec<u8>> = rest.iter().take_while(own).map(|entry| entry.payload.clone()).collect();
        self.next += known.len();
        if (self.entries.get(self.next)).is_some_and(|entry| entry.ordinal <= self.groups) {
            self.entries.truncate(self.next);
        }
        known
    }

    /// Appends a result to the group.
    pub(crate) fn add(&mut self, payload: Vec<u8>) {
        if self.over {
            return;
        }
        let entry = Entry { ordinal: self.groups, key: self.key, payload };
        self.entries.insert(self.next, entry);
        self.next += 1;
        self.changed = true;
    }

    /// Makes a result the only one of the group.
    pub(crate) fn replace(&mut self, payload: Vec<u8>) {
        if self.over {
            return;
        }
        let groups = self.groups;
        let own = |entry: &Entry| entry.ordinal == groups;
        while self.next > 0 && own(&self.entries[self.next - 1]) {
            self.next -= 1;
            self.entries.remove(self.next);
        }
        self.add(payload);
    }

    /// Returns the best point of the solve before it was interrupted, if lower than `objective`.
    pub(crate) fn best<T: Stored>(&self, objective: f64) -> Option<T> {
        let best = self.best.as_ref().filter(|_| !self.over);
        let best = best.filter(|best| best.solve == self.solve && best.objective < objective)?;
        T::load(&mut best.payload.as_slice())
    }

    /// Returns whether it is time to write.
    pub(crate) fn is_due(&self) -> bool {
        self.written.elapsed() >= self.every.max(self.cost * WRITING_SHARE)
    }

    /// Writes the file with the best point of the solve.
    pub(crate) fn save_best(&mut self, objective: f64, point: &impl Stored) {
        let known = self.best.as_ref();
        let lower = |best: &Best| best.solve > self.solve || best.solve == self.solve && best.objective <= objective;
        if !self.over && !known.is_some_and(lower) {
            self.best = Some(Best { solve: self.solve, objective, payload: point.bytes() });
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
    pub(crate) fn save(&mut self) {
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
        let mut file = io::BufWriter::new(File::create(&part)?);
        file.write_all(MAGIC)?;
        let head = [PACKAGE.to_owned().bytes(), self.best.bytes()];
        let entries = self.entries.iter().map(Stored::bytes);
        let mut sum = 0;
        for piece in head.into_iter().chain(entries) {
            file.write_all(&(piece.len() as u64).to_le_bytes())?;
            file.write_all(&piece)?;
            sum = hash(sum, &piece);
        }
        file.write_all(&u64::MAX.to_le_bytes())?;
        file.write_all(&sum.to_le_bytes())?;
        file.flush()?;
        file.get_ref().sync_all()?;
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

/// Continues a hash by bytes. A change of one bit changes the hash.
fn hash(sum: u64, bytes: &[u8]) -> u64 {
    /// Odd multiplier of the hash: 2⁶⁴ divided by the golden ratio.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(FACTOR).rotate_left(29);
    bytes.chunks(8).fold(mix(sum, bytes.len() as u64), |sum, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(sum, u64::from_le_bytes(word))
    })
}

/// Parses a file; the error is the reason why the file is refused.
fn parsed(bytes: &[u8]) -> std::result::Result<(Vec<Entry>, Option<Best>), String> {
    let rest = &mut &*bytes;
    if taken(rest, MAGIC.len()) != Some(MAGIC) {
        return Err("is no checkpoint of this version of the format".to_owned());
    }
    let damaged = || "is damaged".to_owned();
    let (mut pieces, mut sum) = (Vec::new(), 0);
    loop {
        match u64::load(rest).ok_or_else(damaged)? {
            u64::MAX => break,
            count => {
                let count = usize::try_from(count).map_err(|_| damaged())?;
                let piece = taken(rest, count).ok_or_else(damaged)?;
                sum = hash(sum, piece);
                pieces.push(piece);
            }
        }
    }
    if u64::load(rest) != Some(sum) || !rest.is_empty() || pieces.len() < 2 {
        return Err(damaged());
    }
    let package = String::load(&mut &*pieces[0]).ok_or_else(damaged)?;
    if package != PACKAGE {
        return Err(format!("was written by orthobcd {package}; this is orthobcd {PACKAGE}"));
    }
    let best = Stored::load(&mut &*pieces[1]).ok_or_else(damaged)?;
    let entries = pieces[2..].iter().map(|piece| Entry::load(&mut &**piece));
    let entries: Option<Vec<Entry>> = entries.collect();
    Ok((entries.ok_or_else(damaged)?, best))
}
