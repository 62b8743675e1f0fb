//! Patches of kustomize. They are parts of objects, and look like manifests.

use std::path::{Component, Path, PathBuf};

use machinery::{Value, yaml};

use super::Input;
use crate::limits::PRELOADED_FILE_BYTES_MAX;

const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
/// The directories above a file in which a kustomization that names it is looked for.
const ABOVE_MAX: usize = 3;
/// A directory whose files are patches by convention, also those that are not in use.
const PATCHES: &str = "patches";

/// Whether a kustomization in a directory above a file names it as a patch, or keeps it as one that is not in use: in its directory
/// of patches, or beside it under a name such as `manager_patch.yaml`.
pub fn is_patch(file: &Path) -> bool {
    file.ancestors().skip(1).take(ABOVE_MAX).any(|directory| {
        let (Some(kustomization), Ok(below)) = (kustomization(directory), file.strip_prefix(directory)) else {
            return false;
        };
        let is_among = || below.starts_with(PATCHES) && self::kustomization(&directory.join(PATCHES)).is_none();
        let is_resource = || kustomization.texts_at(&["resources"]).any(|path| clean(path) == below);
        let is_beside =
            || below.components().count() == 1 && below.to_string_lossy().contains("patch") && !is_resource();
        patches(&kustomization).any(|patch| patch == below) || is_among() || is_beside()
    })
}

fn kustomization(directory: &Path) -> Option<Value> {
    let read = |name: &&str| Input::File(directory.join(name)).text(PRELOADED_FILE_BYTES_MAX).ok();
    yaml::decode(&NAMES.iter().find_map(read)?).ok().map(|decoded| decoded.value)
}

/// The files that a kustomization applies as patches.
fn patches(kustomization: &Value) -> impl Iterator<Item = PathBuf> {
    let lists = ["patches", "patchesJson6902"].into_iter().flat_map(|list| kustomization.items_at(&[list]));
    let named = lists.map(|patch| patch.str_at(&["path"])).chain(kustomization.texts_at(&["patchesStrategicMerge"]));
    named.map(clean)
}

/// A path without steps to where it is already.
fn clean(path: &str) -> PathBuf {
    Path::new(path).components().filter(|part| *part != Component::CurDir).collect()
}
