//! Statements of other sessions, without what they carry.

/// What stands in the place of a literal.
const HIDDEN: &str = "'…'";

/// `sql` with every string literal hidden: a statement that adds a job carries its payload in one. A
/// literal that is cut off in the middle is hidden to the end. Hiding twice changes nothing.
pub fn without_literals(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(at) = rest.find(['\'', '"', '$']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        rest = if let Some(inside) = from.strip_prefix('\'') {
            out.push_str(HIDDEN);
            // after E the backslash escapes; the letter must not be the end of a name
            let escapes = before.ends_with(['e', 'E']) && !before[..before.len() - 1].ends_with(is_name);
            after_quote(inside, '\'', escapes)
        } else if let Some(inside) = from.strip_prefix('"') {
            // a name, not a value
            let after = after_quote(inside, '"', false);
            out.push_str(&from[..from.len() - after.len()]);
            after
        } else if let Some(tag) = dollar_tag(from).filter(|_| !before.ends_with(is_name)) {
            out.push_str(HIDDEN);
            let inside = &from[tag.len()..];
            inside.find(tag).map_or("", |end| &inside[end + tag.len()..])
        } else {
            out.push('$');
            &from[1..]
        };
    }
    out.push_str(rest);
    out
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// What follows the quoted text that `inside` begins in; a doubled quote does not end it.
fn after_quote(inside: &str, quote: char, escapes: bool) -> &str {
    let mut chars = inside.char_indices().peekable();
    while let Some((i, c)) = chars.next() {
        if escapes && c == '\\' {
            chars.next();
        } else if c == quote {
            match chars.peek() {
                Some((_, next)) if *next == quote => {
                    chars.next();
                }
                _ => return &inside[i + 1..],
            }
        }
    }
    ""
}

/// `$$` or `$tag$` at the beginning of `text`; `$1` is a parameter.
fn dollar_tag(text: &str) -> Option<&str> {
    let end = text[1..].find('$')? + 1;
    let tag = &text[1..end];
    let is_tag = tag.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !tag.starts_with(|c: char| c.is_ascii_digit());
    is_tag.then(|| &text[..=end])
}

#[cfg(test)]
mod tests {
    use super::without_literals;

    #[test]
    fn values_are_hidden_and_names_are_not() {
        for (sql, shown) in [
            ("select 1", "select 1"),
            ("insert into t values (1, 'a secret')", "insert into t values (1, '…')"),
            ("select 'it''s', x", "select '…', x"),
            (r"select e'it\'s', x", "select e'…', x"),
            (r"select name'c:\', x", "select name'…', x"),
            ("select $1, $2 from \"o'clock\"", "select $1, $2 from \"o'clock\""),
            ("select $$a 'b'$$, $q$ $$ $q$, x", "select '…', '…', x"),
            ("select enqueue('t', '{\"a\": \"b", "select enqueue('…', '…'"),
            ("select $x$ cut off", "select '…'"),
            ("select 'é', '…'", "select '…', '…'"),
            ("listen \"a\"", "listen \"a\""),
            ("", ""),
        ] {
            assert_eq!(without_literals(sql), shown);
            assert_eq!(without_literals(shown), shown, "twice");
        }
    }
}
