//! `era images`: the catalogue of environments, and images built, pushed and published.

mod watch;

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use era_api::client::Client;
use era_api::image::{BuildImage, BuiltImage, Image, ImageNews, NewImage, PushImage};
use era_api::page::every;
use serde_json::json;

use super::connection::Common;
use super::look::{self, Look, right};
use crate::cli::data::code;

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
            code: code::upload_context(client, &self.folder, &self.dockerfile)?,
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
            Some(ImagesCommand::Watch { source, about, common }) => {
                watch::watch(&source, &about, &common)
            }
        }
    }
}

fn list(common: &Common) -> anyhow::Result<()> {
    let look = common.look();
    let client = common.client()?;
    let images = every(|page| client.images(page))?;
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

fn render(images: &[Image], look: &Look) -> String {
    if images.is_empty() {
        return "The catalogue is empty.\n".to_owned();
    }
    let mut heads = vec!["IMAGE", "FRAMEWORK", "PYTHON", "GPU", "SIZE", "REFERENCE", "PUBLISHED"];
    if look.wide {
        heads.push("DIGEST");
    }
    look.rows(&heads, images, |image| {
        let framework = [image.framework.as_deref(), image.version.as_deref()];
        let mut row = vec![
            image.name.clone().into(),
            framework.into_iter().flatten().collect::<Vec<_>>().join(" ").into(),
            image.python.clone().unwrap_or_default().into(),
            (if image.gpu { "yes" } else { "no" }).into(),
            right(image.bytes.map_or_else(String::new, look::bytes)),
            image.reference.clone().into(),
            format!("{} by {}", look.time(image.published), image.published_by).into(),
        ];
        if look.wide {
            row.push(image.digest.clone().unwrap_or_default().into());
        }
        row
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_is_a_table() {
        let text = r#"[{"name": "torch", "reference": "pytorch/pytorch:2.9", "framework": "pytorch",
            "version": "2.9", "python": "3.12", "gpu": true, "bytes": 3221225472,
            "digest": "sha256:6dc1fe83", "published_by": "admin", "published": "2026-11-01T12:00:00Z"}]"#;
        let images: Vec<Image> = serde_json::from_str(text).unwrap();
        insta::assert_snapshot!(render(&images, &look::plain()));
        let wide = Look { wide: true, width: None, ..look::plain() };
        let wide = render(&images, &wide);
        assert!(wide.contains("DIGEST") && wide.contains("sha256:6dc1fe83"), "{wide}");
    }
}
