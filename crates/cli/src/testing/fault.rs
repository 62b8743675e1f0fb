//! `pintle fault`.

use std::time::Duration;

use base::clock;
use clap::{Args, Subcommand, ValueEnum};
use client::{Result, fail};
use machinery::{Value, json};

use super::{DeleteFlags, ListFlags, Matching, Objects, TargetWorkspace, set_texts};
use crate::count::counted;
use crate::runtime::block_on;
use crate::{limits, logs};

#[derive(Subcommand)]
pub enum FaultTask {
    /// Create a fault, by a recipe or with an effect of its own.
    ///
    /// The same seed makes the same choices for the same requests, in whichever order the objects are handled.
    Create(Box<CreateFault>),
    /// List the faults, with the number of their hits.
    List(ListFlags),
    /// Wait until a fault has hit, or has ended.
    Wait(WaitForFault),
    /// Delete faults, which ends their effect.
    Delete(DeleteFlags),
}

#[derive(Args)]
pub struct WaitForFault {
    /// Fault to wait for.
    name: String,

    /// Wait until it has hit this many requests and events.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "ended")]
    hits: u32,

    /// Wait until its count or time is reached.
    #[arg(long)]
    ended: bool,

    /// Fail after this time.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = crate::values::duration)]
    timeout: Duration,

    #[command(flatten)]
    target: TargetWorkspace,
}

#[derive(Args)]
pub struct CreateFault {
    /// Name of the new fault.
    name: String,

    #[command(flatten)]
    effect: EffectFlags,

    #[command(flatten)]
    matching: Matching,

    /// Verbs: get, list, watch, create, update, patch, delete, deletecollection.
    #[arg(long, value_name = "VERB,...", value_delimiter = ',', help_heading = "Matching")]
    verb: Vec<String>,

    #[command(flatten)]
    when: WhenFlags,

    #[command(flatten)]
    target: TargetWorkspace,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Recipe {
    /// Caches and watches are two seconds behind.
    StaleReads,
    /// Watches fall silent and expire, so that clients see only the last state when they list again.
    MissedEvents,
    /// A third of the writes is committed, and the connection ends before the response.
    LostResponse,
    /// Half of the requests get 429.
    Throttled,
    /// Requests are reset or get 503, and watches end, as around a restart.
    RestartingServer,
    /// Watches end, expire, and repeat or delay their events.
    FlakyWatch,
}

/// What happens to the connection.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum OfConnection {
    /// It ends instead of a response.
    Reset,
    /// It ends in the middle of the response.
    Cut,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum AfterCommit {
    /// The client gets the timeout.
    Timeout,
    /// The connection ends.
    Reset,
}

/// What happens to events of watches.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum OfWatch {
    /// They are lost.
    Drop,
    /// They are sent twice.
    Repeat,
    /// They and all later events are delayed by --delay.
    Delay,
    /// The next event is sent first.
    Reorder,
    /// The watch ends before them.
    End,
    /// The watch ends with 410.
    Expire,
}

#[derive(Args)]
#[command(next_help_heading = "Effect")]
pub struct EffectFlags {
    /// Named set of effects.
    #[arg(long, value_enum)]
    recipe: Option<Recipe>,

    /// Delay of the request or event, such as 2s.
    #[arg(long, value_name = "DURATION")]
    delay: Option<String>,

    /// Maximum of a random time that is added to the delay.
    #[arg(long, value_name = "DURATION")]
    jitter: Option<String>,

    /// Respond with this error, such as 404, 409, 429 or 503.
    #[arg(long, value_name = "CODE")]
    error: Option<u16>,

    /// Retry-After of the error, in seconds.
    #[arg(long, value_name = "SECONDS", requires = "error")]
    retry_after: Option<u32>,

    /// End the connection, instead of handling the request or in the middle of the response.
    #[arg(long, value_enum)]
    connection: Option<OfConnection>,

    /// Handle the request, but keep its response from the client.
    #[arg(long, value_enum)]
    after_commit: Option<AfterCommit>,

    /// Read from a cache that lacks the last N changes of the resource.
    #[arg(long, value_name = "N")]
    stale_changes: Option<u32>,

    /// Read from a cache that is behind by this time.
    #[arg(long, value_name = "DURATION")]
    stale_age: Option<String>,

    /// With --stale-changes and --stale-age, also reads without a resourceVersion, which Kubernetes serves consistently.
    #[arg(long)]
    consistent_reads: bool,

    /// What happens to events of watches.
    #[arg(long, value_enum)]
    watch: Option<OfWatch>,
}

#[derive(Args)]
#[command(next_help_heading = "When")]
pub struct WhenFlags {
    /// Only the N-th match of each verb and object.
    #[arg(long, value_name = "N")]
    nth: Option<u32>,

    /// Every N-th match of each verb and object.
    #[arg(long, value_name = "N")]
    every: Option<u32>,

    /// With --every, this many in a row.
    #[arg(long, value_name = "N", requires = "every")]
    burst: Option<u32>,

    /// A share of the matches, chosen by the seed.
    #[arg(long, value_name = "PERCENT")]
    percent: Option<f64>,

    /// Seed of all choices.
    #[arg(long, value_name = "N")]
    seed: Option<u32>,

    /// End after N hits in all.
    #[arg(long, value_name = "N")]
    count: Option<u32>,

    /// End after this time, such as 30s.
    #[arg(long, value_name = "DURATION")]
    ttl: Option<String>,

    /// Begin with a write for which a CEL expression on object and oldObject is true.
    ///
    /// For example: --trigger 'deployments.apps:object.status.readyReplicas == 1'
    #[arg(long, value_name = "RESOURCE:EXPRESSION", value_parser = trigger)]
    trigger: Option<Value>,
}

fn trigger(text: &str) -> Result<Value, &'static str> {
    let (resource, expression) = text.split_once(':').ok_or("wanted RESOURCE:EXPRESSION")?;
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    Ok(json!({"group": group, "resource": resource, "expression": (expression.trim())}))
}

fn name_of(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// The name of a value as the API spells it, such as `Reset`.
fn capitalized(value: impl ValueEnum) -> Value {
    let name = name_of(value);
    let (first, rest) = name.split_at(1.min(name.len()));
    Value::from(first.to_uppercase() + rest)
}

impl CreateFault {
    fn spec(&self) -> Value {
        let mut spec = json!({});
        let mut matching = self.matching.value();
        set_texts(&mut matching, "verbs", &self.verb);
        spec.set_at(&["match"], matching);
        let (when, effect) = (&self.when, &self.effect);
        for (field, number) in [
            ("nth", when.nth),
            ("every", when.every),
            ("burst", when.burst),
            ("seed", when.seed),
            ("count", when.count),
        ] {
            number.into_iter().for_each(|number| spec.set_at(&["when", field], Value::from(number)));
        }
        when.percent.into_iter().for_each(|percent| spec.set_at(&["when", "percent"], Value::from(percent)));
        when.ttl.iter().for_each(|ttl| spec.set_at(&["when", "ttl"], Value::from(ttl)));
        when.trigger.iter().for_each(|trigger| spec.set_at(&["when", "trigger"], trigger.clone()));
        if let Some(recipe) = effect.recipe {
            spec.set_at(&["recipe"], Value::from(name_of(recipe)));
        }
        let mut set = |path: &[&str], value: Option<Value>| {
            value.into_iter().for_each(|value| spec.set_at(&[&["effect"], path].concat(), value));
        };
        set(&["delay"], effect.delay.as_ref().map(Value::from));
        set(&["jitter"], effect.jitter.as_ref().map(Value::from));
        set(&["error", "code"], effect.error.map(|code| Value::from(u32::from(code))));
        set(&["error", "retryAfterSeconds"], effect.retry_after.map(Value::from));
        set(&["connection"], effect.connection.map(capitalized));
        set(&["afterCommit"], effect.after_commit.map(capitalized));
        set(&["stale", "changes"], effect.stale_changes.map(Value::from));
        set(&["stale", "age"], effect.stale_age.as_ref().map(Value::from));
        set(&["stale", "consistentReads"], effect.consistent_reads.then_some(Value::Bool(true)));
        set(&["watch"], effect.watch.map(capitalized));
        spec
    }
}

/// Runs a task. Fails with a one-line message.
pub fn run(task: &FaultTask) -> Result<()> {
    block_on(async {
        match task {
            FaultTask::Create(task) => {
                Objects::connect(&task.target).await?.create("Fault", "faults", &task.name, task.spec()).await?;
                logs::print(format!("fault {:?} has been created\n", task.name).as_bytes())
            }
            FaultTask::List(flags) => {
                let header = format!("{:<24} {:<8} {:>8} {:>8} WHAT", "NAME", "PHASE", "HITS", "MATCHES");
                flags.run("faults", &header, row).await
            }
            FaultTask::Wait(task) => wait(task).await,
            FaultTask::Delete(flags) => flags.run("fault", "faults").await,
        }
    })
}

/// Waits for a fault. The error says what it has hit so far.
async fn wait(task: &WaitForFault) -> Result<()> {
    let mut objects = Objects::connect(&task.target).await?;
    let begun = clock::instant();
    loop {
        // a read shows all hits before it, whereas a watch shows some of them later
        let fault = objects.get("faults", &task.name).await?.ok()?;
        let (hits, phase) = (fault.int_at(&["status", "hits"]), fault.str_at(&["status", "phase"]));
        let times = counted(usize::try_from(hits).unwrap_or_default(), "time");
        let is_done = if task.ended { phase == "Ended" } else { hits >= i64::from(task.hits) };
        if is_done {
            return logs::print(format!("fault {:?} has hit {times}\n", task.name).as_bytes());
        }
        let is_over = phase == "Failed" || !task.ended && phase == "Ended";
        if is_over || begun.elapsed() >= task.timeout {
            return fail(format!("fault {:?} is {} and has hit {times}", task.name, phase.to_lowercase()));
        }
        tokio::time::sleep(limits::FAULT_LOOK).await;
    }
}

fn row(fault: &Value) -> String {
    let text = |path: &[&str]| fault.str_at(path).to_owned();
    let effect = fault.at(&["spec", "effect"]).map(Value::to_json);
    let what = effect.unwrap_or_else(|| text(&["spec", "recipe"]));
    let (hits, matches) = (fault.int_at(&["status", "hits"]), fault.int_at(&["status", "matches"]));
    let (name, phase) = (text(&["metadata", "name"]), text(&["status", "phase"]));
    format!("{name:<24} {phase:<8} {hits:>8} {matches:>8} {what}")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Parsed {
        #[command(flatten)]
        create: CreateFault,
    }

    #[test]
    fn flags_are_the_fields_of_a_fault() {
        for (flags, wanted) in [
            ("--recipe flaky-watch --seed 3", r#"{"match":{},"when":{"seed":3},"recipe":"flaky-watch"}"#),
            (
                "--verb update --resource pods/status -l a=b --error 429 --retry-after 2 --every 4 --burst 2",
                r#"{"match":{"resources":["pods/status"],"selector":{"matchLabels":{"a":"b"}},"verbs":["update"]},"when":{"every":4,"burst":2},"effect":{"error":{"code":429,"retryAfterSeconds":2}}}"#,
            ),
            ("--after-commit reset", r#"{"match":{},"effect":{"afterCommit":"Reset"}}"#),
            (
                "--after-commit reset --trigger deployments.apps:object.spec.paused",
                r#"{"match":{},"when":{"trigger":{"group":"apps","resource":"deployments","expression":"object.spec.paused"}},"effect":{"afterCommit":"Reset"}}"#,
            ),
            ("--watch delay --delay 2s", r#"{"match":{},"effect":{"delay":"2s","watch":"Delay"}}"#),
            (
                "--stale-age 5s --consistent-reads --ttl 1m --percent 12.5",
                r#"{"match":{},"when":{"percent":12.5,"ttl":"1m"},"effect":{"stale":{"age":"5s","consistentReads":true}}}"#,
            ),
        ] {
            let parsed = Parsed::try_parse_from(["fault", "x"].into_iter().chain(flags.split(' '))).unwrap();
            let wanted = machinery::value::decode(wanted.as_bytes()).unwrap();
            assert_eq!(parsed.create.spec().to_json(), wanted.to_json(), "{flags}");
        }
    }

    /// The kind has the same words in its schema, which the server checks, and a page explains the recipes.
    #[test]
    fn words_are_those_of_the_kind_and_of_the_page() {
        let kind = include_str!("../../../server/src/testing/testing.yaml");
        let page = include_str!("../../../../docs/src/reference/testing-api.md");
        let listed = |words: Vec<String>| format!("enum: [{}]", words.join(", "));
        fn spelled<T: ValueEnum>() -> Vec<String> {
            T::value_variants().iter().map(|value| capitalized(value.clone()).as_str().unwrap().to_owned()).collect()
        }
        let recipes: Vec<String> = Recipe::value_variants().iter().map(|recipe| name_of(*recipe)).collect();
        for recipe in &recipes {
            assert!(page.contains(&format!("\n| `{recipe}` |")), "{recipe}");
        }
        for words in [recipes, spelled::<OfConnection>(), spelled::<AfterCommit>(), spelled::<OfWatch>()] {
            let wanted = listed(words);
            assert!(kind.contains(&wanted), "{wanted}");
        }
    }
}
