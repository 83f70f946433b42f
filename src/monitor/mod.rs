//! The sampler and its probes, and the operator that carries out intents.

mod feed;

pub use feed::Feed;
