use machinery::json;
use machinery::protobuf::Writer;

use super::*;
use crate::spool::copied;

const PAGE: usize = 4096;

/// A page with a header and elements.
fn page(id: u64, flags: u16, elements: &[(u32, &[u8], &[u8], u64)]) -> Vec<u8> {
    let mut data = vec![];
    let mut heads = vec![];
    for (index, (bucket, key, value, child)) in elements.iter().enumerate() {
        let position = ((elements.len() - index) * 16 + data.len()) as u32;
        heads.extend(match flags {
            1 => [&position.to_le_bytes()[..], &(key.len() as u32).to_le_bytes(), &child.to_le_bytes()].concat(),
            _ => [*bucket, position, key.len() as u32, value.len() as u32].map(u32::to_le_bytes).concat(),
        });
        data.extend([*key, *value].concat());
    }
    let length = 16 + heads.len() + data.len();
    let overflow = (length.div_ceil(PAGE) - 1) as u32;
    let mut out =
        [&id.to_le_bytes()[..], &flags.to_le_bytes(), &(elements.len() as u16).to_le_bytes(), &overflow.to_le_bytes()]
            .concat();
    out.extend(heads);
    out.extend(data);
    out.resize((overflow as usize + 1) * PAGE, 0);
    out
}

fn meta(id: u64, root: u64, transaction: u64) -> Vec<u8> {
    let numbers = [root, 0, 2, 9, transaction].map(u64::to_le_bytes).concat();
    let body =
        [&0xED0C_DAED_u32.to_le_bytes()[..], &2_u32.to_le_bytes(), &(PAGE as u32).to_le_bytes(), &[0; 4], &numbers]
            .concat();
    let checksum = body
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    let mut out = [&id.to_le_bytes()[..], &[4, 0, 0, 0, 0, 0, 0, 0], &body, &checksum.to_le_bytes()].concat();
    out.resize(PAGE, 0);
    out
}

fn revision(main: u64, deletion: bool) -> Vec<u8> {
    let mut out = [&main.to_be_bytes()[..], b"_", &[0; 8]].concat();
    out.extend(deletion.then_some(b't'));
    out
}

fn stored(key: &str, value: &[u8]) -> Vec<u8> {
    let mut out = Writer::default();
    out.text(1, key).int(2, 1).int(3, 1).bytes(5, value);
    out.into_bytes()
}

fn found(file: &[u8]) -> Vec<String> {
    let part = copied(file, &mut std::io::empty()).unwrap();
    let mut lines = vec![];
    let read = read(&part, &mut |key, captured| {
        lines.push(match captured {
            Err(why) => format!("{key}: {why}"),
            Ok(one) => {
                let text = |path: &[&str]| one.value.str_at(path).to_owned();
                let plural = one.plural.as_deref().unwrap_or("-");
                format!("{key}: {} {} {plural}", text(&["kind"]), text(&["metadata", "resourceVersion"]))
            }
        });
    });
    lines.extend(read.err().map(|error| error.to_string()));
    lines
}

/// A snapshot in which the bucket has two leaves below a branch.
fn snapshot() -> Vec<u8> {
    let pod =
        protobuf::encode(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}}))
            .unwrap();
    let widget = |text: &str| {
        format!(
            "{{\"apiVersion\":\"g.io/v1\",\"kind\":\"Widget\",\"metadata\":{{\"name\":\"w\"}},\"spec\":\"{text}\"}}\n"
        )
    };
    let large = widget(&"x".repeat(PAGE));
    let values = [
        (revision(2, false), stored("/registry/pods/n/p", &pod)),
        (revision(3, false), stored("/registry/g.io/widgets/w", widget("old").as_bytes())),
        (revision(4, false), stored("/registry/pods/n/gone", &pod)),
        (revision(5, true), stored("/registry/pods/n/gone", b"")),
        (revision(6, false), stored("/registry/secrets/n/s", b"k8s:enc:aescbc:v1:key1:xxxx")),
        (revision(7, false), stored("/registry/g.io/widgets/w", large.as_bytes())),
        (revision(8, false), stored("compact_rev_key", b"1234")),
        (revision(9, false), stored("/registry/bad", b"{")),
    ];
    let leaf = |id: u64, range: std::ops::Range<usize>| {
        let elements: Vec<_> = values[range].iter().map(|(key, value)| (0, &key[..], &value[..], 0)).collect();
        page(id, 2, &elements)
    };
    let bucket = [4_u64.to_le_bytes(), [0; 8]].concat();
    let mut file = [meta(0, 3, 6), meta(1, 2, 5), page(2, 2, &[]), page(3, 2, &[(1, b"key", &bucket, 0)])].concat();
    let (first, second) = (values[0].0.clone(), values[3].0.clone());
    file.extend(page(4, 1, &[(0, &first, b"", 5), (0, &second, b"", 6)]));
    file.extend(leaf(5, 0..3));
    file.extend(leaf(6, 3..8));
    file
}

#[test]
fn newest_values_are_read() {
    let want = [
        "/registry/pods/n/p: Pod 2 -",
        "/registry/secrets/n/s: it is encrypted (aescbc:v1:key1)",
        "/registry/g.io/widgets/w: Widget 7 widgets",
        "/registry/bad: unexpected end of JSON input (at byte 1)",
    ];
    let file = snapshot();
    assert!(is_database(&file));
    assert_eq!(found(&file), want);
    // etcdctl appends a hash
    assert_eq!(found(&[&file[..], &[7; 32]].concat()), want);
}

#[test]
fn an_inline_bucket_is_read() {
    let (key, value) =
        (revision(2, false), stored("/registry/g.io/widgets/w", b"{\"kind\":\"W\",\"metadata\":{\"name\":\"w\"}}"));
    let mut inline = page(0, 2, &[(0, &key, &value, 0)]);
    inline.truncate(16 + 16 + key.len() + value.len());
    let bucket = [&[0; 16][..], &inline].concat();
    let file = [meta(0, 2, 1), meta(1, 2, 0), page(2, 2, &[(1, b"key", &bucket, 0)])].concat();
    assert_eq!(found(&file), ["/registry/g.io/widgets/w: W 2 widgets"]);
}

#[test]
fn damage_is_an_error() {
    let file = snapshot();
    let cycle = [meta(0, 2, 1), meta(1, 2, 0), page(2, 1, &[(0, b"a", b"", 2), (0, b"b", b"", 2)])].concat();
    let other = [meta(0, 2, 1), meta(1, 2, 0), page(2, 16, &[])].concat();
    let empty = [meta(0, 2, 1), meta(1, 2, 0), page(2, 2, &[])].concat();
    for (file, want) in [
        (file[..100].to_vec(), "the database is damaged: page 3 is outside of the file"),
        (file[..5 * PAGE].to_vec(), "the database is damaged: page 5 is outside of the file"),
        ([&[0; 64][..], &file[64..]].concat(), "the database is damaged: it has no bucket \"key\""),
        (vec![0; 3 * PAGE], "the database is damaged: it has no valid meta page"),
        (cycle, "the database is damaged: pages name each other"),
        (other, "the database is damaged: page 2 is neither a branch nor a leaf"),
        (empty, "the database is damaged: it has no bucket \"key\""),
    ] {
        assert_eq!(found(&file), [want]);
    }
    // any damage yields an error or other values
    for at in (0..file.len()).step_by(97) {
        let mut damaged = file.clone();
        damaged[at] ^= 0x81;
        found(&damaged);
    }
}
