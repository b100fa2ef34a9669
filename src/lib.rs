//! Evaluation of LLM outputs: a library of metrics, and the service around it.
//!
//! Without the feature `server` (on by default) only [`metrics`] is here: text in, number out,
//! no async, no I/O, no wire types.

pub mod metrics;

#[cfg(feature = "server")]
pub mod catalog;
#[cfg(feature = "server")]
pub mod cli;
#[cfg(feature = "server")]
pub mod config;
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
pub mod wire;
#[cfg(feature = "server")]
pub mod workers;
