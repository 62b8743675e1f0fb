//! Files that a passphrase encrypts, in the format of age (age-encryption.org/v1) with its recipient type `scrypt`, so that
//! `age --decrypt` reads them too.
//!
//! The `age` crate is not used since it brings some sixty packages for the translation of its messages. The primitives are
//! those of `aws-lc-rs` and `scrypt`; a test decrypts files with the `age` program, and the other way round.

use std::io::{self, BufRead, Read, Write};

use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::{constant_time, hkdf, hmac};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use crate::limits::{SCRYPT_WORK, SCRYPT_WORK_MAX};

/// The first line of every such file.
pub const FIRST_LINE: &str = "age-encryption.org/v1";
/// Prefix of the salt of `scrypt`.
const SALT_LABEL: &[u8] = b"age-encryption.org/v1/scrypt";
/// Bytes of plain text in a chunk.
const CHUNK: usize = 64 * 1024;
/// Bytes that a chunk is longer than its plain text.
const TAG: usize = 16;

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn unspecified(_: aws_lc_rs::error::Unspecified) -> io::Error {
    io::Error::other("a cryptographic operation failed")
}

/// The key of the payload, and the number of the next chunk.
struct Chunks {
    key: LessSafeKey,
    next: u64,
}

impl Chunks {
    fn new(file_key: &[u8; 16], nonce: &[u8; 16]) -> io::Result<Chunks> {
        Ok(Chunks { key: aead_key(&derive(file_key, nonce, b"payload")?)?, next: 0 })
    }

    /// The nonce of the next chunk: its number in 11 bytes, and whether it is the last one.
    fn nonce(&mut self, is_last: bool) -> Nonce {
        let mut nonce = [0; 12];
        nonce[3..11].copy_from_slice(&self.next.to_be_bytes());
        nonce[11] = u8::from(is_last);
        self.next += 1;
        Nonce::assume_unique_for_key(nonce)
    }

    fn seal(&mut self, plain: &mut Vec<u8>, is_last: bool) -> io::Result<()> {
        let nonce = self.nonce(is_last);
        self.key.seal_in_place_append_tag(nonce, Aad::empty(), plain).map_err(unspecified)
    }

    fn open(&mut self, sealed: &mut Vec<u8>, is_last: bool) -> io::Result<()> {
        let nonce = self.nonce(is_last);
        let opened = self.key.open_in_place(nonce, Aad::empty(), sealed).map(|plain| plain.len());
        sealed.truncate(opened.map_err(|_| invalid("the file is corrupt or truncated"))?);
        Ok(())
    }
}

fn aead_key(key: &[u8; 32]) -> io::Result<LessSafeKey> {
    Ok(LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, key).map_err(unspecified)?))
}

/// HKDF-SHA-256.
fn derive(key: &[u8], salt: &[u8], info: &[u8]) -> io::Result<[u8; 32]> {
    let mut derived = [0; 32];
    let secret = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(key);
    secret.expand(&[info], hkdf::HKDF_SHA256).and_then(|key| key.fill(&mut derived)).map_err(unspecified)?;
    Ok(derived)
}

/// The key that encrypts the file key.
fn wrap_key(passphrase: &str, salt: &[u8; 16], work: u8) -> io::Result<LessSafeKey> {
    let mut key = [0; 32];
    let parameters = scrypt::Params::new(work, 8, 1, key.len()).map_err(|_| invalid("invalid parameters of scrypt"))?;
    let salt = [SALT_LABEL, salt].concat();
    scrypt::scrypt(passphrase.as_bytes(), &salt, &parameters, &mut key)
        .map_err(|_| invalid("invalid parameters of scrypt"))?;
    aead_key(&key)
}

/// The code that authenticates a header up to its last line.
fn header_code(file_key: &[u8; 16], header: &str) -> io::Result<hmac::Tag> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &derive(file_key, b"", b"header")?);
    Ok(hmac::sign(&key, format!("{header}---").as_bytes()))
}

/// Encrypts what is written to it.
pub struct Sealing<W> {
    out: W,
    chunks: Chunks,
    plain: Vec<u8>,
}

impl<W: Write> Sealing<W> {
    /// Begins a file for this passphrase, which takes about a second.
    pub fn begin(mut out: W, passphrase: &str) -> io::Result<Sealing<W>> {
        let (file_key, salt) = (base::clock::random_bytes::<16>(), base::clock::random_bytes::<16>());
        let mut wrapped = file_key.to_vec();
        let zero = Nonce::assume_unique_for_key([0; 12]);
        let key = wrap_key(passphrase, &salt, SCRYPT_WORK)?;
        key.seal_in_place_append_tag(zero, Aad::empty(), &mut wrapped).map_err(unspecified)?;
        let (salt, wrapped) = (STANDARD_NO_PAD.encode(salt), STANDARD_NO_PAD.encode(wrapped));
        let header = format!("{FIRST_LINE}\n-> scrypt {salt} {SCRYPT_WORK}\n{wrapped}\n");
        let code = STANDARD_NO_PAD.encode(header_code(&file_key, &header)?);
        let nonce = base::clock::random_bytes::<16>();
        out.write_all(format!("{header}--- {code}\n").as_bytes())?;
        out.write_all(&nonce)?;
        Ok(Sealing { out, chunks: Chunks::new(&file_key, &nonce)?, plain: Vec::with_capacity(CHUNK + TAG) })
    }

    fn write_chunk(&mut self, is_last: bool) -> io::Result<()> {
        self.chunks.seal(&mut self.plain, is_last)?;
        self.out.write_all(&self.plain)?;
        self.plain.clear();
        Ok(())
    }

    /// Writes the last chunk.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_chunk(true)?;
        Ok(self.out)
    }
}

impl<W: Write> Write for Sealing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // a full chunk waits for the next byte, since the last chunk may be full
        if self.plain.len() == CHUNK && !bytes.is_empty() {
            self.write_chunk(false)?;
        }
        let taken = bytes.len().min(CHUNK - self.plain.len());
        self.plain.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Decrypts a file for this passphrase to `out`. Nothing of a chunk is written before the chunk has been authenticated; of a
/// truncated file, the complete chunks have been written when the error is returned.
///
/// # Errors
///
/// The file is not encrypted with a passphrase, or not with this one; it is corrupt or truncated; those of the streams.
pub fn unseal(file: &mut impl BufRead, passphrase: &str, out: &mut impl Write) -> io::Result<()> {
    let file_key = read_header(file, passphrase)?;
    let mut nonce = [0; 16];
    file.read_exact(&mut nonce)?;
    let mut chunks = Chunks::new(&file_key, &nonce)?;
    let mut chunk = Vec::with_capacity(CHUNK + TAG);
    loop {
        chunk.clear();
        file.by_ref().take((CHUNK + TAG) as u64).read_to_end(&mut chunk)?;
        let is_last = file.fill_buf()?.is_empty();
        chunks.open(&mut chunk, is_last)?;
        out.write_all(&chunk)?;
        if is_last {
            return Ok(());
        }
    }
}

fn read_header(file: &mut impl BufRead, passphrase: &str) -> io::Result<[u8; 16]> {
    let mut line = || -> io::Result<String> {
        let mut line = String::new();
        file.by_ref().take(1000).read_line(&mut line)?;
        Ok(line.trim_end_matches('\n').to_owned())
    };
    let (first, recipient, wrapped, last) = (line()?, line()?, line()?, line()?);
    let decode = |text: &str| STANDARD_NO_PAD.decode(text).map_err(|_| invalid("the header is corrupt"));
    let arguments: Vec<&str> = recipient.split(' ').collect();
    let ["->", "scrypt", salt, work] = arguments[..] else {
        return Err(invalid("it is not encrypted with a passphrase"));
    };
    if first != FIRST_LINE {
        return Err(invalid("it is not encrypted"));
    }
    let salt: [u8; 16] = decode(salt)?.try_into().map_err(|_| invalid("the header is corrupt"))?;
    let work = work.parse().ok().filter(|work| (1..=SCRYPT_WORK_MAX).contains(work));
    let work: u8 = work.ok_or_else(|| invalid("the header asks for too much work"))?;
    let mut sealed = decode(&wrapped)?;
    let zero = Nonce::assume_unique_for_key([0; 12]);
    let key = wrap_key(passphrase, &salt, work)?;
    let opened = key.open_in_place(zero, Aad::empty(), &mut sealed);
    let file_key = opened.map_err(|_| invalid("the passphrase is wrong"))?;
    let file_key: [u8; 16] = (&*file_key).try_into().map_err(|_| invalid("the header is corrupt"))?;
    let code = header_code(&file_key, &format!("{first}\n{recipient}\n{wrapped}\n"))?;
    let given = decode(last.strip_prefix("--- ").unwrap_or_default())?;
    match constant_time::verify_slices_are_equal(code.as_ref(), &given) {
        Ok(()) => Ok(file_key),
        Err(_) => Err(invalid("the header is corrupt")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(plain: &[u8]) -> Vec<u8> {
        let mut sealing = Sealing::begin(vec![], "secret").unwrap();
        sealing.write_all(plain).unwrap();
        sealing.finish().unwrap()
    }

    fn unsealed(mut file: &[u8], passphrase: &str) -> Result<Vec<u8>, String> {
        let mut plain = vec![];
        unseal(&mut file, passphrase, &mut plain).map(|()| plain).map_err(|error| error.to_string())
    }

    #[test]
    fn files_are_read_back() {
        for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK] {
            let plain: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
            assert_eq!(unsealed(&sealed(&plain), "secret").as_ref(), Ok(&plain), "{length} bytes");
        }
    }

    #[test]
    fn changed_files_are_refused() {
        let file = sealed(&[7; CHUNK + 100]);
        assert_eq!(unsealed(&file, "other").unwrap_err(), "the passphrase is wrong");
        assert_eq!(unsealed(&file[..file.len() - 1], "secret").unwrap_err(), "the file is corrupt or truncated");
        // without the last chunk
        assert_eq!(unsealed(&file[..file.len() - 116], "secret").unwrap_err(), "the file is corrupt or truncated");
        let mut longer = file.clone();
        longer.push(0);
        assert_eq!(unsealed(&longer, "secret").unwrap_err(), "the file is corrupt or truncated");
        let mut changed = file.clone();
        *changed.last_mut().unwrap() ^= 1;
        assert_eq!(unsealed(&changed, "secret").unwrap_err(), "the file is corrupt or truncated");
        assert_eq!(unsealed(b"pintlog2", "secret").unwrap_err(), "it is not encrypted with a passphrase");
        let header = String::from_utf8_lossy(&file[..200]).into_owned();
        let end = header.find("\n--- ").unwrap() + 5;
        let mut changed = file;
        changed[end] = if changed[end] == b'A' { b'B' } else { b'A' };
        assert_eq!(unsealed(&changed, "secret").unwrap_err(), "the header is corrupt");
    }
}
