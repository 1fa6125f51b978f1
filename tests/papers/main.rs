//! What the papers prove; `make test-long` runs it.

#[path = "../public/common/mod.rs"]
mod common;
mod theory;
