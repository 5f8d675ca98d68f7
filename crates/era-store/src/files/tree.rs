//! A tree of files as a value: what it may hold, its canonical form, and how an edit changes it.
//!
//! Trees are flat: a list of files by path. Folders are what the paths say. Where contents are
//! kept is not known here.

use std::collections::BTreeMap;

use super::path::{check_path, check_together};
use super::{ContentHash, FilesError};

/// Most files of a tree.
pub const TREE_FILES_MAX: usize = 200_000;

/// A file of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeFile {
    pub path: String,
    pub hash: ContentHash,
    /// How many bytes.
    pub bytes: u64,
    /// Whether it may be executed.
    pub executable: bool,
}

/// A change of a tree.
#[derive(Clone, Debug, Default)]
pub struct Edit {
    /// Files that are put or replaced.
    pub put: Vec<TreeFile>,
    /// Paths, or folders with a `/` at the end, that are removed.
    pub remove: Vec<String>,
    /// Whether everything else is removed.
    pub replace: bool,
}

/// Files in order of their paths, which do not get in each other's way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileTree(Vec<TreeFile>);

impl FileTree {
    /// A tree of these files, in whatever order they come.
    pub fn new(mut files: Vec<TreeFile>) -> Result<FileTree, FilesError> {
        if files.len() > TREE_FILES_MAX {
            let given = files.len();
            return Err(FilesError::TooManyFiles { given, most: TREE_FILES_MAX });
        }
        check_together(files.iter().map(|file| file.path.as_str()))?;
        files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(FileTree(files))
    }

    /// Its files, by path.
    pub fn files(&self) -> &[TreeFile] {
        &self.0
    }

    /// How many bytes its files have together.
    pub fn bytes(&self) -> u64 {
        self.0.iter().fold(0, |sum, file| sum.saturating_add(file.bytes))
    }

    /// The hash of its canonical form: a heading, then one line a file. A path has no line end,
    /// so two trees have the same form only if they are the same.
    pub fn hash(&self) -> ContentHash {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"era tree 1\n");
        for TreeFile { path, hash, bytes, executable } in &self.0 {
            let kind = if *executable { 'x' } else { '-' };
            hasher.update(format!("{kind} {hash} {bytes} {path}\n").as_bytes());
        }
        hasher.finalize().into()
    }

    /// The tree after an edit: removals first, then what is put.
    pub fn edited(self, edit: Edit) -> Result<FileTree, FilesError> {
        let mut files: BTreeMap<String, TreeFile> = if edit.replace {
            BTreeMap::new()
        } else {
            self.0.into_iter().map(|file| (file.path.clone(), file)).collect()
        };
        for path in edit.remove {
            remove(&mut files, &path)?;
        }
        for file in edit.put {
            files.insert(file.path.clone(), file);
        }
        FileTree::new(files.into_values().collect())
    }
}

fn remove(files: &mut BTreeMap<String, TreeFile>, path: &str) -> Result<(), FilesError> {
    check_path(path.strip_suffix('/').unwrap_or(path))?;
    let gone: Vec<String> = if path.ends_with('/') {
        let below = files.range(path.to_owned()..).map(|(path, _)| path);
        below.take_while(|found| found.starts_with(path)).cloned().collect()
    } else {
        files.contains_key(path).then(|| path.to_owned()).into_iter().collect()
    };
    if gone.is_empty() {
        return Err(FilesError::UnknownFile(path.to_owned()));
    }
    for path in gone {
        files.remove(&path);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(path: &str, content: &str) -> TreeFile {
        TreeFile {
            path: path.to_owned(),
            hash: ContentHash::of(content.as_bytes()),
            bytes: content.len() as u64,
            executable: false,
        }
    }

    fn paths(tree: &FileTree) -> Vec<&str> {
        tree.files().iter().map(|file| file.path.as_str()).collect()
    }

    #[test]
    fn the_order_of_files_does_not_change_the_hash_and_everything_else_does() {
        let (a, b) = (file("a", "1"), file("b", "2"));
        let tree = |files: &[&TreeFile]| {
            FileTree::new(files.iter().map(|file| (*file).clone()).collect()).unwrap().hash()
        };
        assert_eq!(tree(&[&a, &b]), tree(&[&b, &a]));
        let others = [
            file("c", "1"),
            file("a", "2"),
            TreeFile { executable: true, ..a.clone() },
            TreeFile { bytes: 2, ..a.clone() },
        ];
        for other in &others {
            assert_ne!(tree(&[&a, &b]), tree(&[other, &file("d", "2")]));
            assert_ne!(tree(&[&a]), tree(&[other]));
        }
        // What a tree is called must not change from version to version: jobs name it.
        assert_eq!(tree(&[]).to_string(), blake3::hash(b"era tree 1\n").to_hex().to_string());
    }

    #[test]
    fn an_edit_removes_then_puts() {
        let tree =
            FileTree::new(vec![file("a/1", "1"), file("a/2", "2"), file("a-b", "3")]).unwrap();
        let edit =
            Edit { put: vec![file("a", "4")], remove: vec!["a/".to_owned()], ..Edit::default() };
        assert_eq!(paths(&tree.clone().edited(edit).unwrap()), ["a", "a-b"]);
        let missing = Edit { remove: vec!["b".to_owned()], ..Edit::default() };
        assert!(matches!(tree.clone().edited(missing), Err(FilesError::UnknownFile(_))));
        let upwards = Edit { remove: vec!["../a".to_owned()], ..Edit::default() };
        assert!(matches!(tree.clone().edited(upwards), Err(FilesError::Path(_))));
        let replace = Edit { put: vec![file("z", "5")], replace: true, ..Edit::default() };
        assert_eq!(paths(&tree.edited(replace).unwrap()), ["z"]);
    }

    proptest! {
        /// Against a naive map of paths to contents.
        #[test]
        fn edits_give_what_a_plain_map_gives(
            steps in prop::collection::vec((any::<bool>(), "[ab]/[cd]", "[xyz]"), 0..20)
        ) {
            let mut tree = FileTree::default();
            let mut map = BTreeMap::new();
            for (put, path, content) in steps {
                let edit = if put {
                    map.insert(path.clone(), content.clone());
                    Edit { put: vec![file(&path, &content)], ..Edit::default() }
                } else if map.remove(&path).is_some() {
                    Edit { remove: vec![path], ..Edit::default() }
                } else {
                    continue;
                };
                tree = tree.edited(edit).unwrap();
            }
            let want: Vec<TreeFile> = map.iter().map(|(path, content)| file(path, content)).collect();
            prop_assert_eq!(tree.files(), want);
        }
    }
}
