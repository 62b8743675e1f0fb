//! Selection of plugins: `--enable-admission-plugins`, `--disable-admission-plugins`, `--admission-control`.

use super::{Implementation, PLUGINS};

#[derive(Clone, Debug, Default)]
pub struct PluginFlags {
    pub enable: Vec<String>,
    pub disable: Vec<String>,
    /// The only plugins to run; excludes the other flags.
    pub only: Vec<String>,
}

/// The plugins that run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnabledPlugins {
    /// A bit for each row of the table.
    bits: u64,
}

impl Default for EnabledPlugins {
    fn default() -> EnabledPlugins {
        EnabledPlugins::of(|_, by_default| by_default)
    }
}

impl EnabledPlugins {
    /// The plugins for which `runs` is true; it is passed their name, and whether they run by default.
    fn of(runs: impl Fn(&str, bool) -> bool) -> EnabledPlugins {
        let enabled = PLUGINS.iter().enumerate().filter(|(_, plugin)| runs(plugin.name, plugin.by_default));
        EnabledPlugins { bits: enabled.fold(0, |bits, (i, _)| bits | 1 << i) }
    }

    /// Reads the flags. The error is kube-apiserver's.
    pub fn parse(flags: &PluginFlags) -> Result<EnabledPlugins, String> {
        let PluginFlags { enable, disable, only } = flags;
        let has = |list: &[String], name: &str| list.iter().any(|listed| listed == name);
        if !only.is_empty() && (!enable.is_empty() || !disable.is_empty()) {
            return Err(
                "admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive"
                    .to_owned(),
            );
        }
        let lists =
            [("admission-control", only), ("enable-admission-plugins", enable), ("disable-admission-plugins", disable)];
        for (flag, names) in lists {
            if let Some(name) = names.iter().find(|name| PLUGINS.iter().all(|plugin| plugin.name != name.as_str())) {
                return Err(format!("{flag} plugin {name:?} is unknown{}", suggestion(name)));
            }
        }
        let mut both: Vec<&str> = enable.iter().map(String::as_str).filter(|name| has(disable, name)).collect();
        both.sort_unstable();
        if !both.is_empty() {
            let both = both.join(" ");
            return Err(format!("[{both}] in enable-admission-plugins and disable-admission-plugins overlapped"));
        }
        Ok(EnabledPlugins::of(|name, by_default| {
            if only.is_empty() { (by_default || has(enable, name)) && !has(disable, name) } else { has(only, name) }
        }))
    }

    pub fn runs(&self, name: &str) -> bool {
        PLUGINS.iter().position(|plugin| plugin.name == name).is_some_and(|i| self.bits & 1 << i != 0)
    }

    /// All of these plugins but one.
    pub fn without(&self, name: &str) -> EnabledPlugins {
        EnabledPlugins::of(|plugin, _| plugin != name && self.runs(plugin))
    }
}

impl PluginFlags {
    /// The plugins that are enabled by name and have no effect.
    pub fn without_effect(&self) -> Vec<&'static str> {
        let named = |name: &str| self.enable.iter().chain(&self.only).any(|given| given == name);
        // AlwaysAdmit has no effect in kube-apiserver either
        let plugins = PLUGINS
            .iter()
            .filter(|plugin| plugin.implementation == Implementation::None && plugin.name != "AlwaysAdmit");
        plugins.map(|plugin| plugin.name).filter(|name| named(name)).collect()
    }
}

/// The plugin with the most similar name, if it differs by at most three edits.
fn suggestion(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let candidates = PLUGINS.iter().map(|plugin| (distance(&lower, &plugin.name.to_ascii_lowercase()), plugin.name));
    match candidates.min() {
        Some((edits, similar)) if edits <= 3 => format!("; did you mean {similar:?}?"),
        _ => String::new(),
    }
}

/// The Levenshtein distance of two texts, in bytes.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut corner = i;
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = replaced.min(corner + 1).min(row[j] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(enable: &str, disable: &str, only: &str) -> PluginFlags {
        let list = |text: &str| text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        PluginFlags { enable: list(enable), disable: list(disable), only: list(only) }
    }

    #[test]
    fn plugins_are_selected_by_name() {
        assert!(PLUGINS.len() <= 64);
        let all = EnabledPlugins::default();
        assert!(all.runs("PodSecurity") && all.runs("ResourceQuota") && !all.runs("AlwaysPullImages"));
        let some = EnabledPlugins::parse(&flags("AlwaysPullImages", "PodSecurity,ServiceAccount", "")).unwrap();
        assert!(some.runs("AlwaysPullImages") && !some.runs("PodSecurity") && some.runs("Priority"));
        let only = EnabledPlugins::parse(&flags("", "", "Priority")).unwrap();
        assert!(only.runs("Priority") && !only.runs("NamespaceLifecycle"));
        let fewer = all.without("PodSecurity");
        assert!(!fewer.runs("PodSecurity") && fewer.runs("ResourceQuota") && !fewer.runs("AlwaysPullImages"));
    }

    #[test]
    fn refusals_are_those_of_kube_apiserver() {
        let cases = [
            (flags("Boats", "", ""), "enable-admission-plugins plugin \"Boats\" is unknown"),
            (
                flags("", "PodSecurty", ""),
                "disable-admission-plugins plugin \"PodSecurty\" is unknown; did you mean \"PodSecurity\"?",
            ),
            (
                flags("Priority,LimitRanger", "LimitRanger,Priority", ""),
                "[LimitRanger Priority] in enable-admission-plugins and disable-admission-plugins overlapped",
            ),
            (
                flags("Priority", "", "Priority"),
                "admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive",
            ),
        ];
        for (flags, want) in cases {
            assert_eq!(EnabledPlugins::parse(&flags).unwrap_err(), want);
        }
    }

    #[test]
    fn plugins_without_effect_are_named() {
        let given = flags("EventRateLimit,AlwaysPullImages,AlwaysAdmit", "ImagePolicyWebhook", "");
        assert_eq!(given.without_effect(), ["EventRateLimit"]);
    }
}
