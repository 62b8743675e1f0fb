//! The audit log: one line of JSON per event, in a file that is rotated by size.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::metrics::METRICS;
use base::notice::Notices;
use base::{clock, task};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use crate::limits;

/// When an event is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogMode {
    /// Before the request continues.
    Blocking,
    /// Asynchronously; events are dropped when the queue is full.
    Batch,
}

/// The file and its limits; 0 for no limit.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// `-` for stdout.
    pub path: PathBuf,
    pub mode: LogMode,
    /// Maximum size of a file, in bytes.
    pub size_max: u64,
    /// Age at which rotated files are removed.
    pub age_max: Duration,
    /// Maximum number of rotated files.
    pub backups_max: usize,
    /// Whether rotated files are compressed.
    pub compress: bool,
}

enum LogEntry {
    Line(Vec<u8>),
    Flush(oneshot::Sender<()>),
}

pub struct Log {
    file: Arc<Mutex<Rotating>>,
    queue: Option<LogQueue>,
}

/// The queue of lines, and its receiver until the writer is started.
struct LogQueue {
    sender: mpsc::Sender<LogEntry>,
    receiver: Mutex<Option<mpsc::Receiver<LogEntry>>>,
}

/// The file cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {source}", path = .path.display())]
pub struct OpenLogError {
    path: PathBuf,
    source: io::Error,
}

impl Log {
    pub fn open(options: LogOptions) -> Result<Log, OpenLogError> {
        let queue = (options.mode == LogMode::Batch).then(|| mpsc::channel(limits::AUDIT_BUFFER_EVENTS));
        let path = options.path.clone();
        let file = Rotating::open(options).map_err(|source| OpenLogError { path, source })?;
        let file = Arc::new(Mutex::new(file));
        let queue = queue.map(|(sender, receiver)| LogQueue { sender, receiver: Mutex::new(Some(receiver)) });
        Ok(Log { file, queue })
    }

    /// Starts to write queued lines.
    pub fn start(&self) {
        let Some(queue) = &self.queue else { return };
        let Some(mut receiver) = queue.receiver.lock().take() else { return };
        let file = self.file.clone();
        task::spawn("audit log", async move {
            while let Some(entry) = receiver.recv().await {
                match entry {
                    LogEntry::Line(line) => write(&file, &line),
                    LogEntry::Flush(done) => drop(done.send(())),
                }
            }
        });
    }

    pub fn write(&self, line: &[u8]) {
        match &self.queue {
            None => write(&self.file, line),
            Some(queue) if queue.sender.try_send(LogEntry::Line(line.to_vec())).is_err() => {
                lost("log", &"the queue is full")
            }
            Some(_) => {}
        }
    }

    /// Opens the file at the path again, since another program may have renamed the one that is open.
    pub fn reopen(&self) {
        if let Err(error) = self.file.lock().reopen() {
            tracing::error!(%error, "the audit log cannot be opened again; events go on to the file that is open");
        }
    }

    pub async fn flush(&self) {
        if let Some(queue) = &self.queue {
            let (done, flushed) = oneshot::channel();
            if queue.sender.send(LogEntry::Flush(done)).await.is_ok() {
                let _ = flushed.await;
            }
        }
    }
}

fn write(file: &Mutex<Rotating>, line: &[u8]) {
    if let Err(error) = file.lock().write(line) {
        lost("log", &error);
    }
}

/// Counts a dropped event. The line of the log has the number of those since the last one.
pub fn lost(plugin: &'static str, why: &dyn std::fmt::Display) {
    static LOST: Notices = Notices::new();
    METRICS.audit_error(plugin);
    if let Some(more) = LOST.due(plugin) {
        tracing::error!(plugin, %why, more, "an audit event is lost");
    }
}

/// A file that is rotated by size.
struct Rotating {
    options: LogOptions,
    /// Held while rotated files are compressed and removed.
    cleaning: Arc<Mutex<()>>,
    file: Option<File>,
    size: u64,
    /// Whether the last event was written incompletely.
    torn: bool,
}

impl Rotating {
    fn open(options: LogOptions) -> io::Result<Rotating> {
        if options.path == Path::new("-") {
            return Ok(Rotating { options, cleaning: Arc::default(), file: None, size: 0, torn: false });
        }
        if let Some(directory) = options.path.parent() {
            fs::create_dir_all(directory)?;
        }
        let file = append_to(&options.path)?;
        let size = file.metadata()?.len();
        Ok(Rotating { options, cleaning: Arc::default(), file: Some(file), size, torn: false })
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let added = line.len() as u64;
        let is_full = self.options.size_max > 0 && self.size > 0 && self.size + added > self.options.size_max;
        if is_full
            && self.file.is_some()
            && let Err(error) = self.rotate()
        {
            // the event goes to the file that is open, and the next event retries the rotation
            tracing::warn!(%error, "the audit log cannot be rotated");
        }
        let Some(file) = &mut self.file else { return io::stdout().lock().write_all(line) };
        // a failed write may have left a part of its event
        let result = if self.torn { file.write_all(b"\n") } else { Ok(()) };
        let result = result.and_then(|()| file.write_all(line));
        self.torn = result.is_err();
        self.size += added;
        result
    }

    fn reopen(&mut self) -> io::Result<()> {
        if self.file.is_some() {
            let file = append_to(&self.options.path)?;
            (self.size, self.torn) = (file.metadata()?.len(), false);
            self.file = Some(file);
        }
        Ok(())
    }

    /// Renames the file to one with the current time in its name and opens a new one.
    fn rotate(&mut self) -> io::Result<()> {
        let rotated_path = self.rotated_path(clock::machine_micros());
        match fs::rename(&self.options.path, &rotated_path) {
            // an earlier attempt has renamed it
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            renamed => renamed?,
        }
        self.file = Some(append_to(&self.options.path)?);
        self.size = 0;
        let (options, cleaning) = (self.options.clone(), self.cleaning.clone());
        // requests do not wait for compression and removal
        let cleaner = std::thread::Builder::new().name("audit log".to_owned());
        let started = cleaner.spawn(move || {
            let _guard = cleaning.lock();
            if let Err(error) = clean_up(&options) {
                tracing::warn!(%error, "rotated audit logs cannot be compressed or removed");
            }
        });
        if let Err(error) = started {
            tracing::warn!(%error, "rotated audit logs are compressed and removed after the next rotation");
        }
        Ok(())
    }

    /// The path of a rotated file, such as `audit-2026-01-02T03-04-05.678.log` for `audit.log`, with the first free time since
    /// `micros`.
    fn rotated_path(&self, micros: i64) -> PathBuf {
        let (stem, extension) = parts(&self.options.path);
        let mut micros = micros;
        loop {
            let time = machinery::time::rfc3339_micro(micros).replace(':', "-");
            let path = self.options.path.with_file_name(format!("{stem}-{}{extension}", &time[..23]));
            if !path.exists() && !compressed(&path).exists() {
                return path;
            }
            micros += 1000;
        }
    }
}

/// Prefix and suffix around the time in the names of rotated files.
fn parts(path: &Path) -> (String, String) {
    let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let extension = path.extension().map(|extension| format!(".{}", extension.to_string_lossy()));
    (text(path.file_stem()), extension.unwrap_or_default())
}

fn append_to(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Compresses rotated files, and removes those above the limits of number and age.
fn clean_up(options: &LogOptions) -> io::Result<()> {
    let (stem, extension) = parts(&options.path);
    let directory = options.path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut rotated: Vec<PathBuf> = vec![];
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let time = name.strip_suffix(".gz").unwrap_or(&name).strip_suffix(extension.as_str());
        let time = time.and_then(|name| name.strip_prefix(stem.as_str())).and_then(|name| name.strip_prefix('-'));
        if time.is_some_and(|time| time.len() == 23) {
            rotated.push(path);
        }
    }
    // sorted by name, which is by time, newest first
    rotated.sort_by(|a, b| b.cmp(a));
    for (i, path) in rotated.into_iter().enumerate() {
        let age = fs::metadata(&path)?.modified()?.elapsed().unwrap_or_default();
        let exceeds_count = options.backups_max > 0 && i >= options.backups_max;
        if exceeds_count || (!options.age_max.is_zero() && age > options.age_max) {
            fs::remove_file(&path)?;
        } else if options.compress && path.extension().is_none_or(|extension| extension != "gz") {
            compress(&path)?;
        }
    }
    Ok(())
}

fn compressed(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.gz", path.display()))
}

fn compress(path: &Path) -> io::Result<()> {
    let target = append_to(&compressed(path))?;
    // an incomplete file that a crash has left
    target.set_len(0)?;
    let mut encoder = flate2::write::GzEncoder::new(target, flate2::Compression::default());
    io::copy(&mut File::open(path)?, &mut encoder)?;
    encoder.finish()?.sync_all()?;
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_event_is_lost_while_the_log_cannot_be_rotated() {
        let parent = std::env::temp_dir().join(format!("pintle-audit-rotation-{}", std::process::id()));
        let (directory, away) = (parent.join("logs"), parent.join("away"));
        let options = LogOptions {
            path: directory.join("audit.log"),
            mode: LogMode::Blocking,
            size_max: 25,
            age_max: Duration::ZERO,
            backups_max: 0,
            compress: false,
        };
        let mut file = Rotating::open(options.clone()).unwrap();
        let mut written = 0;
        let mut write = |count: usize| {
            for _ in 0..count {
                file.write(format!("event {written:04}\n").as_bytes()).unwrap();
                written += 1;
            }
        };
        write(4);
        // while the directory has another name, no file can be renamed or created in it
        fs::rename(&directory, &away).unwrap();
        write(5);
        fs::rename(&away, &directory).unwrap();
        write(4);
        let files = fs::read_dir(&directory).unwrap().map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
        let mut events: Vec<String> =
            files.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
        events.sort();
        assert_eq!(events, (0..13).map(|i| format!("event {i:04}")).collect::<Vec<_>>());
        assert!(fs::metadata(&options.path).unwrap().len() <= 25, "the log is rotated again");
        fs::remove_dir_all(parent).unwrap();
    }

    #[test]
    fn log_that_was_moved_is_opened_again() {
        let directory = std::env::temp_dir().join(format!("pintle-audit-reopened-{}", std::process::id()));
        let path = directory.join("audit.log");
        let options = LogOptions {
            path: path.clone(),
            mode: LogMode::Blocking,
            size_max: 0,
            age_max: Duration::ZERO,
            backups_max: 0,
            compress: false,
        };
        let log = Log::open(options).unwrap();
        log.write(b"one\n");
        let moved = directory.join("moved");
        fs::rename(&path, &moved).unwrap();
        log.write(b"two\n");
        log.reopen();
        log.write(b"three\n");
        log.reopen();
        log.write(b"four\n");
        assert_eq!([&moved, &path].map(|path| fs::read_to_string(path).unwrap()), ["one\ntwo\n", "three\nfour\n"]);
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn large_log_files_are_rotated() {
        let directory = std::env::temp_dir().join(format!("pintle-audit-{}", std::process::id()));
        let options = LogOptions {
            path: directory.join("audit.log"),
            mode: LogMode::Blocking,
            size_max: 25,
            age_max: Duration::ZERO,
            backups_max: 2,
            compress: true,
        };
        let mut file = Rotating::open(options.clone()).unwrap();
        for _ in 0..9 {
            file.write(b"0123456789\n").unwrap();
        }
        // cleaned up here, so that a cleaner that is still waiting finds nothing to do
        let cleaning = file.cleaning.lock();
        clean_up(&options).unwrap();
        drop(cleaning);
        let all = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let names: Vec<String> = all.collect();
        assert_eq!(names.iter().filter(|name| name.ends_with(".log.gz")).count(), 2, "{names:?}");
        assert_eq!(fs::read(&options.path).unwrap().len(), 11);
        let again = Rotating::open(options).unwrap();
        assert_eq!(again.size, 11);
        fs::remove_dir_all(directory).unwrap();
    }
}
