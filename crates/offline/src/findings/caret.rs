//! The part of a source line that a caret points at.

use machinery::yaml::{Located, Position};

use super::Place;

/// The place of a located field: a scalar if the finding is about its value, or the key of anything else.
pub fn place(located: &Located, is_value: bool, line: impl Fn(usize) -> String) -> Place {
    let is_value = located.is_scalar && is_value;
    let at = if is_value { located.value } else { located.key.unwrap_or(located.value) };
    let source = line(at.line);
    let rest: Vec<char> = source.chars().skip(at.column - 1).collect();
    let width = if is_value { value_width(&rest) } else { key_width(&rest) };
    new(at, width.max(1), source)
}

/// The place of a whole line, without its indentation.
pub fn whole_line(number: usize, source: String) -> Place {
    let column = source.chars().take_while(|letter| letter.is_whitespace()).count() + 1;
    let width = source.trim().chars().count().max(1);
    new(Position { line: number, column }, width, source)
}

fn new(at: Position, width: usize, source: String) -> Place {
    Place { line: at.line, column: at.column, width, source }
}

/// The width of a scalar at the beginning of a text.
fn value_width(text: &[char]) -> usize {
    let quoted = |quote: char| {
        let mut letters = text.iter().enumerate().skip(1);
        while let Some((i, letter)) = letters.next() {
            match letter {
                '\\' if quote == '"' => drop(letters.next()),
                letter if *letter == quote => return i + 1,
                _ => {}
            }
        }
        text.len()
    };
    match text.first() {
        Some(quote @ ('"' | '\'')) => quoted(*quote),
        _ => {
            let ends = |(i, letter): (usize, &char)| match letter {
                '#' => i > 0 && text[i - 1].is_whitespace(),
                ',' | '}' | ']' => text.get(i + 1).is_none_or(|next| next.is_whitespace() || ",}]".contains(*next)),
                _ => false,
            };
            let end = text.iter().enumerate().position(ends).unwrap_or(text.len());
            text[..end].iter().rposition(|letter| !letter.is_whitespace()).map_or(0, |last| last + 1)
        }
    }
}

fn key_width(text: &[char]) -> usize {
    match text.first() {
        Some('"' | '\'') => value_width(text),
        Some('{' | '[' | '-') => 1,
        _ => text.iter().position(|letter| *letter == ':').unwrap_or_else(|| value_width(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths() {
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        for (text, value, key) in [
            ("11", 2, 2),
            ("a b # c", 3, 3),
            ("\"a \\\" b\" # c", 8, 8),
            ("'a', b", 3, 3),
            ("x, {d: 1}]", 1, 5),
            ("length: 1", 9, 6),
            ("a#b", 3, 3),
        ] {
            assert_eq!((value_width(&letters(text)), key_width(&letters(text))), (value, key), "{text}");
        }
    }
}
