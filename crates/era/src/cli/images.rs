//! `era images`: the catalogue of environments, and images built, pushed and published.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use era_api::client::Client;
use era_api::image::{BuildImage, BuiltImage, Image, ImageNews, NewImage, PushImage};
use era_api::page::PageAsk;
use serde_json::json;

use super::connection::Common;
use super::look::{self, Look, right};
use crate::data::code;

/// How often a folder is looked at for changes.
const LOOK: Duration = Duration::from_millis(500);
/// How long a folder must be still before it is built.
const STILL: Duration = Duration::from_millis(500);

/// List the catalogue of images; build, push and publish them
#[derive(Debug, Args)]
pub(crate) struct Images {
    #[command(subcommand)]
    command: Option<ImagesCommand>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Subcommand)]
enum ImagesCommand {
    /// List the catalogue
    Ls {
        #[command(flatten)]
        common: Common,
    },
    /// Build a Dockerfile through the site's engine, and show its output
    Build {
        #[command(flatten)]
        source: Source,
        /// Send it to the site's registry once it is built
        #[arg(long)]
        push: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Send an image that was built to the site's registry
    Push {
        /// The name that it was built under
        name: String,
        #[command(flatten)]
        common: Common,
    },
    /// Publish an image in the catalogue, so that the next job can use it by its name there
    Publish {
        /// Its name in the catalogue
        name: String,
        /// The full reference of the image
        reference: String,
        /// Its digest, as a push tells it
        #[arg(long, value_name = "DIGEST")]
        digest: Option<String>,
        #[command(flatten)]
        about: About,
        #[command(flatten)]
        common: Common,
    },
    /// Take an image out of the catalogue
    Rm {
        /// Its name in the catalogue
        name: String,
        #[command(flatten)]
        common: Common,
    },
    /// Build, push and publish a folder's Dockerfile, and again whenever the folder changes
    Watch {
        #[command(flatten)]
        source: Source,
        #[command(flatten)]
        about: About,
        #[command(flatten)]
        common: Common,
    },
}

/// What an image is built from.
#[derive(Clone, Debug, Args)]
struct Source {
    /// The folder that it is built from
    folder: PathBuf,
    /// What it is called in the registry, with a tag or without [default: the folder's name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The Dockerfile's path in the folder
    #[arg(long, value_name = "PATH", default_value = "Dockerfile")]
    dockerfile: String,
    /// What an ARG line of it reads
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    arguments: Vec<String>,
}

/// What the catalogue says of an image.
#[derive(Clone, Debug, Args)]
struct About {
    /// Its framework, such as pytorch
    #[arg(long, value_name = "NAME")]
    framework: Option<String>,
    /// The framework's version
    #[arg(long, value_name = "VERSION")]
    framework_version: Option<String>,
    /// Its version of Python
    #[arg(long, value_name = "VERSION")]
    python: Option<String>,
    /// It is made for GPUs
    #[arg(long)]
    gpu: bool,
}

impl Source {
    fn name(&self) -> anyhow::Result<String> {
        if let Some(name) = &self.name {
            return Ok(name.clone());
        }
        let folder = self.folder.canonicalize().context(self.folder.display().to_string())?;
        let name = folder.file_name().context("give the image a name with --name")?;
        Ok(name.to_string_lossy().to_lowercase())
    }

    /// Sends the folder, has it built, and shows what the engine says.
    fn build(&self, client: &Client, push: bool) -> anyhow::Result<BuiltImage> {
        let pair = |text: &String| match text.split_once('=') {
            Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
            None => bail!(super::BadUsage(format!("`{text}` is no argument: give NAME=VALUE"))),
        };
        let build = BuildImage {
            name: self.name()?,
            code: code::upload(client, &self.folder)?,
            dockerfile: Some(self.dockerfile.clone()),
            arguments: self.arguments.iter().map(pair).collect::<anyhow::Result<_>>()?,
            push,
        };
        followed(|news| client.build_image(&build, news))
    }
}

impl About {
    fn entry(&self, name: String, built: BuiltImage) -> NewImage {
        NewImage {
            name,
            reference: built.reference,
            framework: self.framework.clone(),
            version: self.framework_version.clone(),
            python: self.python.clone(),
            gpu: self.gpu,
            bytes: built.bytes,
            digest: built.digest,
        }
    }
}

impl Images {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            None => list(&self.common),
            Some(ImagesCommand::Ls { common }) => list(&common),
            Some(ImagesCommand::Build { source, push, common }) => {
                let built = source.build(&common.client()?, push)?;
                look::print(common.output, &built, told)
            }
            Some(ImagesCommand::Push { name, common }) => {
                let client = common.client()?;
                let built = followed(|news| client.push_image(&PushImage { name }, news))?;
                look::print(common.output, &built, told)
            }
            Some(ImagesCommand::Publish { name, reference, digest, about, common }) => {
                let built = BuiltImage { reference, digest, bytes: None };
                let image = common.client()?.publish_image(&about.entry(name, built))?;
                let look = common.look();
                look::print(common.output, &[image], |images| render(images, &look))
            }
            Some(ImagesCommand::Rm { name, common }) => {
                common.client()?.remove_image(&name)?;
                look::print(common.output, &json!({ "removed": name }), |_| {
                    format!("Image {name} is out of the catalogue.\n")
                })
            }
            Some(ImagesCommand::Watch { source, about, common }) => watch(&source, &about, &common),
        }
    }
}

fn list(common: &Common) -> anyhow::Result<()> {
    let look = common.look();
    let images = common.client()?.images(&PageAsk { cursor: None, limit: Some(1000) })?.items;
    look::print(common.output, &images, |images| render(images, &look))
}

/// Shows what an engine says on standard error, until it is done.
fn followed(
    ask: impl FnOnce(&mut dyn FnMut(ImageNews) -> bool) -> Result<(), era_api::client::ClientError>,
) -> anyhow::Result<BuiltImage> {
    let mut end = None;
    ask(&mut |news| {
        match news {
            ImageNews::Line(line) => look::note(&line),
            last => end = Some(last),
        }
        end.is_none()
    })?;
    match end {
        Some(ImageNews::Done(built)) => Ok(built),
        Some(ImageNews::Failed(why)) => bail!("{why}"),
        _ => bail!("the server broke off before the image was done: try again"),
    }
}

fn told(built: &BuiltImage) -> String {
    let digest = built.digest.as_ref().map(|digest| format!("digest     {digest}\n"));
    let bytes = built.bytes.map(|bytes| format!("size       {}\n", look::bytes(bytes)));
    let lines = [Some(format!("reference  {}\n", built.reference)), digest, bytes];
    lines.into_iter().flatten().collect()
}

/// Builds, pushes and publishes now and at every change, until it is interrupted. What fails is
/// said, and tried again at the next change.
fn watch(source: &Source, about: &About, common: &Common) -> anyhow::Result<()> {
    let client = common.client()?;
    let name = source.name()?;
    let name = name.split(':').next().unwrap_or_default().to_owned();
    newest(&source.folder)?;
    let mut built_at = None;
    loop {
        // A file that went away under our eyes is a change like any other: the next look sees it.
        let state = newest(&source.folder).ok();
        // A clock that is behind the files' does not keep them from being built.
        let still = |at: SystemTime| at.elapsed().map_or(true, |since| since >= STILL);
        if state != built_at && state.is_some_and(|(at, _)| still(at)) {
            let published = source
                .build(&client, true)
                .and_then(|built| Ok(client.publish_image(&about.entry(name.clone(), built))?));
            match published {
                Ok(image) => look::print(common.output, &image, |image| {
                    let built = image.digest.as_deref().unwrap_or(&image.reference);
                    format!("Published {built} as {}.\n", image.name)
                })?,
                Err(error) => look::note(&format!("{error:#}")),
            }
            built_at = state;
        }
        std::thread::sleep(LOOK);
    }
}

/// When something in a folder changed last, and how many files there are.
fn newest(folder: &Path) -> anyhow::Result<(SystemTime, usize)> {
    let mut newest = (SystemTime::UNIX_EPOCH, 0);
    for entry in ignore::WalkBuilder::new(folder).hidden(false).build() {
        let entry = entry.with_context(|| folder.display().to_string())?;
        let changed = entry.metadata()?.modified()?;
        newest = (newest.0.max(changed), newest.1 + 1);
    }
    Ok(newest)
}

fn render(images: &[Image], look: &Look) -> String {
    if images.is_empty() {
        return "The catalogue is empty.\n".to_owned();
    }
    let mut table =
        look.table(&["IMAGE", "FRAMEWORK", "PYTHON", "GPU", "SIZE", "REFERENCE", "PUBLISHED"]);
    for image in images {
        let framework = [image.framework.as_deref(), image.version.as_deref()];
        table.add_row(vec![
            image.name.clone().into(),
            framework.into_iter().flatten().collect::<Vec<_>>().join(" ").into(),
            image.python.clone().unwrap_or_default().into(),
            (if image.gpu { "yes" } else { "no" }).into(),
            right(image.bytes.map_or_else(String::new, look::bytes)),
            image.reference.clone().into(),
            format!("{} by {}", look.time(image.published), image.published_by).into(),
        ]);
    }
    look::finish(&table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_is_a_table() {
        let text = r#"[{"name": "torch", "reference": "pytorch/pytorch:2.9", "framework": "pytorch",
            "version": "2.9", "python": "3.12", "gpu": true, "bytes": 3221225472,
            "published_by": "admin", "published": "2026-11-01T12:00:00Z"}]"#;
        let images: Vec<Image> = serde_json::from_str(text).unwrap();
        insta::assert_snapshot!(render(&images, &look::plain()));
    }
}
