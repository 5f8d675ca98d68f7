//! Whether a request came encrypted; and behind a proxy that, and who asks, as the proxy says. Only
//! for a server that nobody reaches but the proxy: whoever else can connect could claim to be
//! anybody.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderMap, HeaderName};
use axum::middleware::Next;
use axum::response::Response;

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Whether whoever asks does so over an encrypted connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encrypted(pub bool);

/// Takes the proxy's word. The last address of a list is the one that the proxy saw itself.
pub(super) async fn believe(mut request: Request, next: Next) -> Response {
    if let Some(address) =
        said(request.headers(), &FOR).and_then(|text| text.parse::<IpAddr>().ok())
    {
        request.extensions_mut().insert(ConnectInfo(SocketAddr::new(address, 0)));
    }
    if said(request.headers(), &PROTO) == Some("https") {
        request.extensions_mut().insert(Encrypted(true));
    }
    next.run(request).await
}

fn said<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let last = headers.get_all(name).iter().next_back()?.to_str().ok()?;
    last.rsplit(',').next().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_address_is_the_one_that_the_proxy_saw() {
        let mut headers = HeaderMap::new();
        assert_eq!(said(&headers, &FOR), None);
        headers.append(FOR, "203.0.113.9".parse().unwrap());
        headers.append(FOR, "10.9.9.9, 192.0.2.7".parse().unwrap());
        assert_eq!(said(&headers, &FOR), Some("192.0.2.7"));
    }
}
