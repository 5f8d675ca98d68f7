//! A job's code on its way to the server, and its outputs on their way back.

use std::path::Path;

use anyhow::bail;
use era_api::client::Client;
use era_api::client::transfer::{LocalFile, RemoteFile};
use era_api::data::{JobFolder, NewTree, OutputFile};
use era_api::page::{PAGE_MAX, PageAsk};

use super::{local, pull, push};
use crate::cli::BadUsage;
use crate::cli::look::{self, note};
use crate::job::Script;

/// Most bytes of code: more is data, or was not meant to be sent.
const CODE_BYTES_MAX: u64 = 512 << 20;
/// Most files of code.
const CODE_FILES_MAX: usize = 20_000;

/// Uploads a folder as a job's code, with a script that need not be in it; the hash of its tree.
pub(crate) fn upload(
    client: &Client,
    folder: Option<&Path>,
    script: Option<&Script>,
) -> anyhow::Result<String> {
    let mut files = match folder {
        Some(folder) if !folder.is_dir() => {
            bail!(BadUsage(format!("{} is no folder: --code takes one", folder.display())));
        }
        Some(folder) => local::files(folder, local::Kind::Code)?,
        None => Vec::new(),
    };
    if let Some(script) = script
        && !files.iter().any(|file| file.path == script.at)
    {
        files.push(local::one(&script.file, Path::new(&script.at))?);
        files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    }
    let before = files.len();
    files.retain(|file| !is_the_jobs_own(&file.path));
    if files.len() < before {
        let stay = before - files.len();
        note(&format!("{stay} files in outputs/ and checkpoints/ stay here: a job has its own."));
    }
    send(client, &files)
}

/// Uploads a folder for an image to be built from; the hash of its tree.
pub(crate) fn upload_context(
    client: &Client,
    folder: &Path,
    dockerfile: &str,
) -> anyhow::Result<String> {
    if !folder.is_dir() {
        bail!(BadUsage(format!("{} is no folder: give the Dockerfile's", folder.display())));
    }
    send(client, &local::files(folder, local::Kind::Image(dockerfile))?)
}

fn send(client: &Client, files: &[LocalFile]) -> anyhow::Result<String> {
    check_size(files)?;
    let files = push::send(client, files)?;
    Ok(client.put_tree(&NewTree { files })?.hash)
}

/// Whether a file would lie where a job keeps what it makes itself; also what `era run` brought
/// back from the last one.
fn is_the_jobs_own(path: &str) -> bool {
    ["outputs/", "checkpoints/"].iter().any(|own| path.starts_with(own))
}

fn check_size(files: &[LocalFile]) -> anyhow::Result<()> {
    let bytes: u64 = files.iter().map(|file| file.bytes).sum();
    if bytes <= CODE_BYTES_MAX && files.len() <= CODE_FILES_MAX {
        return Ok(());
    }
    let largest: Vec<String> = push::largest(files, 5)
        .into_iter()
        .map(|(path, bytes)| format!("  {:>12}  {}", look::bytes(bytes), path.display()))
        .collect();
    bail!(BadUsage(format!(
        "the code has {} in {} files: at most {} in {CODE_FILES_MAX}; name what is not needed in \
         .eraignore, and send data with `era data push`. The largest files are\n{}",
        look::bytes(bytes),
        files.len(),
        look::bytes(CODE_BYTES_MAX),
        largest.join("\n")
    )))
}

pub(crate) fn kept(client: &Client, job: u64, kept: JobFolder) -> anyhow::Result<Vec<OutputFile>> {
    let mut page = PageAsk { cursor: None, limit: Some(PAGE_MAX) };
    let mut files = Vec::new();
    loop {
        let some = client.kept(job, kept, &page)?;
        files.extend(some.items);
        match some.next {
            Some(next) => page.cursor = Some(next),
            None => return Ok(files),
        }
    }
}

/// Brings what is kept of a job into a folder; how many files.
pub(crate) fn bring(client: &Client, job: u64, of: JobFolder, into: &Path) -> anyhow::Result<u64> {
    let files = kept(client, job, of)?;
    let files: Vec<RemoteFile> =
        files.iter().map(|file| RemoteFile::of_job(job, of, file)).collect();
    if !files.is_empty() {
        pull::bring(client, &files, into)?;
    }
    Ok(files.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_job_keeps_itself_is_no_code() {
        for own in ["outputs/3/model.pt", "checkpoints/base.pt"] {
            assert!(is_the_jobs_own(own));
        }
        for code in ["outputs.py", "lib/outputs/a.py", "checkpoints"] {
            assert!(!is_the_jobs_own(code));
        }
    }

    #[test]
    fn code_that_is_too_large_is_refused_with_its_largest_files() {
        let file = |path: &str, bytes| LocalFile {
            file: path.into(),
            path: path.to_owned(),
            bytes,
            executable: false,
        };
        let files = [file("small.py", 10), file("model.bin", 600 << 20), file("b", 20)];
        let refused = check_size(&files).unwrap_err().to_string();
        let (at, small) = (refused.find("model.bin").unwrap(), refused.find("small.py").unwrap());
        assert!(at < small && refused.contains(".eraignore"), "{refused}");
        check_size(&files[..1]).unwrap();
    }
}
