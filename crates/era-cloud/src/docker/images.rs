//! Images: pulled, built, pushed and described through the engine. The catalogue of images is not
//! known here.

use std::collections::HashMap;
use std::time::Duration;

use bollard::query_parameters::{
    BuildImageOptions, CreateImageOptions, ListImagesOptions, PushImageOptions, RemoveImageOptions,
    TagImageOptions,
};
use futures_util::StreamExt;
use tokio::sync::mpsc;

use super::building::BUILD_CPU_MILLI;
use super::engine::DockerEngine;
use super::failure::{DockerError, sentence};
use super::registry::Registry;

/// How many of the last lines of a build are repeated when it fails.
const LAST_LINES: usize = 20;
/// Most of a line of output that is passed on.
const LINE_MAX: usize = 4096;

/// What images of jobs' own Dockerfiles are called, below a registry or behind `era-`.
pub(super) const CODE: &str = "code";
/// The kernel counts a build's share of the cores over so many microseconds.
const CPU_PERIOD_US: i32 = 100_000;

/// What is known of an image that an engine has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageFacts {
    /// Its digest in a registry, once it was pushed to or pulled from one.
    pub digest: Option<String>,
    pub bytes: Option<u64>,
}

/// An image to be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// What it is called then, with its tag.
    pub reference: String,
    /// The Dockerfile's path in the context.
    pub dockerfile: String,
    /// What `ARG` lines read.
    pub arguments: HashMap<String, String>,
}

/// The tar file that an image is built from, piece by piece.
pub type Context = std::pin::Pin<
    Box<dyn futures_util::Stream<Item = Result<bytes::Bytes, std::io::Error>> + Send>,
>;

/// Where lines of output go, one by one. Whoever no longer listens is not waited for.
pub type OutputLines = mpsc::Sender<String>;

impl DockerEngine {
    /// The registry that its images go to.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Makes certain that an engine has an image: one that is there is not asked for again.
    pub(super) async fn ensure_image(&self, image: &str) -> Result<(), DockerError> {
        match self.api.inspect_image(image).await {
            Ok(_) => Ok(()),
            Err(_) => self.pull(image).await,
        }
    }

    /// Fetches an image.
    pub async fn pull(&self, image: &str) -> Result<(), DockerError> {
        let (name, tag) = split_tag(image);
        let options = CreateImageOptions {
            from_image: Some(name.to_owned()),
            tag: Some(tag.to_owned()),
            ..CreateImageOptions::default()
        };
        let credentials = self.registry.credentials_for(image);
        let mut steps = std::pin::pin!(self.api.create_image(Some(options), None, credentials));
        while let Some(step) = steps.next().await {
            step.map_err(|error| match DockerError::of(&self.place, "pull", error) {
                passing if passing.is_passing() => passing,
                refused => {
                    let answer = match refused {
                        DockerError::Refused { answer, .. }
                        | DockerError::Missing { answer, .. } => answer,
                        other => other.to_string(),
                    };
                    let (engine, answer) = (self.place.clone(), self.registry.redact(&answer));
                    DockerError::NoImage { engine, image: image.to_owned(), answer }
                }
            })?;
        }
        Ok(())
    }

    /// Builds an image out of a context, which is a tar file. Lines of output go to `output`; the
    /// last ones are repeated in the error where it fails.
    pub async fn build(
        &self,
        build: &Build,
        context: Context,
        output: &OutputLines,
    ) -> Result<(), DockerError> {
        let options = BuildImageOptions {
            dockerfile: build.dockerfile.clone(),
            t: Some(build.reference.clone()),
            buildargs: Some(build.arguments.clone()),
            rm: true,
            forcerm: true,
            cpuperiod: Some(CPU_PERIOD_US),
            cpuquota: Some(BUILD_CPU_MILLI * (CPU_PERIOD_US / 1000)),
            ..BuildImageOptions::default()
        };
        let credentials = self.registry.host().and_then(|host| {
            let one = self.registry.credentials_for(&build.reference)?;
            Some(HashMap::from([(host.to_owned(), one)]))
        });
        let mut steps = std::pin::pin!(self.api.build_image(
            options,
            credentials,
            Some(bollard::body_try_stream(context))
        ));
        let mut last: Vec<String> = Vec::new();
        let failed = |answer: String, last: &[String]| DockerError::Build {
            answer: self.registry.redact(&sentence(&answer)),
            last: last.join("\n"),
        };
        while let Some(step) = steps.next().await {
            let step =
                step.map_err(|error| match DockerError::of(&self.place, "build", error) {
                    // A full disk is no fault of the Dockerfile's.
                    refused if refused.is_full() => refused,
                    DockerError::Refused { answer, .. } => failed(answer, &last),
                    other => other,
                })?;
            for line in self.lines([step.stream, step.status]) {
                // A listener that is gone does not stop the build.
                let _ = output.send(line.clone()).await;
                last.push(line);
                if last.len() > LAST_LINES {
                    last.remove(0);
                }
            }
            if let Some(answer) = step.error_detail.and_then(|detail| detail.message) {
                return Err(failed(answer, &last));
            }
        }
        Ok(())
    }

    /// Output as lines that hide nothing but secrets.
    fn lines(&self, texts: [Option<String>; 2]) -> Vec<String> {
        let all = texts.into_iter().flatten().collect::<Vec<_>>().join("\n");
        let shown = all.lines().filter(|line| !line.trim().is_empty());
        shown
            .map(|line| self.registry.redact(&line.chars().take(LINE_MAX).collect::<String>()))
            .collect()
    }

    /// Gives an image another name.
    pub async fn tag(&self, image: &str, reference: &str) -> Result<(), DockerError> {
        let (repo, tag) = split_tag(reference);
        let options = TagImageOptions { repo: Some(repo.to_owned()), tag: Some(tag.to_owned()) };
        let tagged = self.api.tag_image(image, Some(options)).await;
        tagged.map_err(|error| DockerError::of(&self.place, "name an image", error))
    }

    /// Sends an image to the registry in its name, and says what became of it.
    pub async fn push(&self, image: &str, output: &OutputLines) -> Result<ImageFacts, DockerError> {
        let (name, tag) = split_tag(image);
        let options = PushImageOptions { tag: Some(tag.to_owned()), platform: None };
        let credentials = self.registry.credentials_for(image);
        let mut steps = std::pin::pin!(self.api.push_image(name, Some(options), credentials));
        while let Some(step) = steps.next().await {
            let step = step.map_err(|error| {
                let what = format!("push `{image}`");
                match DockerError::of(&self.place, &what, error) {
                    DockerError::Refused { engine, what, answer, status } => {
                        let answer = self.registry.redact(&answer);
                        DockerError::Refused { engine, what, answer, status }
                    }
                    other => other,
                }
            })?;
            // Progress of single layers is not for a log.
            let told = step.status.filter(|_| step.progress_detail.is_none());
            for line in self.lines([told, None]) {
                let _ = output.send(line).await;
            }
        }
        self.describe(image).await
    }

    /// Whether the engine has an image.
    pub(super) async fn has(&self, image: &str) -> Result<bool, DockerError> {
        match self.describe(image).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_missing() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether an image that the engine has is in its registry, too. Where the registry does not
    /// say, the engine's word counts: what was pushed once is not held up by a registry that is
    /// away.
    pub(super) async fn is_pushed(&self, image: &str) -> Result<bool, DockerError> {
        if self.describe(image).await?.digest.is_none() {
            return Ok(false);
        }
        // Some engines give a digest to whatever they build, so the registry is asked.
        let credentials = self.registry.credentials_for(image);
        let found = self.api.inspect_registry_image(image, credentials).await;
        let found = found.map_err(|error| DockerError::of(&self.place, "ask a registry", error));
        Ok(!found.is_err_and(|error| error.is_missing()))
    }

    /// Removes images of jobs' own Dockerfiles that were made so long ago and that no container
    /// uses. One that is wanted again comes from the engine's cache. Says how many.
    pub async fn remove_code(&self, kept: Duration) -> Result<usize, DockerError> {
        let code = self.registry.reference(CODE).unwrap_or_else(|_| format!("era-{CODE}"));
        let filters = HashMap::from([("reference".to_owned(), vec![code.clone()])]);
        let options = ListImagesOptions { filters: Some(filters), ..ListImagesOptions::default() };
        let failed = |error| DockerError::of(&self.place, "list images", error);
        let listed = self.api.list_images(Some(options)).await.map_err(failed)?;
        let mut removed = 0;
        for image in listed.into_iter().flat_map(|image| image.repo_tags) {
            if split_tag(&image).0 != code || !self.is_older(&image, kept).await {
                continue;
            }
            let options = RemoveImageOptions::default();
            // One that a container uses is refused, and stays until the next time.
            match self.api.remove_image(&image, Some(options), None).await {
                Ok(_) => removed += 1,
                Err(error) => tracing::debug!(image, %error, "an image stays"),
            }
        }
        Ok(removed)
    }

    /// Whether an image got its name longer ago than this. When it was built does not say when it
    /// was last wanted: the engine keeps what it built before.
    async fn is_older(&self, image: &str, than: Duration) -> bool {
        let named = self.api.inspect_image(image).await.ok().and_then(|found| found.metadata);
        let Some(at) = named.and_then(|named| named.last_tag_time) else { return false };
        let Ok(at) = at.parse::<jiff::Timestamp>() else { return false };
        let past = self.clock.now().0.saturating_sub(at.as_millisecond());
        u64::try_from(past).is_ok_and(|ms| Duration::from_millis(ms) >= than)
    }

    /// What is known of an image that the engine has.
    pub async fn describe(&self, image: &str) -> Result<ImageFacts, DockerError> {
        let found = self.api.inspect_image(image).await;
        let found = found
            .map_err(|error| DockerError::of(&self.place, &format!("find `{image}`"), error))?;
        let (name, _) = split_tag(image);
        let digests = found.repo_digests.unwrap_or_default();
        let digest = digests.iter().find_map(|one| one.strip_prefix(name)?.strip_prefix('@'));
        let bytes = found.size.and_then(|bytes| u64::try_from(bytes).ok());
        Ok(ImageFacts { digest: digest.map(str::to_owned), bytes })
    }
}

/// A reference as its name and its tag or digest; `latest` where there is none.
pub(super) fn split_tag(reference: &str) -> (&str, &str) {
    if let Some((name, digest)) = reference.split_once('@') {
        return (name, digest);
    }
    match reference.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, tag),
        _ => (reference, "latest"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_has_a_name_and_a_tag() {
        for (reference, name, tag) in [
            ("busybox", "busybox", "latest"),
            ("busybox:1", "busybox", "1"),
            ("r:5000/a/b", "r:5000/a/b", "latest"),
            ("r:5000/a/b:c", "r:5000/a/b", "c"),
            ("r:5000/a@sha256:00", "r:5000/a", "sha256:00"),
        ] {
            assert_eq!(split_tag(reference), (name, tag));
        }
    }
}
