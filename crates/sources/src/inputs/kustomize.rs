//! Patches of kustomize. They are parts of objects, and look like manifests.

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

use machinery::yaml;

use super::Input;
use crate::limits::PRELOADED_FILE_BYTES_MAX;

const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
/// The directories above a file in which a kustomization that names it is looked for.
const ABOVE_MAX: usize = 3;
/// A directory whose files are patches by convention, also those that are not in use.
const PATCHES: &str = "patches";

/// The kustomizations of directories, each of which is read once.
#[derive(Debug, Default)]
pub struct Kustomizations(HashMap<PathBuf, Option<Kustomization>>);

#[derive(Debug)]
struct Kustomization {
    /// Files that are applied as patches, not as objects.
    patches: HashSet<PathBuf>,
    resources: HashSet<PathBuf>,
}

impl Kustomizations {
    /// Whether a kustomization in a directory above a file names it as a patch, or keeps it as one that is not in use: in its
    /// directory of patches, or beside it under a name such as `manager_patch.yaml`.
    pub fn has_patch(&mut self, file: &Path) -> bool {
        file.ancestors().skip(1).take(ABOVE_MAX).any(|directory| {
            let Ok(below) = file.strip_prefix(directory) else { return false };
            let is_beside = below.components().count() == 1 && below.to_string_lossy().contains("patch");
            let Some(kustomization) = self.of(directory) else { return false };
            let is_unused = is_beside && !kustomization.resources.contains(below);
            kustomization.patches.contains(below)
                || is_unused
                || below.starts_with(PATCHES) && self.of(&directory.join(PATCHES)).is_none()
        })
    }

    fn of(&mut self, directory: &Path) -> Option<&Kustomization> {
        if !self.0.contains_key(directory) {
            self.0.insert(directory.to_owned(), Kustomization::read(directory));
        }
        self.0.get(directory)?.as_ref()
    }
}

impl Kustomization {
    fn read(directory: &Path) -> Option<Kustomization> {
        let read = |name: &&str| Input::File(directory.join(name)).text(PRELOADED_FILE_BYTES_MAX).ok();
        let kustomization = yaml::decode(&NAMES.iter().find_map(read)?).ok()?.value;
        let lists = ["patches", "patchesJson6902"].into_iter().flat_map(|list| kustomization.items_at(&[list]));
        let patches = lists.map(|patch| patch.str_at(&["path"]));
        Some(Kustomization {
            patches: patches.chain(kustomization.texts_at(&["patchesStrategicMerge"])).map(clean).collect(),
            resources: kustomization.texts_at(&["resources"]).map(clean).collect(),
        })
    }
}

/// A path without steps to where it is already.
fn clean(path: &str) -> PathBuf {
    Path::new(path).components().filter(|part| *part != Component::CurDir).collect()
}
