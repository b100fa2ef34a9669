//! Evaluation of LLM outputs: a library of metrics, and the service around it.
//!
//! Without the feature `server` (on by default) only [`metrics`] is here: text in, number out,
//! no async, no I/O, no wire types.

// A new arm of a oneof has to stop the build: the matches are the table of contents of the service.
#![deny(clippy::wildcard_enum_match_arm, clippy::match_wildcard_for_single_variants)]
// A panic that a request can reach is an outage; `expect` says why it cannot happen.
#![deny(clippy::unwrap_used, clippy::panic, clippy::todo)]
// Only the command line speaks to the terminal.
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]
// An exception names its reason, and speaks up when it is no longer needed.
#![deny(clippy::allow_attributes)]

pub mod metrics;

#[cfg(feature = "server")]
pub mod catalog;
#[cfg(feature = "server")]
pub mod cli;
#[cfg(feature = "server")]
pub mod config;
#[cfg(feature = "server")]
pub mod embeddings;
#[cfg(feature = "server")]
pub mod error;
#[cfg(feature = "server")]
pub mod evaluate;
#[cfg(feature = "server")]
pub mod grader;
#[cfg(feature = "server")]
pub mod judge;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod telemetry;
#[cfg(feature = "server")]
pub mod wire;
#[cfg(feature = "server")]
pub mod workers;
