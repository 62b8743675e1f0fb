//! The Debian package: the binary with a systemd unit, and a user of its own.

use client::Result;

use super::archive::{Entry, ar, gzip, tar};
use super::{Architecture, Release};

/// The package as bytes.
pub fn package(release: &Release, architecture: Architecture, binary: &[u8], documents: &[Entry]) -> Result<Vec<u8>> {
    let mut files = vec![Entry::file("usr/bin/pintle".to_owned(), 0o755, binary.to_vec())];
    for (from, to) in [
        ("config.yaml", "etc/pintle/config.yaml"),
        ("pintle.service", "usr/lib/systemd/system/pintle.service"),
        ("pintle.sysusers", "usr/lib/sysusers.d/pintle.conf"),
    ] {
        files.push(Entry::file(to.to_owned(), 0o644, release.read(&format!("packaging/debian/{from}"))?));
    }
    files.extend(documents.iter().filter_map(placed));
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let size: usize = files.iter().filter_map(|entry| entry.content.as_ref()).map(Vec::len).sum();
    let control = format!(
        "Package: pintle\nVersion: {}\nArchitecture: {}\nMaintainer: The Pintle authors <pintle@example.com>\n\
         Installed-Size: {}\nSection: admin\nPriority: optional\nRecommends: systemd\n\
         Homepage: https://github.com/pintle/pintle\n\
         Description: Kubernetes API for custom resources, without Kubernetes\n \
         Serves CustomResourceDefinitions, watches, server-side apply, CEL, admission and RBAC\n \
         as kube-apiserver does, from one process without a cluster.\n",
        release.version,
        architecture.debian(),
        size.div_ceil(1024),
    );
    let mut scripts = vec![
        Entry::file("control".to_owned(), 0o644, control.into_bytes()),
        Entry::file("conffiles".to_owned(), 0o644, b"/etc/pintle/config.yaml\n".to_vec()),
    ];
    for name in ["postinst", "prerm", "postrm"] {
        scripts.push(Entry::file(name.to_owned(), 0o755, release.read(&format!("packaging/debian/{name}"))?));
    }
    let archive = |entries: &[Entry]| gzip(&tar(entries, release.time)?);
    let parts = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", archive(&rooted(&scripts))?),
        ("data.tar.gz", archive(&rooted(&with_directories(&files)))?),
    ];
    Ok(ar(&parts, release.time))
}

/// Where a document of the tarball belongs on the system.
fn placed(entry: &Entry) -> Option<Entry> {
    let path = match entry.path.as_str() {
        "LICENSE" => "usr/share/doc/pintle/copyright".to_owned(),
        "NOTICE" => "usr/share/doc/pintle/NOTICE".to_owned(),
        "completions/bash/pintle" => "usr/share/bash-completion/completions/pintle".to_owned(),
        "completions/zsh/_pintle" => "usr/share/zsh/vendor-completions/_pintle".to_owned(),
        "completions/fish/pintle.fish" => "usr/share/fish/vendor_completions.d/pintle.fish".to_owned(),
        page if page.starts_with("man/") => format!("usr/share/{page}"),
        _ => return None,
    };
    Some(Entry { path, ..entry.clone() })
}

/// The entries, each with the directories above it in front.
fn with_directories(files: &[Entry]) -> Vec<Entry> {
    let mut out: Vec<Entry> = vec![];
    for file in files {
        for (at, _) in file.path.match_indices('/') {
            let directory = format!("{}/", &file.path[..at]);
            if !out.iter().any(|entry| entry.path == directory) {
                out.push(Entry::directory(&directory, 0o755, 0));
            }
        }
        out.push(file.clone());
    }
    out
}

fn rooted(entries: &[Entry]) -> Vec<Entry> {
    entries.iter().map(|entry| entry.below(".")).collect()
}
