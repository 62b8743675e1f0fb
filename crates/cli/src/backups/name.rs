//! The names of backups: `pintle-TIME-REVISION.backup`.

/// A backup in a directory, and what its name says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    pub name: String,
    pub bytes: u64,
    /// When the backup was made, RFC 3339.
    pub time: String,
    pub revision: u64,
}

/// The name of a backup that is made at `time` (RFC 3339, UTC, in seconds).
pub fn of(time: &str, revision: u64) -> String {
    let time: String = time.chars().filter(|c| !matches!(c, '-' | ':')).collect();
    format!("pintle-{time}-{revision}.backup")
}

/// A file of this name and size; `None` if it is not a backup.
pub fn parse(name: &str, bytes: u64) -> Option<StoredFile> {
    let (time, revision) = name.strip_prefix("pintle-")?.strip_suffix(".backup")?.split_once('-')?;
    let digits: Vec<char> = time.chars().collect();
    let is_time = digits.len() == 16
        && digits.iter().enumerate().all(|(i, c)| match i {
            8 => *c == 'T',
            15 => *c == 'Z',
            _ => c.is_ascii_digit(),
        });
    let part = |range: std::ops::Range<usize>| digits[range].iter().collect::<String>();
    if !is_time {
        return None;
    }
    let time =
        format!("{}-{}-{}T{}:{}:{}Z", part(0..4), part(4..6), part(6..8), part(9..11), part(11..13), part(13..15));
    Some(StoredFile { name: name.to_owned(), bytes, time, revision: revision.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        let (name, time) = ("pintle-20261124T193000Z-12.backup", "2026-11-24T19:30:00Z");
        assert_eq!(of(time, 12), name);
        let want = StoredFile { name: name.to_owned(), bytes: 5, time: time.to_owned(), revision: 12 };
        assert_eq!(parse(name, 5), Some(want));
        for other in ["", "pintle-.backup", "pintle-20261124T193000Z-x.backup", "other", ".backup-1.tmp"] {
            assert_eq!(parse(other, 5), None, "{other}");
        }
    }
}
