//! The rotation of the certificate authority, in two steps.
//!
//! The first one creates an authority and keeps trust in the former one: `ca.crt` has both, and the serving certificate comes
//! with a certificate by which the former authority vouches for the new one, so that clients that only have the former one
//! verify it as well. The second one, when all clients have the new bundle, drops the former authority.

use std::fs;

use client::{Context as _, Result, fail};

use super::{AUTHORITY, AUTHORITY_NAME, CANNOT_MAKE, Directory, Pair, belong_together, inspect, issue, read};

/// The certificate of the new authority that the former one has signed.
pub const CROSS: &str = "ca-cross.crt";
/// The key of the new authority, until `ca.crt` has its certificate.
pub const NEXT_KEY: &str = "ca-next.key";

/// Creates an authority, which signs from now on.
pub fn begin(directory: &Directory) -> Result<()> {
    let former = existing(directory)?;
    let place = directory.path.display();
    if is_begun(&former)? {
        return fail(format!(
            "{place}: the last rotation is not finished: run it with --finish when all clients have the new ca.crt"
        ));
    }
    let name = format!("{AUTHORITY_NAME}-{}", base::clock::now_seconds());
    let new = issue::authority(&name).context(CANNOT_MAKE)?;
    let cross = issue::cross_certificate(&name, &new, &former).context(CANNOT_MAKE)?;
    super::write_private(&directory.path.join(NEXT_KEY), &new.key)?;
    super::write_private(&directory.path.join(CROSS), &cross)?;
    super::write_private(&directory.path.join("ca.crt"), &(new.certificate + &former.certificate))?;
    settle(directory)
}

/// Ends the trust in the former authority.
pub fn finish(directory: &Directory) -> Result<()> {
    let authority = existing(directory)?;
    if !is_begun(&authority)? {
        let place = directory.path.display();
        return fail(format!("{place}: there is no rotation to finish; run it without --finish to begin one"));
    }
    const END: &str = "-----END CERTIFICATE-----\n";
    let end = authority.certificate.find(END).map_or(authority.certificate.len(), |at| at + END.len());
    super::write_private(&directory.path.join("ca.crt"), &authority.certificate[..end])?;
    let cross = directory.path.join(CROSS);
    fs::remove_file(&cross).cannot("remove", &cross)
}

/// Whether two authorities are trusted.
fn is_begun(authority: &Pair) -> Result<bool> {
    inspect::of_pem(&authority.certificate).map(|found| found.len() > 1).context("ca.crt")
}

fn existing(directory: &Directory) -> Result<Pair> {
    let (place, authority) = (directory.path.display(), directory.authority()?);
    Ok(authority.ok_or_else(|| format!("{place} has no ca.crt: pintle serve creates it at its first start"))?)
}

/// Completes a first step that was interrupted between writing its files.
pub fn settle(directory: &Directory) -> Result<()> {
    let (certificate, next) = (directory.path.join("ca.crt"), directory.path.join(NEXT_KEY));
    let (Some(certificate), Some(key)) = (read(&certificate)?, read(&next)?) else { return Ok(()) };
    let pair = Pair { certificate, key };
    if belong_together(&pair) {
        let path = directory.path.join(format!("{AUTHORITY}.key"));
        fs::rename(&next, &path).cannot("write", &path)?;
    }
    Ok(())
}
