//! Numbers of things in messages.

/// A number with its noun, whose plural ends in s.
pub fn counted(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// `is` or `are`.
pub fn are(number: usize) -> &'static str {
    if number == 1 { "is" } else { "are" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_agree_with_numbers() {
        assert_eq!([0, 1, 2].map(|number| counted(number, "object")), ["0 objects", "1 object", "2 objects"]);
        assert_eq!([0, 1, 2].map(are), ["are", "is", "are"]);
    }
}
