//! The cells of requests for the status of pools.

use machinery::Value;

use resource::builtin::columns::parts::condition;

/// The sum of a field over all pools, or a dash while the status has no pools.
pub fn total(request: &Value, field: &str) -> String {
    shown(request, |pools| pools.iter().map(|pool| pool.int_at(&[field])).sum())
}

/// The number of pools with errors, or a dash.
pub fn errors(request: &Value) -> String {
    let has_error = |pool: &&Value| pool.get("validationError").is_some_and(|error| !error.is_null());
    shown(request, |pools| i64::try_from(pools.iter().filter(has_error).count()).unwrap_or(i64::MAX))
}

fn shown(request: &Value, number: impl Fn(&[Value]) -> i64) -> String {
    let has_pools = request.get("status").is_some_and(|status| !status.is_null());
    match has_pools && condition(request, "Failed").is_none() {
        true => number(request.items_at(&["status", "pools"])).to_string(),
        false => "-".to_owned(),
    }
}

pub fn request_status(request: &Value) -> String {
    let (count, shown) = (request.int_at(&["status", "poolCount"]), request.items_at(&["status", "pools"]).len());
    match (condition(request, "Complete"), condition(request, "Failed")) {
        (Some(_), _) if usize::try_from(count).is_ok_and(|count| count > shown) => {
            format!("Complete ({shown}/{count} pools)")
        }
        (Some(_), _) => "Complete".to_owned(),
        (None, Some(_)) => "Failed".to_owned(),
        (None, None) => "Pending".to_owned(),
    }
}
