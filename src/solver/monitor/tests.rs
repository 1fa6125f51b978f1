//! Tests of the monitors that forward calls.

use super::*;

/// A monitor with a checkpoint.
struct Kept(Checkpoint);

impl Monitor for Kept {
    fn checkpoint(&mut self) -> Option<&mut Checkpoint> {
        Some(&mut self.0)
    }
}

#[test]
fn a_quiet_monitor_keeps_its_checkpoint() {
    let path = std::env::temp_dir().join(format!("orthobcd-quiet-{}", std::process::id()));
    let mut kept = Kept(Checkpoint::open(&path, 1e6).unwrap());
    assert!(Quiet(&mut kept).checkpoint().is_some());
    assert!(Quiet(&mut Unwatched).checkpoint().is_none());
    // Nothing has been written, or the file is ours.
    let _ = std::fs::remove_file(path);
}
