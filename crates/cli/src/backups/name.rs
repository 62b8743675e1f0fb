//! The names of backups: `pintle-TIME-REVISION.backup`, with `.age` behind it if the backup is encrypted. Their order is that
//! of the times.

/// A file at a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    pub name: String,
    pub bytes: u64,
}

/// What the name of a backup says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupName {
    /// When the backup was made, RFC 3339.
    pub time: String,
    pub revision: u64,
    pub encrypted: bool,
}

/// The name of a backup that is made at `time` (RFC 3339, UTC, in seconds).
pub fn of(time: &str, revision: u64, encrypted: bool) -> String {
    let time: String = time.chars().filter(|c| !matches!(c, '-' | ':')).collect();
    let age = if encrypted { ".age" } else { "" };
    format!("pintle-{time}-{revision}.backup{age}")
}

/// What a name says; `None` for names of other files.
pub fn parse(name: &str) -> Option<BackupName> {
    let (stem, encrypted) = match name.strip_suffix(".age") {
        Some(stem) => (stem, true),
        None => (name, false),
    };
    let (time, revision) = stem.strip_prefix("pintle-")?.strip_suffix(".backup")?.split_once('-')?;
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
    Some(BackupName { time, revision: revision.parse().ok()?, encrypted })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for (encrypted, name) in
            [(false, "pintle-20261124T193000Z-12.backup"), (true, "pintle-20261124T193000Z-12.backup.age")]
        {
            let time = "2026-11-24T19:30:00Z";
            assert_eq!(of(time, 12, encrypted), name);
            assert_eq!(parse(name), Some(BackupName { time: time.to_owned(), revision: 12, encrypted }));
        }
        for other in ["", "pintle-.backup", "pintle-20261124T193000Z-x.backup", "other", ".backup-1.tmp"] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
