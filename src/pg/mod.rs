//! The room `pg`.
