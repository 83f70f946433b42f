//! The one key table.
