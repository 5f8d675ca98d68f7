//! The catalogue of images.

use std::net::IpAddr;
use std::time::Duration;

use era_api::Page;
use era_api::account::{Role, Scope};
use era_api::image::{Image, NewImage};
use era_api::page::{NameFilter, PageAsk};
use era_core::units::{Name, Time};
use era_store::StoreError;
use era_store::accounts::ImageRow;

use crate::auth::Caller;
use crate::error::{AppError, Kind};
use crate::wire::{Wrong, stamp};
use crate::{Services, audit, paging};

/// Longest reference, and longest text of any other field.
const TEXT_MAX: usize = 512;
/// How long the engine may take to say what it knows of an image.
const DESCRIBE_TIME: Duration = Duration::from_secs(10);

pub async fn list(services: &Services, filter: NameFilter) -> Result<Page<Image>, AppError> {
    let NameFilter { search, cursor, limit } = filter;
    let size = paging::size(&PageAsk { cursor: None, limit })?;
    let (text, after) = (search.unwrap_or_default(), cursor.unwrap_or_default());
    let rows = services.auth.rows().images_with(&text, &after, size as u32 + 1).await?;
    let images = rows.into_iter().map(image).collect::<Result<Vec<_>, _>>()?;
    Ok(paging::page(images, size, |image: &Image| image.name.clone()))
}

/// Publishes an image, or another one under a name that is one's own.
pub async fn publish(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    mut new: NewImage,
) -> Result<Image, AppError> {
    check(&new)?;
    // What an administrator publishes counts for everybody.
    let account = services.auth.directory().user(caller.user).map(|user| user.role);
    if account == Some(Role::Administrator) {
        caller.may(Scope::Admin)?;
    }
    fill(services, &mut new).await;
    let present = services.auth.rows().image(&new.name).await?;
    if present.is_some_and(|row| !owns(caller, &row)) {
        let detail = format!("image `{}` is somebody else's: choose another name", new.name);
        return Err(AppError::new(Kind::Conflict, "exists", detail).about("name"));
    }
    let row = ImageRow {
        name: new.name.clone(),
        details: serde_json::to_string(&new).map_err(|error| AppError::internal(&error))?,
        published_by: caller.name.clone(),
        published: services.clock.machine().0,
    };
    services.auth.rows().put_image(&row).await?;
    audit::note(services, &caller.name, from, "image.publish", &new.name, true).await;
    Ok(image(row)?)
}

/// What the publisher has not said of an image and the engine knows. One that the engine has not
/// may be on its way: it is published as it was told.
async fn fill(services: &Services, new: &mut NewImage) {
    if new.digest.is_some() && new.bytes.is_some() {
        return;
    }
    let described = tokio::time::timeout(DESCRIBE_TIME, async {
        match services.images.reach().await? {
            Ok(engine) => engine.describe(&new.reference).await.ok(),
            Err(_) => None,
        }
    });
    if let Ok(Some(facts)) = described.await {
        new.bytes = new.bytes.or(facts.bytes);
        new.digest = new.digest.take().or(facts.digest);
    }
}

fn owns(caller: &Caller, row: &ImageRow) -> bool {
    row.published_by == caller.name || caller.administers().is_ok()
}

fn check(new: &NewImage) -> Result<(), AppError> {
    Name::new(&new.name).map_err(|bad| AppError::bad_field("name", bad))?;
    let texts = [
        ("reference", Some(&new.reference)),
        ("framework", new.framework.as_ref()),
        ("version", new.version.as_ref()),
        ("python", new.python.as_ref()),
        ("digest", new.digest.as_ref()),
    ];
    for (field, text) in texts {
        let Some(text) = text else { continue };
        let plain = !text.chars().any(|c| c.is_control() || c.is_whitespace());
        if text.is_empty() || text.len() > TEXT_MAX || !plain {
            return Err(AppError::bad_field(field, Wrong::Blanks { most: TEXT_MAX }));
        }
    }
    Ok(())
}

pub async fn get(services: &Services, name: &str) -> Result<Image, AppError> {
    Ok(image(found(services, name).await?)?)
}

/// Takes an image out of the catalogue. For whoever published it, and for administrators.
pub async fn remove(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    name: &str,
) -> Result<(), AppError> {
    if !owns(caller, &found(services, name).await?) {
        return Err(AppError::forbidden("the image is somebody else's: ask an administrator"));
    }
    services.auth.rows().remove_image(name).await?;
    audit::note(services, &caller.name, from, "image.remove", name, true).await;
    Ok(())
}

async fn found(services: &Services, name: &str) -> Result<ImageRow, AppError> {
    let row = services.auth.rows().image(name).await?;
    row.ok_or_else(|| AppError::not_found("image", name))
}

/// An image of the catalogue as it is told.
pub fn image(row: ImageRow) -> Result<Image, StoreError> {
    let new: NewImage = serde_json::from_str(&row.details).map_err(|error| {
        let what = format!("image `{}`", row.name);
        StoreError::Damaged { what, problem: error.to_string() }
    })?;
    Ok(Image {
        name: new.name,
        reference: new.reference,
        framework: new.framework,
        version: new.version,
        python: new.python,
        gpu: new.gpu,
        bytes: new.bytes,
        digest: new.digest,
        published_by: row.published_by,
        published: stamp(Time(row.published)),
    })
}
