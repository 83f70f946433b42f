//! The room `term`.
