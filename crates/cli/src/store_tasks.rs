//! `pintle store`: what can be done with a data directory beside its server.

use std::io::Write as _;

use store::Summary;

use crate::flags::Store;

/// Does what is asked and says in one line what there is. The error is one line.
pub fn run(task: &Store) -> Result<(), String> {
    let said = match task {
        Store::Check { place } => {
            let summary = store::check(&place.data_dir).map_err(|error| error.to_string())?;
            let history = format!("history from revision {}", summary.compacted);
            let torn = if summary.torn { "; the last write was cut off, as a crash does it" } else { "" };
            format!("{} is whole: {}, {history}{torn}", place.data_dir.display(), content(&summary))
        }
        Store::Backup { place, file } => {
            let summary = store::backup(&place.data_dir, file).map_err(|error| error.to_string())?;
            format!("{} holds {}", file.display(), content(&summary))
        }
        Store::Restore { place, file, bump_revision } => {
            let summary = store::restore(file, &place.data_dir, *bump_revision).map_err(|error| error.to_string())?;
            format!("{} holds {}", place.data_dir.display(), content(&summary))
        }
    };
    let _ = writeln!(std::io::stdout(), "{said}");
    Ok(())
}

fn content(summary: &Summary) -> String {
    format!("{} objects at revision {}", summary.objects, summary.revision)
}
