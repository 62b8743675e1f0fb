//! `pintle assets`: a directory with the programs that test environments start. `use` and `list` accept setup-envtest's
//! arguments, so a project's Makefile only has to change the name of the program.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use client::{Context as _, Result, fail};
use machinery::Release;

use crate::logs;

/// The programs that are links to this one.
const NAMES: [&str; 2] = ["kube-apiserver", "etcd"];
/// The commands of setup-envtest that have no meaning here.
const FOREIGN: [&str; 3] = ["cleanup", "sideload", "version"];

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Assets {
    /// The directory, which is created.
    #[arg(value_name = "DIR", required = true, value_parser = directory_name)]
    directory: Option<PathBuf>,
    #[command(subcommand)]
    task: Option<AssetsTask>,
}

#[derive(Subcommand)]
enum AssetsTask {
    /// Print the directory as setup-envtest does, and create it first if it does not exist.
    Use {
        /// The version of Kubernetes, as for setup-envtest, such as 1.37.x or latest.
        #[arg(value_name = "VERSION")]
        version: Option<String>,

        /// The form of the output.
        #[arg(short, long, value_enum, default_value = "path")]
        print: AssetsForm,

        /// The directory [default: .pintle/assets].
        #[arg(long, value_name = "DIR", conflicts_with = "bin_dir")]
        directory: Option<PathBuf>,

        /// The directory of fabric8's kube-api-test, which its KUBE_API_TEST_DIR names: k8s/VERSION-OS-ARCH is created there, as it
        /// looks for it, with the kubectl in PATH, which it needs.
        #[arg(long, value_name = "DIR", conflicts_with_all = ["bin_dir", "directory"])]
        kube_api_test: Option<PathBuf>,

        #[command(flatten)]
        flags: Setup,
    },
    /// List the version that is served, and whether its directory exists, as setup-envtest does.
    List {
        /// The version of Kubernetes, without effect.
        #[arg(value_name = "VERSION", hide = true)]
        version: Option<String>,

        #[command(flatten)]
        flags: Setup,
    },
}

#[derive(Args)]
struct Setup {
    /// Directory below which setup-envtest would keep the directory of a version: k8s/pintle-VERSION is created there.
    #[arg(long, value_name = "DIR")]
    bin_dir: Option<PathBuf>,

    /// Create nothing: an error if the directory does not exist.
    #[arg(short, long)]
    installed_only: bool,

    /// The operating system, without effect.
    #[arg(long, hide = true)]
    os: Option<String>,

    /// The architecture, without effect.
    #[arg(long, hide = true)]
    arch: Option<String>,

    /// The place of binaries, without effect.
    #[arg(long, hide = true)]
    index: Option<String>,
}

impl Setup {
    fn directory(&self) -> PathBuf {
        match &self.bin_dir {
            Some(directory) => directory.join("k8s").join(format!("pintle-{}", version())),
            None => Path::new(crate::place::DATA_DIRECTORY).join("assets"),
        }
    }
}

/// The form in which `pintle assets use` prints the directory, as setup-envtest does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AssetsForm {
    /// The path.
    Path,
    /// An assignment for a shell.
    Env,
    /// The version, the platform and the path, one a line.
    Overview,
}

/// Parses the name of a directory. A command of setup-envtest that has no meaning here is an error.
fn directory_name(text: &str) -> Result<PathBuf, String> {
    match FOREIGN.contains(&text) {
        true => Err(format!("pintle assets has no command {text}; for a directory of that name write ./{text}")),
        false => Ok(PathBuf::from(text)),
    }
}

/// The version of Kubernetes that is served.
fn version() -> String {
    format!("1.{}.0", Release::default().minor())
}

/// Runs `pintle assets`.
///
/// # Errors
///
/// The directory cannot be created, or the name of a program is taken by something other than a link.
pub fn run(assets: &Assets) -> Result<()> {
    match (&assets.task, &assets.directory) {
        (Some(AssetsTask::Use { version, print: form, directory, kube_api_test, flags }), _) => {
            warn_of_other(version.as_deref());
            if let Some(parent) = kube_api_test {
                return kube_api_test_directory(parent, *form, flags.installed_only);
            }
            print(&directory.clone().unwrap_or_else(|| flags.directory()), *form, flags.installed_only)
        }
        (Some(AssetsTask::List { flags, .. }), _) => list(flags),
        (None, Some(directory)) => write(directory),
        (None, None) => fail("a directory is required: pintle assets DIR"),
    }
}

/// Warns on stderr if the requested version is not the one that is served.
fn warn_of_other(wanted: Option<&str>) {
    let Some(wanted) = wanted else { return };
    let plain = wanted.trim_start_matches(|first: char| !first.is_ascii_digit());
    let mut parts = plain.split(['.', '!', '-']);
    let minor = parts.next().and(parts.next()).unwrap_or_default();
    if minor.parse::<u32>().is_ok_and(|minor| version().split('.').nth(1) != Some(&minor.to_string())) {
        logs::print_error(&format!("pintle: version {wanted} is wanted, but pintle serves Kubernetes {}", version()));
    }
}

/// Writes the directory: links to this program, and one to kubectl if it is in PATH.
fn write(directory: &Path) -> Result<()> {
    link_programs(directory)?;
    match find("kubectl") {
        Some(kubectl) => link(&kubectl, &directory.join("kubectl"))?,
        None => logs::say(&format!("kubectl is not in PATH; tests that run it need it in {}", directory.display())),
    }
    logs::say(&export_line(directory));
    Ok(())
}

fn is_there(directory: &Path) -> bool {
    directory.join(NAMES[0]).exists()
}

fn platform() -> String {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{}/{arch}", std::env::consts::OS)
}

/// Prints the directory in which kube-api-test looks for programs, and creates it first if it does not exist.
fn kube_api_test_directory(parent: &Path, form: AssetsForm, installed_only: bool) -> Result<()> {
    let directory = parent.join("k8s").join(format!("{}-{}", version(), platform().replace('/', "-")));
    if !installed_only && !directory.join("kubectl").exists() {
        let kubectl = find("kubectl").ok_or("kube-api-test needs kubectl, which is not in PATH")?;
        link_programs(&directory)?;
        link(&kubectl, &directory.join("kubectl"))?;
    }
    print(&directory, form, installed_only)
}

/// Prints the directory, and creates it first if it does not exist.
fn print(directory: &Path, form: AssetsForm, installed_only: bool) -> Result<()> {
    if !is_there(directory) {
        if installed_only {
            return fail(format!("{} does not exist; without -i it is created", directory.display()));
        }
        link_programs(directory)?;
    }
    let path = absolute(directory);
    let text = match form {
        AssetsForm::Path => path.display().to_string(),
        AssetsForm::Env => export_line(directory) + "\n",
        AssetsForm::Overview => {
            format!("Version: {}\nOS/Arch: {}\nPath: {}\n", version(), platform(), path.display())
        }
    };
    logs::print(text.as_bytes())
}

fn list(flags: &Setup) -> Result<()> {
    let is_there = is_there(&flags.directory());
    if is_there || !flags.installed_only {
        let state = if is_there { "(installed)" } else { "(available)" };
        logs::print(format!("{state}  v{}  {}\n", version(), platform()).as_bytes())?;
    }
    Ok(())
}

/// Creates a directory with the links to this program.
pub fn link_programs(directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory).cannot("create", directory)?;
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    NAMES.into_iter().try_for_each(|name| link(&program, &directory.join(name)))
}

fn absolute(directory: &Path) -> PathBuf {
    std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned())
}

/// The command with which a shell exports the directory, for `eval`.
fn export_line(directory: &Path) -> String {
    // within single quotes a shell takes every character but the quote itself literally
    let quoted = absolute(directory).display().to_string().replace('\'', r"'\''");
    format!("export KUBEBUILDER_ASSETS='{quoted}'")
}

/// Creates a link, replacing an existing link.
fn link(program: &Path, path: &Path) -> Result<()> {
    if path.is_symlink() {
        std::fs::remove_file(path).cannot("replace", path)?;
    }
    std::os::unix::fs::symlink(program, path).cannot("create", path)
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|directory| directory.join(program)).find(|path| path.is_file())?;
    // follows the link of an earlier run
    found.canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exported_directory_is_quoted_for_shells() {
        for directory in ["/a b", "/it's $HOME"] {
            let script = format!("{}; printf %s \"$KUBEBUILDER_ASSETS\"", export_line(Path::new(directory)));
            let printed = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(printed.stdout).unwrap(), directory);
        }
    }
}
