//! Images that are built and pushed through the engine, their output as it comes.
//!
//! What is built lies below the account's own name in the site's registry, so nobody overwrites
//! another's. Publishing is another step: the catalogue changes in one transaction, once the image
//! is where every node finds it.

use std::net::IpAddr;

use era_api::image::{BuildImage, BuiltImage, ImageNews, PushImage};
use era_cloud::Staged;
use era_cloud::docker::{BUILD_TIME, BUILDS_MAX, Build, DockerEngine, DockerError, build_place};
use era_core::units::UserId;
use era_store::files::ContentHash;
use tokio::sync::mpsc;

use crate::auth::Caller;
use crate::error::{AppError, Kind};
use crate::files::Service;
use crate::wire::Wrong;
use crate::{Services, audit};

/// Lines that wait for a slow reader.
const LINES_MAX: usize = 256;
/// Longest name, and most and longest arguments.
const NAME_MAX: usize = 128;
const ARGUMENTS_MAX: usize = 64;
const ARGUMENT_BYTES_MAX: usize = 4096;

/// Builds an image out of files that were sent before, and pushes it if that is wanted.
pub async fn build(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    new: BuildImage,
) -> Result<mpsc::Receiver<ImageNews>, AppError> {
    let engine = engine(services).await?;
    let reference = reference(&engine, caller, &new.name, new.push)?;
    let long = new.arguments.iter().any(|(k, v)| k.len() + v.len() > ARGUMENT_BYTES_MAX);
    if new.arguments.len() > ARGUMENTS_MAX || long {
        let detail =
            format!("give at most {ARGUMENTS_MAX} arguments of {ARGUMENT_BYTES_MAX} bytes");
        return Err(AppError::bad_field("arguments", Wrong::said(detail)));
    }
    let hash: ContentHash = new.code.parse()?;
    services.files.check_usable(&Service::of(services).changer(caller)?, hash).await?;
    let files = services.files.stage(hash).await?;
    let dockerfile = new.dockerfile.unwrap_or_else(|| "Dockerfile".to_owned());
    if !files.iter().any(|file| file.path == dockerfile) {
        let detail =
            format!("`{dockerfile}` is not among the files: name the Dockerfile by its path");
        return Err(AppError::bad_field("dockerfile", Wrong::said(detail)));
    }
    audit::note(services, &caller.name, from, "image.build", &reference, true).await;
    let staged = |file: era_store::files::StagedFile| Staged {
        from: file.from,
        to: file.path,
        executable: file.executable,
    };
    let files: Vec<Staged> = files.into_iter().map(staged).collect();
    let scratch = services.store.folder().to_path_buf();
    let build = Build {
        reference: reference.clone(),
        dockerfile,
        arguments: new.arguments.into_iter().collect(),
    };
    begin(move |lines| async move {
        let context = era_cloud::docker::context(files, scratch).await?;
        engine.build(&build, context, &lines).await?;
        let facts = match new.push {
            true => engine.push(&reference, &lines).await?,
            false => engine.describe(&reference).await?,
        };
        Ok(BuiltImage { reference, digest: facts.digest, bytes: facts.bytes })
    })
}

/// Sends an image that was built to the registry.
pub async fn push(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    new: PushImage,
) -> Result<mpsc::Receiver<ImageNews>, AppError> {
    let engine = engine(services).await?;
    Service::of(services).changer(caller)?;
    let reference = reference(&engine, caller, &new.name, true)?;
    audit::note(services, &caller.name, from, "image.push", &reference, true).await;
    begin(move |lines| async move {
        let facts = engine.push(&reference, &lines).await?;
        Ok(BuiltImage { reference, digest: facts.digest, bytes: facts.bytes })
    })
}

async fn engine(services: &Services) -> Result<DockerEngine, AppError> {
    match services.images.reach().await {
        Some(Ok(engine)) => Ok(engine),
        Some(Err(error)) => Err(AppError::new(Kind::Unavailable, "engine_away", error.to_string())),
        None => {
            let detail = "this server has no engine that builds images: start `era up` with \
                          `--executor docker://…`, `era app` with `--images docker://…`";
            Err(AppError::new(Kind::Conflict, "no_engine", detail))
        }
    }
}

/// What an image of this account is called in full. One that is to be pushed is the registry's.
fn reference(
    engine: &DockerEngine,
    caller: &Caller,
    name: &str,
    pushed: bool,
) -> Result<String, AppError> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-:/".contains(c);
    let (path, tag) = name.split_once(':').unwrap_or((name, "latest"));
    let whole = |part: &str| part.starts_with(|c: char| c.is_ascii_alphanumeric());
    let good = name.len() <= NAME_MAX
        && name.chars().all(fits)
        && path.split('/').all(whole)
        && whole(tag)
        && !tag.contains([':', '/']);
    if !good {
        let detail = "give small letters, digits and `._-/`, and a tag behind a `:`: `torch:2.9`";
        return Err(AppError::bad_field("name", Wrong::said(detail)));
    }
    let below = format!("{}/{path}:{tag}", folder(&caller.name, caller.user));
    match engine.registry().reference(&below) {
        Ok(reference) => Ok(reference),
        // One engine alone needs no registry to find what it has built.
        Err(_) if !engine.is_swarm() && !pushed => Ok(format!("era/{below}")),
        Err(error) => Err(AppError::new(Kind::Conflict, "no_registry", error.to_string())),
    }
}

/// Where the images of an account lie in a registry, which knows fewer names than accounts have: a
/// name that it does not know is followed by `--` and the account's number, and no other name has
/// two dashes in a row. So two accounts never share a folder.
fn folder(name: &str, user: UserId) -> String {
    let plain = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    if name.split(['.', '-']).all(plain) {
        return name.to_owned();
    }
    let mut letters = name.to_ascii_lowercase();
    letters.retain(|c| c.is_ascii_alphanumeric());
    format!("{}--{}", if letters.is_empty() { "user" } else { &letters }, user.0)
}

/// Begins something that takes long. What it says comes out as it goes on; the last says how it
/// ended.
fn begin<F>(
    work: impl FnOnce(mpsc::Sender<String>) -> F,
) -> Result<mpsc::Receiver<ImageNews>, AppError>
where
    F: Future<Output = Result<BuiltImage, DockerError>> + Send + 'static,
{
    let Some(place) = build_place() else {
        let detail = format!("{BUILDS_MAX} images are being built already: try again in a while");
        return Err(AppError::new(Kind::TooMany, "busy", detail).after(15));
    };
    let (lines, mut written) = mpsc::channel::<String>(LINES_MAX);
    let (tell, told) = mpsc::channel::<ImageNews>(LINES_MAX);
    let work = work(lines);
    let end = tell.clone();
    let passing_on = tokio::spawn(async move {
        while let Some(line) = written.recv().await {
            if tell.send(ImageNews::Line(line)).await.is_err() {
                return;
            }
        }
    });
    tokio::spawn(async move {
        let _place = place;
        let done = tokio::time::timeout(BUILD_TIME, work).await;
        // Its lines come before its end.
        let _ = passing_on.await;
        let last = match done {
            Ok(Ok(built)) => ImageNews::Done(built),
            Ok(Err(error)) => ImageNews::Failed(error.to_string()),
            Err(_) => ImageNews::Failed("it took longer than an hour, and was given up".into()),
        };
        // Whoever asked may be gone.
        let _ = end.send(last).await;
    });
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_accounts_share_a_folder_of_the_registry() {
        let names =
            ["adab", "ada_b", "ada.b", "ada-b", "AdaB", "ada--b", "adab--2", "a..b", "___", "ada."];
        let folders: std::collections::BTreeSet<String> =
            (0..).zip(names).map(|(user, name)| folder(name, UserId(user))).collect();
        assert_eq!(folders.len(), names.len(), "{folders:?}");
        for folder in &folders {
            // What a registry takes: runs of letters and digits, with one `.` or some `-` between.
            let runs = folder.replace("--", "-");
            assert!(runs.split(['.', '-']).all(|run| !run.is_empty()), "{folder}");
            assert!(!folder.contains(|c: char| c.is_ascii_uppercase() || c == '_'), "{folder}");
        }
        assert_eq!(folder("ada.b-c", UserId(7)), "ada.b-c");
        assert_eq!(folder("Ada_B", UserId(7)), "adab--7");
    }
}
