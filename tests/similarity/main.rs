//! Text similarity, checks and formulas of graders, against their reference libraries and published scores.
//!
//! Where the expected values come from: `tests/vectors/similarity/README.md`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests fail by panicking and print how close they are"
)]

mod checks;
mod cosine;
mod formula;
mod fuzzy;
#[cfg(feature = "server")]
mod graders;
mod keywords;
mod nltk;
mod published;
mod vectors;
