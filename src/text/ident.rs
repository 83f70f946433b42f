//! SQL identifiers, literals and channel names, quoted exactly.
//!
//! Manual: "SQL Syntax, Lexical Structure". A quoted identifier keeps its case and takes any
//! character but NUL; a double quote inside is doubled.

/// Longest channel name the server keeps, in bytes (NAMEDATALEN - 1). LISTEN cuts a longer one with a
/// mere notice and is then deaf, so it is refused before.
pub const CHANNEL_MAX_BYTES: usize = 63;

/// `name` as a quoted identifier.
pub fn quote_ident(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// `schema.table` with both parts quoted.
pub fn qualified(schema: &str, table: &str) -> String {
    format!("{}.{}", quote_ident(schema), quote_ident(table))
}

/// `value` as a string literal that reads the same whatever `standard_conforming_strings` says.
pub fn quote_literal(value: &str) -> String {
    if value.contains('\\') {
        format!("E'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
    } else {
        format!("'{}'", value.replace('\'', "''"))
    }
}

/// Why a channel name cannot be listened to, or `None` when it can: 1–63 bytes, no NUL.
pub fn channel_problem(name: &str) -> Option<String> {
    if name.is_empty() {
        Some("the channel name is empty; it needs 1 to 63 bytes".to_owned())
    } else if name.len() > CHANNEL_MAX_BYTES {
        Some(format!(
            "the channel name has {} bytes; PostgreSQL keeps {CHANNEL_MAX_BYTES}, choose a shorter one",
            name.len()
        ))
    } else if name.contains('\0') {
        Some("the channel name holds a NUL byte".to_owned())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_inside_identifiers_are_doubled() {
        assert_eq!(quote_ident("a\"b.C"), "\"a\"\"b.C\"");
        assert_eq!(qualified("My Schema", "t.x"), "\"My Schema\".\"t.x\"");
    }

    #[test]
    fn literals_survive_quotes_and_backslashes() {
        assert_eq!(quote_literal("o'clock"), "'o''clock'");
        assert_eq!(quote_literal("a\\'b"), "E'a\\\\''b'");
    }

    #[test]
    fn a_channel_has_1_to_63_bytes() {
        assert_eq!(channel_problem("pgwake_work"), None);
        assert_eq!(channel_problem(&"x".repeat(63)), None);
        assert!(channel_problem(&"x".repeat(64)).unwrap().contains("64 bytes"));
        // bytes, not characters
        assert!(channel_problem(&"界".repeat(22)).unwrap().contains("66 bytes"));
        assert!(channel_problem("").unwrap().contains("empty"));
    }
}
