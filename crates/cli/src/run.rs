//! `pintle run`: a command with a server of its own, which is gone when the command has ended.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use clap::{Args, ValueEnum as _};
use client::{Context as _, JsonClient, Method, Result};
use machinery::Value;
use rustix::process::{Pid, Signal, kill_process};

use crate::captures::ClockFlag;
use crate::child::{Forwarded, exit_code};
use crate::followed::FollowFlags;
use crate::kubeconfig::ADMIN_FILE;
use crate::runtime::single;
use crate::{envtest, manifests};

#[derive(Args)]
pub struct Run {
    /// CustomResourceDefinitions to create first: a file, or a directory with files (*.yaml, *.yml, *.json). May be repeated.
    #[arg(long, value_name = "PATH")]
    pub crds: Vec<PathBuf>,

    /// File with flags of the server, as for pintle serve.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Objects to begin with, and the time of the server, as for pintle serve. May be repeated; later ones win.
    #[arg(long, value_name = "SOURCE")]
    pub from: Vec<String>,

    /// With --from, the time of the server: that of the capture, where the clock stands, or now.
    #[arg(long, value_enum, default_value = "capture")]
    pub clock: ClockFlag,

    /// Progress objects that move other objects on, as for pintle serve.
    #[arg(long, value_name = "SET|FILE,...", value_delimiter = ',')]
    pub progress: Vec<String>,

    /// With --from, report the objects that today's rules would refuse, by kind, as for pintle serve.
    #[arg(long, requires = "from")]
    pub report: bool,

    #[command(flatten)]
    pub follow: FollowFlags,

    /// The command with its arguments [default with --from and -f: a shell].
    #[arg(value_name = "CMD", last = true, required_unless_present_any = ["from", "filename"])]
    pub command: Vec<OsString>,
}

/// The exit status if there is no server for the command.
const NOT_STARTED: u8 = 2;

/// Runs the command, and returns its exit status.
pub fn run(task: &Run) -> Result<ExitCode> {
    let mut definitions = vec![];
    for path in &task.crds {
        definitions.extend(manifests::definitions(path)?);
    }
    let status = single()?.block_on(async {
        let signals = Forwarded::listen()?;
        let place = Ephemeral::create()?;
        let Some(server) = ServerProcess::start(&place.0.join("data"), task)? else { return Ok(None) };
        create(&definitions, &server.kubeconfig).await?;
        let assets = place.0.join("assets");
        envtest::link_programs(&assets)?;
        let (program, mut command) = match task.command.split_first() {
            Some((program, arguments)) => {
                let mut command = Command::new(program);
                command.args(arguments);
                (program.clone(), command)
            }
            None => shell(&task.from, &task.follow.filename, &place.0)?,
        };
        command.env("KUBECONFIG", &server.kubeconfig).env("KUBEBUILDER_ASSETS", &assets);
        let child = command.spawn().cannot("run", Path::new(&program))?;
        signals.forward_until_end(child).await.map(Some)
    })?;
    Ok(status.map_or(ExitCode::from(NOT_STARTED), exit_code))
}

/// Creates the definitions. They are established when their requests return.
async fn create(definitions: &[Value], kubeconfig: &Path) -> Result<()> {
    if definitions.is_empty() {
        return Ok(());
    }
    let mut client = JsonClient::connect(&[kubeconfig.to_owned()]).await?;
    for definition in definitions {
        let path = format!("/apis/{}/customresourcedefinitions", definition.str_at(&["apiVersion"]));
        let created = client.call(Method::POST, &path, "application/json", Some(definition)).await?.ok();
        let name = definition.str_at(&["metadata", "name"]);
        created.context(format_args!("cannot create CustomResourceDefinition {name:?}"))?;
    }
    Ok(())
}

/// The user's shell, with the names of the sources in its prompt. What it reads at its start may set another prompt, so bash reads a
/// file in `place` behind it.
fn shell(from: &[String], followed: &[PathBuf], place: &Path) -> Result<(OsString, Command)> {
    let program = std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into());
    let followed = followed.iter().map(|path| path.to_string_lossy());
    let sources: Vec<_> = from.iter().map(|source| source.as_str().into()).chain(followed).collect();
    let names = sources.iter().map(|source| source.trim_end_matches('/').rsplit('/').next().unwrap_or(source));
    // a prompt is expanded by the shell
    let is_plain = |c: &char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | ' ');
    let names: String = names.collect::<Vec<_>>().join(" ").chars().filter(is_plain).collect();
    let mut command = Command::new(&program);
    command.env("PS1", format!("({names}) $ "));
    if Path::new(&program).file_name().is_some_and(|name| name == "bash") {
        let file = place.join("bashrc");
        let text = format!("[ -f ~/.bashrc ] && . ~/.bashrc\nPS1=\"({names}) $PS1\"\n");
        std::fs::write(&file, text).cannot("write", &file)?;
        command.arg("--rcfile").arg(file);
    }
    Ok((program, command))
}

/// A directory that is removed when this is dropped.
struct Ephemeral(PathBuf);

impl Ephemeral {
    fn create() -> Result<Ephemeral> {
        let path = std::env::temp_dir().join(base::clock::scratch_name());
        store::create_directory(&path)?;
        Ok(Ephemeral(path))
    }
}

impl Drop for Ephemeral {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A server in a process of its own. It ends with this process, even if this process is killed.
struct ServerProcess {
    process: Child,
    kubeconfig: PathBuf,
}

impl ServerProcess {
    /// Returns when the server is ready; `None` if it cannot start, for which it reports the reason itself.
    fn start(data_dir: &Path, task: &Run) -> Result<Option<ServerProcess>> {
        let program = std::env::current_exe().context("cannot find the path of this program")?;
        let mut command = Command::new(program);
        command.arg0("pintle").args(["serve", "--storage=memory", "--secure-port=0", "--exit-with-parent"]);
        command.arg("--data-dir").arg(data_dir);
        if let Some(path) = &task.config {
            command.arg("--config").arg(path);
        }
        if !task.progress.is_empty() {
            command.arg(format!("--progress={}", task.progress.join(",")));
        }
        if !task.from.is_empty() {
            let clock = task.clock.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
            command.args(task.from.iter().flat_map(|source| ["--from", source])).arg(format!("--clock={clock}"));
        }
        command.args(task.report.then_some("--report"));
        command.args(task.follow.filename.iter().flat_map(|path| ["--filename".as_ref(), path.as_os_str()]));
        // a command on half of a directory would show what the whole one does not do
        command.args((!task.follow.filename.is_empty()).then_some("--require-applied"));
        command.args(task.follow.status_dir.iter().flat_map(|path| ["--status-dir".as_ref(), path.as_os_str()]));
        // Ctrl-C is for the command, which may still need the server
        let is_stdin = task.from.iter().any(|source| source == "-");
        let input = if is_stdin { Stdio::inherit() } else { Stdio::null() };
        command.process_group(0).stdin(input).stdout(Stdio::piped());
        let mut process = command.spawn().context("cannot start the server")?;
        let output = process.stdout.take();
        let server = ServerProcess { process, kubeconfig: data_dir.join(ADMIN_FILE) };
        let mut line = String::new();
        let read = output.map(|output| BufReader::new(output).read_line(&mut line));
        Ok(matches!(read, Some(Ok(1..))).then_some(server))
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // the process has not been waited for, so no other process can have its id
        let _ = kill_process(Pid::from_child(&self.process), Signal::TERM);
        let _ = self.process.wait();
    }
}
