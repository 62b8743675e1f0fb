//! A server that processes share, such as the workers of a test run: it ends when the last of them has ended.
//!
//! A Unix socket stands for the server. Each process that holds a connection to it is a user; the kernel closes the
//! connections of a process, however the process ends. Of several servers for one socket, the one with the lock serves, and the
//! others end once it accepts connections.

use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use clap::Args;
use client::{Access, Context as _, Result, fail};
use machinery::{Value, json};
use tokio::sync::mpsc;

use crate::limits;

#[derive(Args)]
#[command(next_help_heading = "Serving")]
pub struct SharingFlags {
    /// Share the server between processes: each connects to this Unix socket, reads a line of JSON with the URL, the credentials and
    /// the version, and stays connected. The server stops when the last one has disconnected, and removes the socket, its log and,
    /// if nothing is stored in it, the data directory. If another server listens on the socket, this one exits at once. The
    /// directory of the socket is created if it does not exist, and must be private.
    #[arg(long, value_name = "SOCKET")]
    exit_with_users: Option<PathBuf>,
}

/// The socket of a server that is shared. It is removed when this is dropped.
pub struct Shared {
    socket: PathBuf,
    lock_file: PathBuf,
    _lock: File,
    users: Arc<Users>,
    /// Files to remove at the end.
    directory: Option<PathBuf>,
}

#[derive(Default)]
struct Users {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The line that users get, once the server is ready.
    line: Option<Arc<str>>,
    count: usize,
    had_one: bool,
    has_ended: bool,
}

/// Whether this process serves.
pub enum Role {
    /// It serves, and may be shared.
    Serves(Option<Shared>),
    /// Another server has the socket, and accepts connections.
    Superfluous,
}

impl SharingFlags {
    /// Takes the socket, if one is named. Fails with a one-line message.
    pub fn role(&self, ends: &mpsc::Sender<&'static str>) -> Result<Role> {
        let Some(socket) = &self.exit_with_users else { return Ok(Role::Serves(None)) };
        Ok(Shared::take(socket, ends)?.map_or(Role::Superfluous, |shared| Role::Serves(Some(shared))))
    }
}

impl Shared {
    fn take(socket: &Path, ends: &mpsc::Sender<&'static str>) -> Result<Option<Shared>> {
        let about = || format!("--exit-with-users: {}", socket.display());
        let lock_file = socket.with_extension("lock");
        for _ in 0..limits::SHARED_LOOKS {
            make_private(socket.parent().unwrap_or(Path::new("")))?;
            let lock = File::options().create(true).truncate(false).write(true).mode(0o600).open(&lock_file);
            let lock = match lock {
                // a server that has just ended has removed the directory
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                lock => lock.context(about())?,
            };
            match lock.try_lock() {
                Ok(()) if is_at(&lock, &lock_file) => {
                    let users = Arc::new(Users::default());
                    listen(socket, &users, ends).context(about())?;
                    let socket = socket.to_owned();
                    return Ok(Some(Shared { socket, lock_file, _lock: lock, users, directory: None }));
                }
                Ok(()) => continue,
                Err(TryLockError::Error(error)) => return Err(error).context(about()),
                // a connection would make this process a user
                Err(TryLockError::WouldBlock) if socket.exists() => return Ok(None),
                Err(TryLockError::WouldBlock) => std::thread::sleep(limits::SHARED_LOOK),
            }
        }
        fail(format!(
            "--exit-with-users: {}: another server has the socket and accepts no connections",
            socket.display()
        ))
    }

    /// The log of the server, which the process that started it writes.
    fn log(&self) -> PathBuf {
        self.socket.with_extension("log")
    }

    /// Removes this directory at the end.
    pub fn remove(&mut self, directory: &Path) {
        self.directory = Some(directory.to_owned());
    }

    /// Reports to the users that the server is ready. If there are none, the server ends after some seconds.
    pub fn ready(&self, ready: &Value, ends: mpsc::Sender<&'static str>) -> Result<()> {
        let access = Access::read(Path::new(ready.str_at(&["kubeconfig"])))?;
        let text = |bytes: &[u8]| Value::from(String::from_utf8_lossy(bytes).into_owned());
        let mut line = ready.clone();
        line.set_at(
            &["credentials"],
            json!({"certificateAuthority": (text(&access.certificate_authority)),
                "certificate": (text(&access.certificate)), "key": (text(&access.key))}),
        );
        line.set_at(&["log"], Value::from(self.log().display().to_string()));
        self.users.lock().line = Some((line.to_json() + "\n").into());
        self.users.changed.notify_all();
        let users = self.users.clone();
        std::thread::spawn(move || {
            std::thread::sleep(limits::SHARED_FIRST_USER);
            let mut state = users.lock();
            if !state.had_one && !state.has_ended {
                state.has_ended = true;
                let _ = ends.blocking_send("no user has come");
            }
        });
        Ok(())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.users.lock().has_ended = true;
        self.users.changed.notify_all();
        let _ = std::fs::remove_file(&self.socket);
        let _ = std::fs::remove_file(self.log());
        if let Some(directory) = &self.directory {
            let _ = std::fs::remove_dir_all(directory);
        }
        // last, since another server may start as soon as there is no lock
        let _ = std::fs::remove_file(&self.lock_file);
        if let Some(directory) = self.socket.parent() {
            // fails if there are other sockets in it
            let _ = std::fs::remove_dir(directory);
        }
    }
}

impl Users {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a user.
    fn begin(&self) {
        let mut state = self.lock();
        (state.count, state.had_one) = (state.count + 1, true);
    }

    /// Serves a user that has been counted. Returns whether it was the last one.
    fn serve(&self, mut stream: UnixStream) -> bool {
        let waits = |state: &mut State| state.line.is_none() && !state.has_ended;
        let line = {
            let state = self.changed.wait_while(self.lock(), waits).unwrap_or_else(PoisonError::into_inner);
            if state.has_ended {
                // without a line, the client knows that it has to start another server
                return false;
            }
            state.line.clone().unwrap_or_default()
        };
        if stream.write_all(line.as_bytes()).is_ok() {
            // returns when the user has disconnected
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
        let mut state = self.lock();
        state.count -= 1;
        let is_last = state.count == 0 && !state.has_ended;
        state.has_ended |= is_last;
        is_last
    }
}

/// Creates a directory that only this user can read, or checks that an existing one is private.
fn make_private(directory: &Path) -> Result<()> {
    if directory.as_os_str().is_empty() {
        return Ok(());
    }
    let about = format!("--exit-with-users: {}", directory.display());
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).context(&about)?;
    let Ok(found) = std::fs::symlink_metadata(directory) else { return Ok(()) };
    let is_private = found.is_dir() && found.mode() & 0o077 == 0 && found.uid() == rustix::process::getuid().as_raw();
    let why = "the directory is not one that only this user can read and write";
    if is_private { Ok(()) } else { fail(why).context(about) }
}

/// Whether a path still leads to this open file.
fn is_at(file: &File, path: &Path) -> bool {
    let id = |found: std::fs::Metadata| (found.dev(), found.ino());
    file.metadata().ok().map(id) == std::fs::metadata(path).ok().map(id)
}

/// Listens for users, each of which has a thread: they are few.
fn listen(socket: &Path, users: &Arc<Users>, ends: &mpsc::Sender<&'static str>) -> std::io::Result<()> {
    // the socket of a server that could not remove it
    let _ = std::fs::remove_file(socket);
    let listener = UnixListener::bind(socket)?;
    let (users, ends) = (users.clone(), ends.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // counted before the next connection is accepted, so that the end of an earlier user is not that of the
            // last one
            users.begin();
            let (own, users, ends) = (&users, users.clone(), ends.clone());
            let serve = move || {
                if users.serve(stream) {
                    let _ = ends.blocking_send("the last user has ended");
                }
            };
            let thread = std::thread::Builder::new().stack_size(limits::SHARED_STACK_BYTES).spawn(serve);
            if thread.is_err() {
                // the user sees the end of its connection, and tries again
                own.lock().count -= 1;
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};

    use super::*;

    fn kubeconfig(directory: &Path) -> PathBuf {
        let file = directory.join("kubeconfig");
        let text = "current-context: a\nclusters: [{name: a, cluster: {server: 'https://127.0.0.1:1', certificate-authority-data: Y2E=}}]\n\
                    users: [{name: a, user: {client-certificate-data: Yw==, client-key-data: aw==}}]\n\
                    contexts: [{name: a, context: {cluster: a, user: a}}]\n";
        std::fs::write(&file, text).unwrap();
        file
    }

    fn line(stream: &UnixStream) -> String {
        let mut line = String::new();
        BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
        line
    }

    #[test]
    fn server_ends_with_its_last_user() {
        let directory = tempfile::tempdir().unwrap();
        let (socket, data) = (directory.path().join("run/a.sock"), directory.path().join("data"));
        std::fs::create_dir(&data).unwrap();
        let (sender, mut ends) = mpsc::channel(3);
        let mut shared = Shared::take(&socket, &sender).unwrap().unwrap();
        shared.remove(&data);
        assert!(Shared::take(&socket, &sender).unwrap().is_none(), "the other server ends");
        let early = UnixStream::connect(&socket).unwrap();
        let kubeconfig = kubeconfig(directory.path());
        shared.ready(&json!({"kubeconfig": (kubeconfig.display().to_string())}), sender).unwrap();
        let credentials = json!({"certificate": "c", "certificateAuthority": "ca", "key": "k"});
        let late = UnixStream::connect(&socket).unwrap();
        for user in [&early, &late] {
            let line = machinery::value::decode(line(user).as_bytes()).unwrap();
            assert_eq!(line.get("credentials"), Some(&credentials));
        }
        drop(early);
        assert!(ends.try_recv().is_err());
        drop(late);
        assert_eq!(ends.blocking_recv(), Some("the last user has ended"));
        let refused = UnixStream::connect(&socket).unwrap();
        assert_eq!(line(&refused), "", "a client of a server that ends gets no line");
        drop(shared);
        assert!(!socket.exists() && !data.exists() && !directory.path().join("run").exists());
    }

    #[test]
    fn directories_of_others_are_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let (sender, _ends) = mpsc::channel(3);
        let why = Shared::take(&directory.path().join("a.sock"), &sender).map(|_| ()).unwrap_err().to_string();
        assert!(why.ends_with("the directory is not one that only this user can read and write"), "{why}");
    }
}
