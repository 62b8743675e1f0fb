//! `pintle certificates`: lists, renews and rotates the certificates of a data directory. A running server reads them again.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use machinery::{Value, json};

use super::{ADMIN, AUTHORITY, Directory, SERVING, first, inspect, rotation};
use crate::flags::{CertificateName, CertificatePlace, Certificates, ListForm};
use crate::kubeconfig::Kubeconfig;

const DAY: i64 = 24 * 3600;

/// The directory of the certificates.
pub fn directory_of(data_dir: &Path, cert_dir: Option<&PathBuf>) -> Directory {
    Directory { path: cert_dir.cloned().unwrap_or_else(|| data_dir.to_owned()) }
}

/// Runs a task. The error is one line.
pub fn run(task: &Certificates) -> Result<(), String> {
    match task {
        Certificates::List { place, output } => list(&directory(place)?, *output),
        Certificates::Renew { place, names } => renew(place, names),
        Certificates::RotateCa { place, finish } => rotate(place, *finish),
    }
}

fn directory(place: &CertificatePlace) -> Result<Directory, String> {
    let directory = directory_of(&place.place.data_dir, place.cert_dir.as_ref());
    match directory.authority()? {
        Some(_) => Ok(directory),
        None => Err(format!(
            "{} has no certificates: pintle serve creates them at its first start",
            directory.path.display()
        )),
    }
}

fn say(text: &str) {
    // stdout may be closed
    let _ = write!(std::io::stdout(), "{text}");
}

fn list(directory: &Directory, form: ListForm) -> Result<(), String> {
    let mut rows = vec![];
    for name in [AUTHORITY, SERVING, ADMIN] {
        let Some(pair) = directory.load(name)? else { continue };
        let file = directory.path.join(format!("{name}.crt"));
        let found = inspect::of_pem(&pair.certificate).map_err(|why| format!("{}: {why}", file.display()))?;
        // what follows the serving certificate is its chain
        let count = if name == AUTHORITY { found.len() } else { 1 };
        rows.extend(found.into_iter().take(count).map(|facts| (name, facts)));
    }
    let now = base::clock::now_seconds();
    let names = |facts: &inspect::Facts| -> Vec<String> {
        facts.names.dns.iter().cloned().chain(facts.names.addresses.iter().map(ToString::to_string)).collect()
    };
    match form {
        ListForm::Json => {
            let row = |(name, facts): &(&str, inspect::Facts)| {
                let names: Value = names(facts).into_iter().map(Value::from).collect();
                json!({
                    "name": (*name), "subject": (facts.subject.as_str()), "issuer": (facts.issuer.as_str()),
                    "notAfter": (machinery::time::rfc3339(facts.not_after)), "names": names
                })
            };
            say(&(rows.iter().map(row).collect::<Value>().to_json() + "\n"));
        }
        ListForm::Table => {
            say(&format!("{:<8} {:<11} {:<42} {}\n", "NAME", "EXPIRES IN", "SUBJECT", "NAMES"));
            for (name, facts) in &rows {
                let left = facts.not_after - now;
                let left = if left < 0 { "expired".to_owned() } else { format!("{}d", left / DAY) };
                let line = format!("{name:<8} {left:<11} {:<42} {}", facts.subject, names(facts).join(","));
                say(&(line.trim_end().to_owned() + "\n"));
            }
        }
    }
    Ok(())
}

fn renew(place: &CertificatePlace, names: &[CertificateName]) -> Result<(), String> {
    let directory = directory(place)?;
    let authority = directory.authority()?.ok_or("there is no certificate authority")?;
    let wanted = |name: CertificateName| names.is_empty() || names.contains(&name);
    if wanted(CertificateName::Serving) {
        // the same names: the flags of the server are not known here
        let file = directory.path.join("serving.crt");
        let pair = directory.load(SERVING)?.ok_or_else(|| format!("there is no {}", file.display()))?;
        let facts = first(&pair.certificate).map_err(|why| format!("{}: {why}", file.display()))?;
        directory.issue_serving(&facts.names, &authority)?;
        say(&format!("{} is renewed\n", file.display()));
    }
    if wanted(CertificateName::Admin) {
        directory.issue_admin(&authority)?;
        say(&format!("{} is renewed\n", directory.path.join("admin.crt").display()));
    }
    update_kubeconfig(place, &directory)
}

fn rotate(place: &CertificatePlace, finish: bool) -> Result<(), String> {
    let directory = directory(place)?;
    let file = directory.path.join("ca.crt");
    if finish {
        rotation::finish(&directory)?;
    } else {
        rotation::begin(&directory)?;
    }
    renew(place, &[])?;
    say(&match finish {
        true => format!("{} has the new certificate authority only\n", file.display()),
        false => format!(
            "{0} has the new certificate authority and the former one\ndistribute {0} to clients, make client certificates \
             anew, then run pintle certificates rotate-ca --finish\n",
            file.display()
        ),
    });
    Ok(())
}

/// Puts the new certificates into the administrator's kubeconfig of the data directory, if there is one.
fn update_kubeconfig(place: &CertificatePlace, directory: &Directory) -> Result<(), String> {
    let path = place.place.data_dir.join(crate::kubeconfig::ADMIN_FILE);
    let (Some(authority), Some(admin)) = (directory.authority()?, directory.load(ADMIN)?) else { return Ok(()) };
    let Some(mut kubeconfig) = Kubeconfig::read(&path)? else { return Ok(()) };
    kubeconfig.renew(&authority.certificate, &admin);
    kubeconfig.write(&path, 0o600)
}
