//! `era images`: the catalogue of environments.

use era_api::image::{Image, NewImage};
use era_api::page::PageAsk;

use super::connection::Common;
use super::look::{self, Look, right, say};

/// List the catalogue of images, publish one, or take one out
#[derive(Debug, clap::Args)]
pub(crate) struct Images {
    /// Publish an image under this name
    #[arg(long, value_name = "NAME", requires = "reference")]
    publish: Option<String>,
    /// The full reference of the image that is published
    #[arg(long, value_name = "REFERENCE", requires = "publish")]
    reference: Option<String>,
    /// Its framework, such as pytorch
    #[arg(long, value_name = "NAME", requires = "publish")]
    framework: Option<String>,
    /// The framework's version
    #[arg(long, value_name = "VERSION", requires = "publish")]
    framework_version: Option<String>,
    /// Its version of Python
    #[arg(long, value_name = "VERSION", requires = "publish")]
    python: Option<String>,
    /// It is made for GPUs
    #[arg(long, requires = "publish")]
    gpu: bool,
    /// Take an image out of the catalogue
    #[arg(long, value_name = "NAME", conflicts_with = "publish")]
    remove: Option<String>,
    #[command(flatten)]
    common: Common,
}

impl Images {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = self.common.client()?;
        let look = self.common.look();
        if let Some(name) = &self.remove {
            client.remove_image(name)?;
            return say(&format!("Image {name} is out of the catalogue."));
        }
        if let (Some(name), Some(reference)) = (self.publish, self.reference) {
            let image = client.publish_image(&NewImage {
                name,
                reference,
                framework: self.framework,
                version: self.framework_version,
                python: self.python,
                gpu: self.gpu,
                bytes: None,
                digest: None,
            })?;
            return look::print(self.common.output, &[image], |images| render(images, &look));
        }
        let images = client.images(&PageAsk { cursor: None, limit: Some(1000) })?.items;
        look::print(self.common.output, &images, |images| render(images, &look))
    }
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
