//! The room `command`.
