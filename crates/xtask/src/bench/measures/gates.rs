//! The processor time that RBAC and admission policies add to requests.
//!
//! Rounds of requests with and without the feature alternate, and the median of many short rounds is reported, since other
//! load on the machine varies.

use std::sync::Arc;
use std::time::Duration;

use super::super::fixtures::{self, Kind};
use super::super::load::{Samples, drive};
use super::super::process::Launch;
use super::super::row::{Goal, Row, time_text};
use super::super::sizes::Sizes;
use super::super::subject::Subject;
use client::Access;
use client::{Call, Client};

use super::super::subject::options;

/// The number of rounds.
const ROUNDS: usize = 25;
const TOKENS: &str = "master-token,master,1,system:masters\nreader-token,reader,2,readers\n";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

/// A series of requests: the client that sends them, and a function that returns the i-th one.
struct Sort {
    client: Arc<Client>,
    make: Arc<dyn Fn(usize) -> Call + Send + Sync>,
}

/// The processor time per request of one round.
async fn spent(subject: &Subject, sort: &Sort, clients: usize, from: usize, count: usize) -> Result<Duration, String> {
    let make = sort.make.clone();
    let before = subject.processor().ok_or("the server's processor time is not known")?;
    drive(&sort.client, clients, count, move |i| make(from + i)).await?;
    let after = subject.processor().ok_or("the server's processor time is not known")?;
    Ok(after.saturating_sub(before) / u32::try_from(count).unwrap_or(u32::MAX).max(1))
}

/// The row for the processor time of `with` in addition to that of `without`.
async fn added(
    subject: &Subject,
    sizes: &Sizes,
    count: usize,
    without: Sort,
    with: Sort,
    what: String,
    goal: Duration,
) -> Result<Row, String> {
    let (mut plain, mut differences) = (vec![], vec![]);
    for round in 0..=ROUNDS {
        let of = async |sort| spent(subject, sort, sizes.clients, round * count, count).await;
        let (less, more) = match round % 2 {
            0 => (of(&without).await?, of(&with).await?),
            _ => {
                let more = of(&with).await?;
                (of(&without).await?, more)
            }
        };
        // the first round warms up
        if round > 0 {
            plain.push(signed(less));
            differences.push(signed(more) - signed(less));
        }
    }
    let mut row = Row::new(what, Samples::default(), Goal::Processor(goal));
    row.processor = Some(middle(differences));
    row.note = format!("beside {}", time_text(middle(plain)));
    Ok(row)
}

/// A duration in nanoseconds as a signed number, since the difference of two rounds may be negative.
fn signed(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// The median; zero if it is negative.
fn middle(mut nanoseconds: Vec<i64>) -> Duration {
    nanoseconds.sort_unstable();
    let middle = nanoseconds.get(nanoseconds.len() / 2).copied().unwrap_or_default();
    Duration::from_nanos(u64::try_from(middle).unwrap_or_default())
}

/// Gets of a user who is authorized by one of many bindings, compared with those of a member of `system:masters`. API priority
/// and fairness is disabled, since it also exempts the latter.
pub async fn rights(launch: &Launch, http2: bool, sizes: &Sizes) -> Result<Row, String> {
    let tokens = launch.directory.join("tokens.csv");
    std::fs::write(&tokens, TOKENS).map_err(|error| format!("cannot write tokens: {error}"))?;
    let flags = ["--enable-priority-and-fairness=false".as_ref(), "--token-auth-file".as_ref(), tokens.as_os_str()];
    let server = launch.start_with("rights", &flags)?;
    let subject = Subject::new(server.access()?, Some(server.id()), http2)?;
    let kind = subject.filled("rights", sizes.targets, 0).await?;
    let role = format!(
        r#"{{"metadata":{{"name":"reader"}},"rules":[{{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]}},{{"apiGroups":["{}"],"resources":["{}"],"verbs":["get","list"]}}]}}"#,
        kind.group, kind.plural
    );
    subject.client.connect().await?.send(Call::post(format!("{RBAC}/clusterroles"), role)).await?.ok("a role")?;
    let bindings = sizes.bindings;
    let bind = move |i: usize| {
        let subject =
            if i == bindings / 2 { "Group\",\"name\":\"readers".to_owned() } else { format!("User\",\"name\":\"u{i}") };
        let body = format!(
            r#"{{"metadata":{{"name":"b{i}"}},"roleRef":{{"kind":"ClusterRole","name":"reader"}},"subjects":[{{"kind":"{subject}"}}]}}"#
        );
        Call::post(format!("{RBAC}/namespaces/default/rolebindings"), body)
    };
    drive(&subject.client, sizes.clients, sizes.bindings, bind).await?;
    let targets = sizes.targets;
    let sort = |token: &str| -> Result<Sort, String> {
        let shown = Access { certificate: vec![], key: vec![], token: token.to_owned(), ..server.access()? };
        let kind = kind.clone();
        let make = Arc::new(move |i: usize| Call::get(kind.item(i % targets)));
        Ok(Sort { client: Client::new(&shown, options(http2))?, make })
    };
    let (without, with) = (sort("master-token")?, sort("reader-token")?);
    let what = format!("RBAC with {} bindings, added to a get", sizes.bindings);
    let row = added(&subject, sizes, sizes.gets / 10, without, with, what, Duration::from_micros(2)).await?;
    server.stop()?;
    Ok(row)
}

/// Creates to which a policy of five rules applies, compared with creates to which none applies.
pub async fn policy(subject: &Subject, sizes: &Sizes) -> Result<Row, String> {
    let (plain, guarded) = (subject.define("unguarded").await?, subject.define("guarded").await?);
    let mut connection = subject.client.connect().await?;
    let made = |path: &str| format!("{ADMISSION}/{path}");
    let (policies, bindings) = ("validatingadmissionpolicies", "validatingadmissionpolicybindings");
    connection.send(Call::post(made(policies), fixtures::policy(&guarded))).await?.ok("a policy")?;
    connection.send(Call::post(made(bindings), fixtures::policy_binding())).await?.ok("its binding")?;
    let refused = fixtures::object(&guarded, 0, 0).replace("\"replicas\":3", "\"replicas\":1000");
    let refused = connection.send(Call::post(guarded.collection(), refused)).await?;
    if refused.status != 422 {
        return Err(format!("the policy does not reject an invalid object: status {}", refused.status));
    }
    let sort = |kind: Kind| {
        let make = Arc::new(move |i: usize| Call::post(kind.collection(), fixtures::object(&kind, i, 0)));
        Sort { client: subject.client.clone(), make }
    };
    let what = "a policy of five rules, added to a create".to_owned();
    let goal = Duration::from_micros(10);
    let row = added(subject, sizes, sizes.creates / 10, sort(plain), sort(guarded), what, goal).await?;
    connection.send(Call::delete(made(&format!("{bindings}/guard")))).await?.ok("the end of the binding")?;
    connection.send(Call::delete(made(&format!("{policies}/guard")))).await?.ok("the end of the policy")?;
    Ok(row)
}
