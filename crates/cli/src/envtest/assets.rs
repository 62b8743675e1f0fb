//! `pintle assets`: a directory with the programs that test environments start.

use std::path::{Path, PathBuf};

use crate::flags::{Assets, AssetsForm, AssetsTask};

/// The programs that are links to this one.
const NAMES: [&str; 2] = ["kube-apiserver", "etcd"];

/// Runs `pintle assets`.
///
/// # Errors
///
/// The directory cannot be created, or a program's name is taken by something else than a link.
pub fn run(assets: &Assets) -> Result<(), String> {
    match (&assets.task, &assets.directory) {
        (Some(AssetsTask::Use { print: form, directory }), _) => print(directory, *form),
        (None, Some(directory)) => write(directory),
        (None, None) => Err("a directory is required: pintle assets DIR".to_owned()),
    }
}

/// Writes the directory: links to this program, and one to kubectl if it is in PATH.
fn write(directory: &Path) -> Result<(), String> {
    link_programs(directory)?;
    match find("kubectl") {
        Some(kubectl) => link(&kubectl, &directory.join("kubectl"))?,
        None => println!("kubectl is not in PATH; tests that run it need it in {}", directory.display()),
    }
    println!("{}", export_line(directory));
    Ok(())
}

/// Prints the directory, and creates it first if it does not exist.
fn print(directory: &Path, form: AssetsForm) -> Result<(), String> {
    if !directory.join(NAMES[0]).exists() {
        link_programs(directory)?;
    }
    match form {
        AssetsForm::Path => print!("{}", absolute(directory).display()),
        AssetsForm::Env => println!("{}", export_line(directory)),
    }
    Ok(())
}

/// Creates a directory with the links to this program.
fn link_programs(directory: &Path) -> Result<(), String> {
    std::fs::create_dir_all(directory).map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
    let program = std::env::current_exe().map_err(|error| format!("cannot find the path of this program: {error}"))?;
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
fn link(program: &Path, path: &Path) -> Result<(), String> {
    if path.is_symlink() {
        std::fs::remove_file(path).map_err(|error| format!("cannot replace {}: {error}", path.display()))?;
    }
    std::os::unix::fs::symlink(program, path).map_err(|error| format!("cannot create {}: {error}", path.display()))
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
