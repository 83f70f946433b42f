//! The sampler and its probes, and the operator that carries out intents.

mod audit;
mod ending;
mod feed;
mod flow;
mod held;
mod locks;
mod operator;
mod pass;
mod pins;
mod probes;
mod sampler;
mod slow;

pub use audit::{AuditFile, operator_name};
pub use feed::{Feed, note};
pub use operator::{Operator, OperatorError, Stopper};
pub use sampler::{MonitorError, Sampler, Setup};
pub use slow::Slow;
