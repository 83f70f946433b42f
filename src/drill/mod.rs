//! The room `drill`.
