//! The filter of lists: words, each of which is found in some cell of a row, letter after letter.

/// What was typed, ready to match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    words: Vec<Vec<char>>,
}

impl Pattern {
    /// Words are divided by spaces; case does not matter.
    pub fn new(typed: &str) -> Self {
        let word = |w: &str| w.chars().flat_map(char::to_lowercase).collect();
        Self { words: typed.split_whitespace().map(word).collect() }
    }

    /// Whether everything matches.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether every word is found in one of the cells, its letters in order, others between them.
    pub fn matches<'a>(&self, cells: impl Iterator<Item = &'a str> + Clone) -> bool {
        self.words.iter().all(|word| cells.clone().any(|cell| is_within(word, cell)))
    }
}

fn is_within(word: &[char], cell: &str) -> bool {
    let mut wanted = word.iter();
    let Some(mut next) = wanted.next() else { return true };
    for c in cell.chars().flat_map(char::to_lowercase) {
        if c == *next {
            match wanted.next() {
                Some(n) => next = n,
                None => return true,
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(typed: &str, cells: &[&str]) -> bool {
        Pattern::new(typed).matches(cells.iter().copied())
    }

    #[test]
    fn letters_are_found_in_their_order_with_others_between_them() {
        assert!(finds("mw7", &["mail-worker-7"]));
        assert!(!finds("7mw", &["mail-worker-7"]));
        assert!(finds("", &["anything"]));
    }

    #[test]
    fn every_word_is_found_somewhere_but_no_word_across_two_cells() {
        assert!(finds("mail 42", &["4211", "mail.send"]));
        assert!(!finds("mail 9", &["4211", "mail.send"]));
        assert!(!finds("abcd", &["ab", "cd"]));
    }

    #[test]
    fn case_does_not_matter_in_any_alphabet() {
        assert!(finds("ÄRGER", &["ärger"]));
        assert!(finds("서울", &["배송-서울-1"]));
    }
}
