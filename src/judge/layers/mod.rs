//! Layers: each wraps a judge and is one. Their order is written in `stack.rs`.

mod capability;
mod deadline;
mod observed;
mod retry;

pub use capability::Capability;
pub use deadline::Deadline;
pub use observed::Observed;
pub use retry::Retry;
