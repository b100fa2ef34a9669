//! Layers: each wraps a judge and is one. Their order is written in `stack.rs`.

mod capability;
mod deadline;
mod observed;
mod retry;
mod together;

pub use capability::Capability;
pub use deadline::Deadline;
pub(crate) use deadline::in_time;
pub use observed::Observed;
pub use retry::Retry;
pub(crate) use retry::rest;
pub use together::Together;
