//! The cells of the table of Pods that depend on container statuses: how many containers are ready, why a Pod does not
//! run, and how often containers have restarted.

use std::collections::HashSet;

use machinery::{Value, jsonpath};

use resource::builtin::checks::text;
use resource::builtin::columns::parts::condition;

/// The cells of a Pod that depend on its containers.
pub struct PodCells<'a> {
    ready: usize,
    total: usize,
    status: String,
    restarts: Restarts<'a>,
}

/// How often containers have restarted, and when the run before the last restart ended; empty if none has
/// restarted.
#[derive(Clone, Copy, Default)]
struct Restarts<'a> {
    count: i64,
    last: &'a str,
}

impl<'a> Restarts<'a> {
    fn add(&mut self, status: &'a Value) {
        self.count = self.count.saturating_add(status.int_at(&["restartCount"]));
        // UTC times sort in the order of their text
        self.last = self.last.max(status.str_at(&["lastState", "terminated", "finishedAt"]));
    }
}

impl<'a> PodCells<'a> {
    pub fn of(pod: &'a Value) -> PodCells<'a> {
        let init = pod.items_at(&["spec", "initContainers"]);
        let sidecars: HashSet<&str> =
            init.iter().filter(|c| text(c, "restartPolicy") == "Always").map(|c| text(c, "name")).collect();
        let total = pod.items_at(&["spec", "containers"]).len() + sidecars.len();
        let mut cells = PodCells { ready: 0, total, status: phase(pod), restarts: Restarts::default() };
        let (is_initialized, of_sidecars) = cells.initialize(pod, &sidecars);
        if is_initialized || condition(pod, "Initialized").is_some() {
            cells.run(pod, of_sidecars);
        }
        cells.end(pod);
        cells
    }

    /// Reads the statuses of init containers, and stops at the first that has neither succeeded nor is a running
    /// sidecar. Returns whether there is no such container, and the restarts of the sidecars that were read.
    fn initialize(&mut self, pod: &'a Value, sidecars: &HashSet<&str>) -> (bool, Restarts<'a>) {
        let mut of_sidecars = Restarts::default();
        for (i, status) in pod.items_at(&["status", "initContainerStatuses"]).iter().enumerate() {
            let is_sidecar = sidecars.contains(text(status, "name"));
            self.restarts.add(status);
            if is_sidecar {
                of_sidecars.add(status);
            }
            let ended = status.at(&["state", "terminated"]);
            if ended.is_some_and(|ended| ended.int_at(&["exitCode"]) == 0) {
                continue;
            }
            if is_sidecar && is_true(status, "started") {
                self.ready += usize::from(is_true(status, "ready"));
                continue;
            }
            let waits_for = status.str_at(&["state", "waiting", "reason"]);
            self.status = match ended {
                Some(ended) => format!("Init:{}", ending(ended)),
                None if !matches!(waits_for, "" | "PodInitializing") => format!("Init:{waits_for}"),
                None => format!("Init:{i}/{}", pod.items_at(&["spec", "initContainers"]).len()),
            };
            return (false, of_sidecars);
        }
        (true, of_sidecars)
    }

    /// Reads the statuses of containers. The first container that does not run determines the status of the Pod.
    fn run(&mut self, pod: &'a Value, of_sidecars: Restarts<'a>) {
        self.restarts = of_sidecars;
        let (mut is_running, mut failure) = (false, None);
        for status in pod.items_at(&["status", "containerStatuses"]).iter().rev() {
            self.restarts.add(status);
            let waits_for = status.str_at(&["state", "waiting", "reason"]);
            if !waits_for.is_empty() {
                self.status = waits_for.to_owned();
            } else if let Some(ended) = status.at(&["state", "terminated"]) {
                self.status = ending(ended);
                if ended.int_at(&["exitCode"]) != 0 {
                    failure = Some(self.status.clone());
                }
            } else if is_true(status, "ready") && status.at(&["state", "running"]).is_some() {
                is_running = true;
                self.ready += 1;
            }
        }
        if self.status != "Completed" {
            return;
        }
        if is_running && condition(pod, "Ready").is_some() {
            self.status = "Running".to_owned();
        } else if let Some(failure) = failure {
            self.status = failure;
        } else if is_running {
            self.status = "NotReady".to_owned();
        }
    }

    fn end(&mut self, pod: &Value) {
        if pod.str_at(&["metadata", "deletionTimestamp"]).is_empty() {
            return;
        }
        if pod.str_at(&["status", "reason"]) == "NodeLost" {
            self.status = "Unknown".to_owned();
        } else if !matches!(pod.str_at(&["status", "phase"]), "Succeeded" | "Failed") {
            self.status = "Terminating".to_owned();
        }
    }

    pub fn ready(&self) -> String {
        format!("{}/{}", self.ready, self.total)
    }

    pub fn status(self) -> String {
        self.status
    }

    /// The number of restarts, and the age of the last one; `now` is in microseconds.
    pub fn restarts(&self, now: i64) -> String {
        match self.restarts {
            Restarts { count, last: "" } | Restarts { count: count @ 0, .. } => count.to_string(),
            Restarts { count, last } => format!("{count} ({} ago)", jsonpath::columns::age(last, now)),
        }
    }
}

/// The phase of a Pod. The reason in its status, or its scheduling gates, take precedence.
fn phase(pod: &Value) -> String {
    const GATED: &str = "SchedulingGated";
    let conditions = pod.items_at(&["status", "conditions"]);
    if conditions.iter().any(|c| text(c, "type") == "PodScheduled" && text(c, "reason") == GATED) {
        return GATED.to_owned();
    }
    match pod.str_at(&["status", "reason"]) {
        "" => pod.str_at(&["status", "phase"]).to_owned(),
        reason => reason.to_owned(),
    }
}

/// How a container has ended.
fn ending(ended: &Value) -> String {
    match (text(ended, "reason"), ended.int_at(&["signal"])) {
        ("", 0) => format!("ExitCode:{}", ended.int_at(&["exitCode"])),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn is_true(status: &Value, name: &str) -> bool {
    status.is_true_at(&[name])
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn cells_show_why_a_pod_does_not_run() {
        let ended = |code: i64| json!({"name": "c", "restartCount": 2, "state": {"terminated": {"exitCode": (code)}}});
        let named = |reason: &str| json!({"name": "c", "state": {"terminated": {"exitCode": 1, "reason": (reason)}}});
        let waiting =
            |reason: &str| json!({"name": "i", "restartCount": 1, "state": {"waiting": {"reason": (reason)}}});
        let running = json!({"name": "c", "ready": true, "state": {"running": {}}});
        let sidecar = json!({"name": "s", "ready": true, "started": true, "restartCount": 5, "state": {"running": {}}});
        let completed = json!({"name": "d", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}});
        let killed = json!({"name": "c", "state": {"terminated": {"exitCode": 1, "signal": 9}}});
        let ready = json!([{"type": "Ready", "status": "True"}]);
        let gated = json!([{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]);
        for (status, want) in [
            (json!({}), "0/2 Pending 0"),
            (json!({"reason": "Evicted"}), "0/2 Evicted 0"),
            (json!({"conditions": gated}), "0/2 SchedulingGated 0"),
            (json!({"initContainerStatuses": [(ended(1))]}), "0/2 Init:ExitCode:1 2"),
            (json!({"initContainerStatuses": [(killed.clone())]}), "0/2 Init:Signal:9 0"),
            (json!({"initContainerStatuses": [(named("Error"))]}), "0/2 Init:Error 0"),
            (json!({"initContainerStatuses": [(waiting("PodInitializing"))]}), "0/2 Init:0/2 1"),
            (json!({"initContainerStatuses": [(waiting("ErrImagePull"))]}), "0/2 Init:ErrImagePull 1"),
            (json!({"initContainerStatuses": [(sidecar), (ended(0))]}), "1/2 Pending 5"),
            (json!({"containerStatuses": [(running.clone())]}), "1/2 Pending 0"),
            (json!({"containerStatuses": [(ended(3))]}), "0/2 ExitCode:3 2"),
            (json!({"containerStatuses": [(killed)]}), "0/2 Signal:9 0"),
            (
                json!({"containerStatuses": [(waiting("CrashLoopBackOff")), (running.clone())]}),
                "1/2 CrashLoopBackOff 1",
            ),
            (json!({"containerStatuses": [(completed.clone())]}), "0/2 Completed 0"),
            (json!({"containerStatuses": [(completed.clone()), (named("Error"))]}), "0/2 Error 0"),
            (json!({"containerStatuses": [(completed.clone()), (running.clone())]}), "1/2 NotReady 0"),
            (json!({"containerStatuses": [(completed), (running)], "conditions": ready}), "1/2 Running 0"),
        ] {
            let mut pod = json!({"metadata": {}, "status": status, "spec": {"containers": [{"name": "c"}],
                "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]}});
            if pod.str_at(&["status", "phase"]).is_empty() {
                pod.set_at(&["status", "phase"], Value::from("Pending"));
            }
            let cells = PodCells::of(&pod);
            let (ready, restarts) = (cells.ready(), cells.restarts(0));
            assert_eq!(format!("{ready} {} {restarts}", cells.status()), want, "{}", pod.to_json());
        }
    }

    #[test]
    fn deleted_pods_are_terminating_unless_they_have_ended() {
        for (status, want) in [
            (json!({"phase": "Running"}), "Terminating"),
            (json!({"phase": "Succeeded"}), "Succeeded"),
            (json!({"phase": "Running", "reason": "NodeLost"}), "Unknown"),
        ] {
            let pod = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": status});
            assert_eq!(PodCells::of(&pod).status(), want);
        }
    }

    #[test]
    fn restarts_have_the_age_of_the_last_one() {
        let state = json!({"terminated": {"finishedAt": "2026-01-01T00:00:00Z"}});
        let status = json!({"restartCount": 3, "lastState": state, "state": {}});
        let pod = json!({"status": {"containerStatuses": [(status)]}});
        let five_minutes_later = 1_767_225_900_000_000;
        assert_eq!(PodCells::of(&pod).restarts(five_minutes_later), "3 (5m ago)");
    }
}
