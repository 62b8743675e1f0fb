//! `cargo xtask dist`: what is published of a release. The same commit gives the same bytes.
//!
//! For each architecture a tarball and a Debian package; one container image for all of them, as an OCI layout in a tarball;
//! `SHA256SUMS` of all files.

mod archive;
mod build;
mod debian;
mod image;

use std::path::{Path, PathBuf};
use std::process::Command;

use archive::Entry;
use client::{Context as _, Result, fail};

/// An architecture, by the names that others have for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Architecture {
    #[value(name = "x86_64")]
    X86_64,
    #[value(name = "aarch64")]
    Aarch64,
}

impl Architecture {
    const HOST: &str = std::env::consts::ARCH;

    fn name(self) -> &'static str {
        match self {
            Architecture::X86_64 => "x86_64",
            Architecture::Aarch64 => "aarch64",
        }
    }

    /// As Debian and Go name it.
    fn debian(self) -> &'static str {
        match self {
            Architecture::X86_64 => "amd64",
            Architecture::Aarch64 => "arm64",
        }
    }

    fn target(self) -> String {
        format!("{}-unknown-linux-musl", self.name())
    }
}

#[derive(clap::Args)]
pub struct DistFlags {
    /// The architectures; the first one must run here, since it writes completions and man pages.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "x86_64,aarch64")]
    architecture: Vec<Architecture>,

    /// The directory of the files; what it has is replaced.
    #[arg(long, value_name = "DIR", default_value = "target/dist")]
    output: PathBuf,

    /// Package this binary instead of building one; it must be of the first architecture.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// The files of a package, and the time that all of them have.
struct Release {
    root: PathBuf,
    output: PathBuf,
    version: &'static str,
    commit: String,
    /// Seconds since the epoch: the time of the commit.
    time: u64,
}

/// Builds and packages. Fails with a one-line message.
pub fn run(flags: &DistFlags) -> Result<()> {
    let root = crate::workspace::root()?;
    let first = *flags.architecture.first().ok_or("--architecture: wanted at least one")?;
    if first.name() != Architecture::HOST {
        return fail(format!("--architecture: the first one must be {}, which runs here", Architecture::HOST));
    }
    if flags.binary.is_some() && flags.architecture.len() > 1 {
        return fail("--binary: one binary is of one architecture: give --architecture as well");
    }
    let release = Release {
        output: root.join(&flags.output),
        version: env!("CARGO_PKG_VERSION"),
        commit: crate::workspace::commit(&root).0,
        time: commit_time(&root),
        root,
    };
    let mut binaries = vec![];
    for architecture in &flags.architecture {
        let path = match &flags.binary {
            Some(path) => path.clone(),
            None => build::binary(&release, *architecture)?,
        };
        let content = std::fs::read(&path).cannot("read", &path)?;
        binaries.push((*architecture, path, content));
    }
    release.write_all(&binaries)
}

/// The time of the commit, or what `SOURCE_DATE_EPOCH` says.
fn commit_time(root: &Path) -> u64 {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse().ok());
    let output = Command::new("git").arg("-C").arg(root).args(["log", "-1", "--format=%ct"]).output().ok();
    given.or_else(|| String::from_utf8(output?.stdout).ok()?.trim().parse().ok()).unwrap_or_default()
}

impl Release {
    fn write_all(&self, binaries: &[(Architecture, PathBuf, Vec<u8>)]) -> Result<()> {
        if self.output.exists() {
            std::fs::remove_dir_all(&self.output).cannot("write to", &self.output)?;
        }
        std::fs::create_dir_all(&self.output).cannot("write to", &self.output)?;
        let documents = self.documents(&binaries[0].1)?;
        let mut files = vec![];
        for (architecture, _, binary) in binaries {
            let name = format!("pintle-{}-linux-{}", self.version, architecture.name());
            let mut entries = vec![Entry::file(format!("{name}/pintle"), 0o755, binary.clone())];
            entries.extend(documents.iter().map(|entry| entry.below(&name)));
            files.push((format!("{name}.tar.gz"), archive::gzip(&archive::tar(&entries, self.time)?)?));
            let package = debian::package(self, *architecture, binary, &documents)?;
            files.push((format!("pintle_{}_{}.deb", self.version, architecture.debian()), package));
        }
        files.push((format!("pintle-{}-oci.tar", self.version), image::layout(self, binaries)?));
        files.sort();
        let sums = files.iter().map(|(name, content)| format!("{}  {name}\n", archive::sha256(content)));
        let sums: String = sums.collect();
        files.push(("SHA256SUMS".to_owned(), sums.into_bytes()));
        for (name, content) in files {
            let path = self.output.join(&name);
            std::fs::write(&path, content).cannot("write", &path)?;
            println!("{}", path.display());
        }
        Ok(())
    }

    /// The file of the repository.
    fn read(&self, path: &str) -> Result<Vec<u8>> {
        std::fs::read(self.root.join(path)).context(format_args!("cannot read {path}"))
    }

    /// Licence, completions and man pages; the binary writes the latter.
    fn documents(&self, binary: &Path) -> Result<Vec<Entry>> {
        let mut entries = vec![];
        for name in ["LICENSE", "NOTICE", "README.md", "CHANGELOG.md"] {
            entries.push(Entry::file(name.to_owned(), 0o644, self.read(name)?));
        }
        for (shell, file) in [("bash", "pintle"), ("zsh", "_pintle"), ("fish", "pintle.fish")] {
            let script = output_of(binary, &["completion", shell])?;
            entries.push(Entry::file(format!("completions/{shell}/{file}"), 0o644, script));
        }
        let pages = tempfile::tempdir().context("cannot create a temporary directory")?;
        output_of(binary, &["man", &pages.path().to_string_lossy()])?;
        let mut paths: Vec<PathBuf> = std::fs::read_dir(pages.path())
            .and_then(|found| found.map(|entry| Ok(entry?.path())).collect())
            .context("cannot read man pages")?;
        paths.sort();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            entries.push(Entry::file(
                format!("man/man1/{name}"),
                0o644,
                std::fs::read(&path).context("cannot read man pages")?,
            ));
        }
        Ok(entries)
    }
}

/// Runs the binary and returns its output.
fn output_of(binary: &Path, arguments: &[&str]) -> Result<Vec<u8>> {
    let done = Command::new(binary).args(arguments).output();
    let done = done.context(format_args!("cannot run {}", binary.display()))?;
    match done.status.success() {
        true => Ok(done.stdout),
        false => fail(format!("{} {} failed", binary.display(), arguments.join(" "))),
    }
}
