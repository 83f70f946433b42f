//! The room `demo`.
