//! The page in the browser: built files inside the binary, handed out as they are.
//!
//! Files with a hash in their name never change and are kept by browsers for good; everything else
//! is asked for anew and answered by its ETag. Any other path outside the API is a place within
//! the page, so it gets the page itself, which reads the path. Nothing here knows who asks: what
//! is inside the page comes by the API.

mod encoding;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rust_embed::{EmbeddedFile, RustEmbed};

use self::encoding::{Encoding, accepted};

/// What `make page` built.
#[derive(RustEmbed)]
#[folder = "../../web/dist"]
struct Built;

/// The page itself, which every place within it is.
const INDEX: &str = "index.html";
/// Where files with a hash in their name are.
const HASHED: &str = "assets/";
/// What begins so is never a place within the page.
const NOT_PAGES: [&str; 4] = ["/api/", "/healthz", "/readyz", "/metrics"];

/// Nothing but files of this server; no inline script or style, no frame but of our own reports, no
/// other site.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; frame-src 'self'; manifest-src 'self'; \
form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A file of the page, or the page itself for a place within it; `None` where nothing is there.
pub fn at(method: &Method, path: &str, headers: &HeaderMap) -> Option<Response> {
    let reads = matches!(*method, Method::GET | Method::HEAD);
    if !reads || NOT_PAGES.iter().any(|prefix| path.starts_with(prefix)) {
        return None;
    }
    found(path).map(|name| answer(&name, headers))
}

/// The file that a path means.
fn found(path: &str) -> Option<String> {
    let name = path.trim_start_matches('/');
    let compressed = Encoding::ALL.iter().any(|encoding| name.ends_with(encoding.suffix()));
    if !compressed && Built::get(name).is_some() {
        return Some(name.to_owned());
    }
    // A file of an older build must be missing, else a browser would run the page as a script.
    (!name.starts_with(HASHED)).then(|| INDEX.to_owned())
}

fn answer(name: &str, headers: &HeaderMap) -> Response {
    let Some((file, encoding)) = in_best_form(name, headers) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let tag = etag(&file, encoding);
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let known =
        known.is_some_and(|all| all.split(',').any(|one| one.trim() == tag || one.trim() == "*"));
    let mut response = match known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => Body::from(file.data).into_response(),
    };
    let told = response.headers_mut();
    let lasting =
        if name.starts_with(HASHED) { "public, max-age=31536000, immutable" } else { "no-cache" };
    told.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type(name)));
    told.insert(header::CACHE_CONTROL, HeaderValue::from_static(lasting));
    told.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    told.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    if let Some(encoding) = encoding {
        told.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        told.insert(header::ETAG, tag);
    }
    response
}

/// The smallest copy that the browser can read.
fn in_best_form(name: &str, headers: &HeaderMap) -> Option<(EmbeddedFile, Option<Encoding>)> {
    let wanted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    for encoding in accepted(wanted.unwrap_or("")) {
        if let Some(file) = Built::get(&format!("{name}{}", encoding.suffix())) {
            return Some((file, Some(encoding)));
        }
    }
    Some((Built::get(name)?, None))
}

/// Half of the content's hash: of a copy its own, so that forms are told apart.
fn etag(file: &EmbeddedFile, encoding: Option<Encoding>) -> String {
    let hash = file.metadata.sha256_hash();
    let hex: String = hash[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\"{hex}{}\"", encoding.map_or("", Encoding::suffix))
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("woff2") => "font/woff2",
        Some("json") => "application/json",
        Some("png") => "image/png",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests;
