//! The room `profile`.
