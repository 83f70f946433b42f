//! The room `worker`.
