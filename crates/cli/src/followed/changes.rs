//! Waiting for changes of files: by inotify on Linux, and by looking at them elsewhere.

#[cfg(target_os = "linux")]
pub use self::linux::Changes;
#[cfg(not(target_os = "linux"))]
pub use self::polling::Changes;

/// When files are looked at again although nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Change,
    After(std::time::Duration),
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::ffi::OsStr;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use base::clock;
    use client::{Context as _, Result};
    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
    use tokio::sync::mpsc;
    use tokio::time::{Instant, timeout, timeout_at};

    use super::Next;
    use crate::limits::{
        FOLLOWED_EVENTS, FOLLOWED_QUIET, FOLLOWED_QUIET_MAX, FOLLOWED_STACK_BYTES, FOLLOWED_WRITE_MAX,
    };

    const FAILED: &str = "files cannot be watched";

    /// A change that the system has reported.
    struct Event {
        directory: i32,
        what: ReadFlags,
        name: Option<PathBuf>,
    }

    /// The directories that are watched.
    pub struct Changes {
        inotify: Arc<OwnedFd>,
        events: mpsc::Receiver<Event>,
        directories: HashMap<i32, PathBuf>,
        /// Files that a program has open for writing, and since when: half of a file is not its content.
        written: HashMap<PathBuf, Instant>,
    }

    /// Passes events on until there is no receiver any more. A thread waits for them, since waiting within the runtime needs `unsafe`
    /// code.
    fn read(inotify: &OwnedFd, events: &mpsc::Sender<Event>) {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(inotify, &mut buffer);
        while let Ok(event) = reader.next() {
            let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()).into());
            let event = Event { directory: event.wd(), what: event.events(), name };
            if events.blocking_send(event).is_err() {
                return;
            }
        }
    }

    impl Changes {
        pub fn begin() -> Result<Changes> {
            let inotify = Arc::new(inotify::init(CreateFlags::CLOEXEC).context(FAILED)?);
            let (sender, events) = mpsc::channel(FOLLOWED_EVENTS);
            let (read_from, thread) = (inotify.clone(), std::thread::Builder::new().stack_size(FOLLOWED_STACK_BYTES));
            thread.name("file events".to_owned()).spawn(move || read(&read_from, &sender)).context(FAILED)?;
            Ok(Changes { inotify, events, directories: HashMap::new(), written: HashMap::new() })
        }

        /// Watches a directory, also if it is watched already.
        pub fn watch(&mut self, directory: &Path) {
            let events = WatchFlags::CREATE
                | WatchFlags::MODIFY
                | WatchFlags::CLOSE_WRITE
                | WatchFlags::MOVE
                | WatchFlags::DELETE
                | WatchFlags::DELETE_SELF;
            match inotify::add_watch(&*self.inotify, directory, events | WatchFlags::ONLYDIR) {
                Ok(id) => drop(self.directories.insert(id, directory.to_owned())),
                // one that is gone is missed when it is read
                Err(rustix::io::Errno::NOENT) => {}
                Err(error) => tracing::warn!(directory = %directory.display(), %error, "a directory cannot be watched"),
            }
        }

        /// Whether a program is writing a file.
        pub fn is_written(&self, path: &Path) -> bool {
            self.written.contains_key(path)
        }

        /// Returns when a file has changed, or at the given time. Changes that follow each other are one.
        pub async fn wait(&mut self, next: Next) {
            let mut limit = match next {
                Next::After(time) => Some(time),
                Next::Change => None,
            };
            if !self.written.is_empty() {
                limit = Some(limit.map_or(FOLLOWED_WRITE_MAX, |limit| limit.min(FOLLOWED_WRITE_MAX)));
            }
            let changed = match limit {
                Some(limit) => timeout(limit, self.change()).await.is_ok(),
                None => {
                    self.change().await;
                    true
                }
            };
            if changed {
                let end = clock::instant() + FOLLOWED_QUIET_MAX;
                while timeout_at(end.min(clock::instant() + FOLLOWED_QUIET), self.change()).await.is_ok() {}
            }
            // such as a log, which is never closed
            self.written.retain(|_, since| since.elapsed() < FOLLOWED_WRITE_MAX);
        }

        /// Waits for an event that shows a change.
        async fn change(&mut self) {
            loop {
                let Some(Event { directory, what, name }) = self.events.recv().await else {
                    return std::future::pending().await;
                };
                if what.contains(ReadFlags::IGNORED) {
                    self.directories.remove(&directory);
                    continue;
                }
                let path = self.directories.get(&directory).zip(name).map(|(directory, name)| directory.join(name));
                match path {
                    Some(path) if what.contains(ReadFlags::MODIFY) => {
                        self.written.entry(path).or_insert_with(clock::instant);
                    }
                    path => {
                        path.map(|path| self.written.remove(&path));
                        return;
                    }
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod polling {
    use std::path::Path;

    use client::Result;

    use super::Next;
    use crate::limits::FOLLOWED_LOOK;

    pub struct Changes;

    impl Changes {
        pub fn begin() -> Result<Changes> {
            Ok(Changes)
        }

        pub fn watch(&mut self, _directory: &Path) {}

        pub fn is_written(&self, _path: &Path) -> bool {
            false
        }

        pub async fn wait(&mut self, _next: Next) {
            tokio::time::sleep(FOLLOWED_LOOK).await;
        }
    }
}
