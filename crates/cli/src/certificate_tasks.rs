//! `pintle certificates`: lists, renews and rotates the certificates of a data directory. A running server reads them again.

use std::io::Write as _;

use clap::{Subcommand, ValueEnum};
use client::{Context as _, Result, fail};
use machinery::{Value, json};

use crate::certificates::{ADMIN, AUTHORITY, Directory, Facts, SERVING, first, of_pem, rotation};
use crate::logs;
use crate::place::CertificatePlace;

const DAY: i64 = 24 * 3600;

/// A certificate that the server creates for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CertificateName {
    Serving,
    Admin,
}

/// The form in which `pintle certificates list` prints them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ListForm {
    Table,
    Json,
}

#[derive(Subcommand)]
pub enum CertificateTask {
    /// Print the certificates, with their names and the days that they are still valid.
    List {
        #[command(flatten)]
        place: CertificatePlace,

        /// The form of the output.
        #[arg(short, long, value_enum, default_value = "table")]
        output: ListForm,
    },
    /// Renew the serving certificate and that of the administrator now.
    ///
    /// A server renews them on its own 90 days before they expire. A running server uses the new certificates at once, a stopped
    /// one from its next start on. The names of the serving certificate and the certificate authority stay the same, so clients
    /// need no new kubeconfig.
    Renew {
        #[command(flatten)]
        place: CertificatePlace,

        /// The certificates [default: both].
        #[arg(value_enum)]
        names: Vec<CertificateName>,
    },
    /// Replace the certificate authority, in two steps.
    ///
    /// The first step creates an authority, which signs from now on. Clients that have the former one only are still
    /// served, and certificates that it has signed are still accepted. When all clients have the new ca.crt or a new
    /// kubeconfig, the second step, --finish, ends that.
    RotateCa {
        #[command(flatten)]
        place: CertificatePlace,

        /// Stop trusting the former authority.
        #[arg(long)]
        finish: bool,
    },
}

/// Runs a task. Fails with a one-line message.
pub fn run(task: &CertificateTask) -> Result<()> {
    match task {
        CertificateTask::List { place, output } => list(&directory(place)?, *output),
        CertificateTask::Renew { place, names } => renew(place, names),
        CertificateTask::RotateCa { place, finish } => rotate(place, *finish),
    }
}

fn directory(place: &CertificatePlace) -> Result<Directory> {
    let directory = place.directory();
    match directory.authority()? {
        Some(_) => Ok(directory),
        None => fail(format!(
            "{} has no certificates: pintle serve creates them at its first start",
            directory.path.display()
        )),
    }
}

fn say(text: &str) {
    // stdout may be closed
    let _ = write!(std::io::stdout(), "{text}");
}

fn list(directory: &Directory, form: ListForm) -> Result<()> {
    let mut rows = vec![];
    for name in [AUTHORITY, SERVING, ADMIN] {
        let Some(pair) = directory.load(name)? else { continue };
        let file = directory.path.join(format!("{name}.crt"));
        let found = of_pem(&pair.certificate).context(file.display())?;
        // the certificates after the serving certificate are its chain
        let count = if name == AUTHORITY { found.len() } else { 1 };
        rows.extend(found.into_iter().take(count).map(|facts| (name, facts)));
    }
    let now = base::clock::now_seconds();
    let names = |facts: &Facts| -> Vec<String> {
        facts.names.dns.iter().cloned().chain(facts.names.addresses.iter().map(ToString::to_string)).collect()
    };
    let text = match form {
        ListForm::Json => {
            let row = |(name, facts): &(&str, Facts)| {
                let names: Value = names(facts).into_iter().map(Value::from).collect();
                json!({
                    "name": (*name), "subject": (facts.subject.as_str()), "issuer": (facts.issuer.as_str()),
                    "notAfter": (machinery::time::rfc3339(facts.not_after)), "names": names
                })
            };
            rows.iter().map(row).collect::<Value>().to_json() + "\n"
        }
        ListForm::Table => {
            let mut text = format!("{:<8} {:<11} {:<42} {}\n", "NAME", "EXPIRES IN", "SUBJECT", "NAMES");
            for (name, facts) in &rows {
                let left = facts.not_after - now;
                let left = if left < 0 { "expired".to_owned() } else { format!("{}d", left / DAY) };
                let line = format!("{name:<8} {left:<11} {:<42} {}", facts.subject, names(facts).join(","));
                text += &(line.trim_end().to_owned() + "\n");
            }
            text
        }
    };
    logs::print(text.as_bytes())
}

fn renew(place: &CertificatePlace, names: &[CertificateName]) -> Result<()> {
    let directory = directory(place)?;
    let _lock = directory.lock()?;
    issue(&directory, names)
}

fn issue(directory: &Directory, names: &[CertificateName]) -> Result<()> {
    let authority = directory.authority()?.ok_or("there is no certificate authority")?;
    let wanted = |name: CertificateName| names.is_empty() || names.contains(&name);
    if wanted(CertificateName::Serving) {
        // the names are kept, since the flags of the server are not known here
        let file = directory.path.join("serving.crt");
        let pair = directory.load(SERVING)?.ok_or_else(|| format!("there is no {}", file.display()))?;
        let facts = first(&pair.certificate).context(file.display())?;
        directory.issue_serving(&facts.names, &authority)?;
        say(&format!("{} is renewed\n", file.display()));
    }
    if wanted(CertificateName::Admin) {
        directory.issue_admin(&authority)?;
        say(&format!("{} is renewed\n", directory.path.join("admin.crt").display()));
    }
    Ok(())
}

fn rotate(place: &CertificatePlace, finish: bool) -> Result<()> {
    let directory = directory(place)?;
    // a running server waits for the lock, so it reads only complete sets of files
    let _lock = directory.lock()?;
    let file = directory.path.join("ca.crt");
    if finish {
        rotation::finish(&directory)?;
    } else {
        rotation::begin(&directory)?;
    }
    issue(&directory, &[])?;
    say(&if finish {
        format!("{} has the new certificate authority only\n", file.display())
    } else {
        format!(
            "{0} has the new certificate authority and the former one\ndistribute {0} to clients, make client certificates \
             anew, then run pintle certificates rotate-ca --finish\n",
            file.display()
        )
    });
    Ok(())
}
