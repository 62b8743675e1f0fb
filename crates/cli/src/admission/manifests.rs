//! Directories of manifests of admission.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use client::{Context as _, Failure, Result, fail};
use machinery::value::quote;
use server::{FeatureGates, ManifestDirectory, ManifestFile, ManifestPlugin};

use crate::limits;

/// Reads and checks a directory. The error names it, and the plugin.
pub fn open(plugin: ManifestPlugin, path: String, gates: &FeatureGates) -> Result<ManifestDirectory> {
    let directory = PathBuf::from(&path);
    let open = || ManifestDirectory::open(plugin, path, gates, Box::new(move || Ok(read(&directory)?)));
    // values may nest deeper than the stack of the main thread permits
    let opened = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(server::WORKER_STACK_BYTES).spawn_scoped(scope, open);
        let ended = thread.context("cannot start a thread")?.join();
        Ok::<_, Failure>(ended.unwrap_or_else(|_| Err("its manifests cannot be read".to_owned()))?)
    });
    opened.context(format_args!("failed to initialize admission plugin {}", quote(plugin.as_str())))
}

/// The files of a directory with manifests, by their names.
fn read(directory: &Path) -> Result<Vec<ManifestFile>> {
    let names = names(directory);
    let mut names =
        names.context(format_args!("failed to read manifest directory {}", quote(&directory.to_string_lossy())))?;
    if names.len() > limits::MANIFEST_FILES_MAX {
        return fail(format!("{} has more than {} files", directory.display(), limits::MANIFEST_FILES_MAX));
    }
    names.sort_unstable();
    let mut room = limits::MANIFESTS_BYTES_MAX;
    let mut files = vec![];
    for name in names {
        let path = directory.join(name);
        let content = read_file(&path, room);
        let content = content.context(format_args!("failed to read file {}", quote(&path.to_string_lossy())))?;
        room -= content.len() as u64;
        files.push(ManifestFile { path: path.to_string_lossy().into_owned(), content });
    }
    Ok(files)
}

/// The names of the manifests in a directory, up to one more than there may be.
fn names(directory: &Path) -> std::io::Result<Vec<OsString>> {
    let mut names = vec![];
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if is_manifest(&entry.file_name().to_string_lossy()) && !entry.file_type()?.is_dir() {
            names.push(entry.file_name());
        }
        if names.len() > limits::MANIFEST_FILES_MAX {
            break;
        }
    }
    Ok(names)
}

fn is_manifest(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    matches!(extension.as_deref(), Some("yaml" | "yml" | "json"))
}

/// Reads a file of at most `room` bytes.
fn read_file(path: &Path, room: u64) -> Result<Vec<u8>> {
    // opening another kind of file, such as a pipe, could block
    if !std::fs::metadata(path)?.is_file() {
        return fail("it is not a regular file");
    }
    let mut content = vec![];
    std::fs::File::open(path)?.take(room + 1).read_to_end(&mut content)?;
    match content.len() as u64 > room {
        true => fail(format!("the directory has more than {} bytes", limits::MANIFESTS_BYTES_MAX)),
        false => Ok(content),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_are_read_in_order_of_their_names() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        for name in ["b.yml", "a.JSON", "c.yaml", ".yaml", "d.txt", "yaml", "e.yaml.swp"] {
            std::fs::write(directory.join(name), name).unwrap();
        }
        std::fs::create_dir(directory.join("f.yaml")).unwrap();
        std::os::unix::fs::symlink("d.txt", directory.join("g.yaml")).unwrap();
        let files = read(directory).unwrap();
        let contents: Vec<&[u8]> = files.iter().map(|file| file.content.as_slice()).collect();
        assert_eq!(contents, [b".yaml".as_slice(), b"a.JSON", b"b.yml", b"c.yaml", b"d.txt"]);
        assert!(files[1].path.ends_with("/a.JSON"), "{}", files[1].path);
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.yaml");
        let failure = || read(directory.path()).unwrap_err().to_string();
        std::fs::write(&path, vec![b' '; usize::try_from(limits::MANIFESTS_BYTES_MAX).unwrap() + 1]).unwrap();
        assert!(failure().contains("a.yaml\": the directory has more than"), "{}", failure());
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("nowhere", &path).unwrap();
        assert!(failure().contains("No such file"), "{}", failure());
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(".", &path).unwrap();
        assert!(failure().contains("it is not a regular file"), "{}", failure());
        let gone = read(&directory.path().join("gone")).unwrap_err().to_string();
        assert!(gone.starts_with("failed to read manifest directory"), "{gone}");
    }
}
