//! The Progress objects of sets and files.

use machinery::Value;

/// The objects, as `--progress` names them. Fails with a one-line message.
pub fn objects(given: &[String]) -> Result<Vec<Value>, String> {
    let mut objects = vec![];
    for name in given {
        let found = match server::progress_set(name) {
            Some(text) => server::read_progress(text.as_bytes()),
            None => {
                let known: Vec<&str> = server::progress_sets().collect();
                let unread = |error| format!("{error}; the sets are {}", known.join(", "));
                std::fs::read(name).map_err(unread).and_then(|text| server::read_progress(&text))
            }
        };
        objects.extend(found.map_err(|why| format!("--progress {name}: {why}"))?);
    }
    Ok(objects)
}
