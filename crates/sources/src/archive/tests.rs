//! Archives that are as they should be, and hostile ones.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};

use super::*;
use crate::spool;

fn part(bytes: &[u8]) -> Part {
    spool::copied(bytes, &mut std::io::empty()).unwrap()
}

fn tar_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(vec![]);
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mtime(1_700_000_000);
        header.as_mut_bytes()[..path.len().min(100)].copy_from_slice(&path.as_bytes()[..path.len().min(100)]);
        header.set_cksum();
        builder.append(&header, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(vec![], Compression::best());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn zip_of(files: &[(&str, &[u8], u32)]) -> Vec<u8> {
    let (mut out, mut directory) = (vec![], vec![]);
    for (path, content, mode) in files {
        let mut encoder = DeflateEncoder::new(vec![], Compression::fast());
        encoder.write_all(content).unwrap();
        let packed = encoder.finish().unwrap();
        let start = out.len() as u32;
        let mut sizes = vec![0; 4];
        sizes.extend((packed.len() as u32).to_le_bytes());
        sizes.extend((content.len() as u32).to_le_bytes());
        sizes.extend((path.len() as u16).to_le_bytes());
        let common = [&[20, 0, 0, 0, 8, 0, 0, 0, 0, 0][..], &sizes, &[0, 0]].concat();
        out.extend([b"PK\x03\x04", &common[..], path.as_bytes(), &packed].concat());
        directory.extend([b"PK\x01\x02\x14\x03", &common[..], &[0; 6]].concat());
        directory.extend([(mode << 16).to_le_bytes(), start.to_le_bytes()].concat());
        directory.extend(path.as_bytes());
    }
    let count = (files.len() as u16).to_le_bytes();
    let (length, start) = ((directory.len() as u32).to_le_bytes(), (out.len() as u32).to_le_bytes());
    [out, directory, [b"PK\x05\x06", &[0; 4][..], &count, &count, &length, &start, &[0, 0]].concat()].concat()
}

/// An archive with the record for numbers that do not fit into the one at its end.
fn with_large_end(archive: &[u8]) -> Vec<u8> {
    let (rest, end) = archive.split_at(archive.len() - 22);
    let wide = |range: std::ops::Range<usize>| [&end[range.clone()], &vec![0; 8 - range.len()]].concat();
    let numbers = [wide(8..10), wide(10..12), wide(12..16), wide(16..20)].concat();
    let record = [b"PK\x06\x06", &44u64.to_le_bytes()[..], &[45, 0, 45, 0], &[0; 8], &numbers].concat();
    let locator = [b"PK\x06\x07", &[0; 4][..], &(rest.len() as u64).to_le_bytes(), &[1, 0, 0, 0]].concat();
    [rest, &record, &locator, b"PK\x05\x06", &[0xff; 16], &[0, 0]].concat()
}

/// The paths and contents of an archive, and the lines about what cannot be read.
fn found(name: &str, bytes: &[u8]) -> (Vec<(String, String)>, Vec<String>) {
    let mut problems = Problems::default();
    match read(name, &part(bytes), &mut problems) {
        Err(error) => (vec![], vec![error.to_string()]),
        Ok(entries) => {
            let text = |entry: &Entry| String::from_utf8_lossy(&entry.part.head(1 << 20).unwrap()).into_owned();
            (entries.iter().map(|entry| (entry.path.clone(), text(entry))).collect(), problems.lines())
        }
    }
}

#[test]
fn forms_are_recognised_by_their_content() {
    let plain = tar_of(&[("./a/b.yaml", b"b: 1"), ("A/B.YAML", b"B: 1")]);
    let want = [("a/b.yaml", "b: 1"), ("A/B.YAML", "B: 1")].map(|(path, text)| (path.to_owned(), text.to_owned()));
    let zstd = ruzstd::encoding::compress_to_vec(plain.as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
    let zip = zip_of(&[("a/", b"", 0), ("a/b.yaml", b"b: 1", 0), ("A/B.YAML", b"B: 1", 0)]);
    for archive in [&plain, &gzip(&plain), &zstd, &zip, &with_large_end(&zip)] {
        assert_eq!(found("x", archive), (want.to_vec(), vec![]));
    }
    let mut problems = Problems::default();
    let entries = read("x", &part(&plain), &mut problems).unwrap();
    assert_eq!(entries[0].modified, Some(1_700_000_000));
    let one = |path: &str, text: &str| (vec![(path.to_owned(), text.to_owned())], vec![]);
    assert_eq!(found("logs/x.log.gz", &gzip(b"line")), one("x.log", "line"));
    let nested = tar_of(&[("in.tgz", &gzip(&tar_of(&[("c.yaml", b"c: 1")])))]);
    assert_eq!(found("x", &nested), one("in.tgz/c.yaml", "c: 1"));
    assert_eq!(found("x", &tar_of(&[("x.log.1.gz", &gzip(b"line"))])), one("x.log.1", "line"));
}

#[test]
fn large_numbers_of_zip_archives() {
    let number = 5_000_000_000u64.to_le_bytes();
    for (extra, want) in [
        (vec![], vec![]),
        ([&[9, 0, 1, 0, 7, 1, 0, 8, 0][..], &number].concat(), vec![5_000_000_000]),
        ([&[1, 0, 16, 0][..], &number].concat(), vec![]),
        (vec![9, 0, 255, 255], vec![]),
    ] {
        assert_eq!(zip::large_numbers(&extra), want, "{extra:?}");
    }
}

#[test]
fn hostile_archives_are_bounded_and_the_rest_is_read() {
    let mut linked = tar::Builder::new(vec![]);
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    linked.append_link(&mut header, "link", "/etc/passwd").unwrap();
    header.set_entry_type(tar::EntryType::Fifo);
    linked.append_data(&mut header, "pipe", std::io::empty()).unwrap();
    header.set_entry_type(tar::EntryType::Regular);
    header.set_size(2);
    linked.append_data(&mut header, "good", &b"ok"[..]).unwrap();
    let linked = linked.into_inner().unwrap();

    let nested = gzip(&tar_of(&[("in.gz", &gzip(&gzip(b"x"))), ("good", b"ok")]));
    let truncated = gzip(&tar_of(&[("good", b"ok"), ("rest", &[b'x'; 4096])]));
    let zeros = vec![0; 96 << 20];
    let mut long_name = tar::Builder::new(vec![]);
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::GNULongName);
    header.set_size(3 << 20);
    header.set_cksum();
    long_name.append(&header, &zeros[..3 << 20]).unwrap();
    let long_name = [&tar_of(&[("good", b"ok")])[..1024], &long_name.into_inner().unwrap()].concat();
    let bomb = gzip(&[&tar_of(&[("good", b"ok")])[..1024], &tar_of(&[("zeros", &zeros)])].concat());
    for (name, archive, want) in [
        (
            "traversal",
            tar_of(&[("../../etc/passwd", b"x"), ("/good", b"ok")]),
            "../../etc/passwd: its path leaves the archive",
        ),
        ("links", linked, "link: links are not followed|pipe: only files are read"),
        ("nested", nested, "in: archives in archives in archives are not read"),
        ("truncated", truncated[..truncated.len() - 24].to_vec(), "the archive ends early"),
        ("bomb", bomb, "it expands to more than 200 times its size"),
        ("name", long_name, "the header of an entry is too long"),
        (
            "zip",
            zip_of(&[("../x", b"x", 0), ("good", b"ok", 0), ("l", b"/etc", 0o120_777)]),
            "leaves the archive|l: links",
        ),
    ] {
        let (files, lines) = found(name, &archive);
        let good: Vec<&str> = files.iter().filter(|(path, _)| path == "good").map(|(_, text)| text.as_str()).collect();
        assert_eq!(good, ["ok"], "{name}: {lines:?}");
        let lines = lines.join("|");
        assert!(want.split('|').all(|want| lines.contains(want)), "{name}: {lines}");
    }
    for garbage in [&b"\x1f\x8b"[..], b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"PK\x05\x06", &[0x1f; 600]] {
        let (files, lines) = found("garbage", garbage);
        assert_eq!((files.len(), lines.len()), (0, 1), "{garbage:?} {lines:?}");
    }
    for (head, name) in [(&b"\xfd7zXZ\0"[..], "xz"), (b"BZh91AY&SY", "bzip2"), (b"7z\xbc\xaf\x27\x1c", "7z")] {
        let (_, lines) = found("other", head);
        assert!(lines[0].contains(&format!("{name} is not read here: unpack the file first")), "{lines:?}");
    }
}
