//! Character classes: Perl, POSIX and Unicode names as Go knows them.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

/// A class of the given ranges.
pub(super) fn of(ranges: &[(char, char)]) -> ClassUnicode {
    ClassUnicode::new(ranges.iter().map(|&(a, b)| ClassUnicodeRange::new(a, b)))
}

/// The same class with all simple case foldings added.
pub(super) fn fold(mut class: ClassUnicode) -> ClassUnicode {
    // this fails only if the Unicode tables are not compiled in
    let _ = class.try_case_fold_simple();
    class
}

/// `\d`, `\S` and so on: the class and whether it is negated.
pub(super) fn perl(letter: u8) -> Option<(&'static [(char, char)], bool)> {
    const DIGIT: &[(char, char)] = &[('0', '9')];
    const SPACE: &[(char, char)] = &[('\t', '\n'), ('\x0c', '\r'), (' ', ' ')];
    const WORD: &[(char, char)] = &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];
    Some(match letter {
        b'd' => (DIGIT, false),
        b'D' => (DIGIT, true),
        b's' => (SPACE, false),
        b'S' => (SPACE, true),
        b'w' => (WORD, false),
        b'W' => (WORD, true),
        _ => return None,
    })
}

/// `alpha` of `[:alpha:]`.
pub(super) fn posix(name: &str) -> Option<&'static [(char, char)]> {
    Some(match name {
        "alnum" => &[('0', '9'), ('A', 'Z'), ('a', 'z')],
        "alpha" => &[('A', 'Z'), ('a', 'z')],
        "ascii" => &[('\0', '\x7f')],
        "blank" => &[('\t', '\t'), (' ', ' ')],
        "cntrl" => &[('\0', '\x1f'), ('\x7f', '\x7f')],
        "digit" => &[('0', '9')],
        "graph" => &[('!', '~')],
        "lower" => &[('a', 'z')],
        "print" => &[(' ', '~')],
        "punct" => &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')],
        "space" => &[('\t', '\r'), (' ', ' ')],
        "upper" => &[('A', 'Z')],
        "word" => &[('0', '9'), ('A', 'Z'), ('a', 'z'), ('_', '_')],
        "xdigit" => &[('0', '9'), ('A', 'F'), ('a', 'f')],
        _ => return None,
    })
}

/// A name as Go compares it: with one leading capital, without blanks, dashes and underscores.
fn canonical(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')) {
        out.push(if out.is_empty() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() });
    }
    out
}

/// `Greek` of `\p{Greek}`.
pub(super) fn unicode(name: &str) -> Option<ClassUnicode> {
    let name = canonical(name);
    match name.as_str() {
        "Any" => return Some(of(&[('\0', char::MAX)])),
        "Ascii" => return Some(of(&[('\0', '\x7f')])),
        "Assigned" => {
            let mut class = table("gc=Cn")?;
            class.negate();
            return Some(class);
        }
        "Cs" | "Surrogate" => return Some(ClassUnicode::empty()),
        _ => {}
    }
    if SCRIPTS.split(' ').any(|script| script == name) {
        return table(&format!("sc={name}"));
    }
    // Go knows all categories and their aliases, but no prefix `Is`
    let may_be_category = name.bytes().all(|byte| byte.is_ascii_alphabetic()) && !name.starts_with("Is");
    if may_be_category { table(&format!("gc={name}")) } else { None }
}

/// The scripts that Go finds. Names with an underscore are lost in its canonical form.
const SCRIPTS: &str = "Adlam Ahom Arabic Armenian Avestan Balinese Bamum Batak Bengali Bhaiksuki Bopomofo Brahmi Braille Buginese \
    Buhid Carian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot Cyrillic Deseret Devanagari Dogra \
    Duployan Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati Gurmukhi Han Hangul \
    Hanunoo Hatran Hebrew Hiragana Inherited Javanese Kaithi Kannada Katakana Kawi Kharoshthi Khmer Khojki \
    Khudawadi Lao Latin Lepcha Limbu Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen \
    Medefaidrin Miao Modi Mongolian Mro Multani Myanmar Nabataean Nandinagari Newa Nko Nushu Ogham Oriya Osage \
    Osmanya Palmyrene Phoenician Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham Sinhala Sogdian Soyombo \
    Sundanese Syriac Tagalog Tagbanwa Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Toto \
    Ugaritic Vai Vithkuqi Wancho Yezidi Yi";

fn table(query: &str) -> Option<ClassUnicode> {
    let hir = regex_syntax::parse(&format!("\\p{{{query}}}")).ok()?;
    match hir.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class),
        HirKind::Literal(literal) => {
            let c = std::str::from_utf8(&literal.0).ok()?.chars().next()?;
            Some(of(&[(c, c)]))
        }
        _ => None,
    }
}
