//! `pintle store`: checks, backs up and restores data directories.

use std::io::Write as _;
use std::path::Path;

use store::Summary;

use crate::flags::Store;
use crate::logs;

/// The file name for stdout.
const STANDARD: &str = "-";

/// Runs the task and prints its result. The error is one line.
pub fn run(task: &Store) -> Result<(), String> {
    let said = match task {
        Store::Check { place } => {
            let summary = store::check(&place.data_dir).map_err(|error| error.to_string())?;
            let history = format!("history from revision {}", summary.compacted);
            let torn = if summary.torn { "; the last write is incomplete, as after a crash" } else { "" };
            format!("{} is whole: {}, {history}{torn}", place.data_dir.display(), content(&summary))
        }
        Store::Backup { place, file } if file == Path::new(STANDARD) => {
            let summary = store::backup_to(&place.data_dir, std::io::stdout()).map_err(|error| error.to_string())?;
            logs::print_error(&format!("the backup holds {}", content(&summary)));
            return Ok(());
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
