use super::*;

async fn get(path: &str, headers: &[(&'static str, &str)]) -> (StatusCode, HeaderMap, Vec<u8>) {
    let mut sent = HeaderMap::new();
    for (name, value) in headers {
        sent.insert(*name, value.parse().unwrap());
    }
    let response = at(&Method::GET, path, &sent);
    let response = response.unwrap_or_else(|| StatusCode::NOT_FOUND.into_response());
    let (parts, body) = response.into_parts();
    let body = axum::body::to_bytes(body, 1 << 24).await.unwrap();
    (parts.status, parts.headers, body.to_vec())
}

fn script() -> String {
    let mut all = Built::iter().filter(|name| name.starts_with(HASHED) && name.ends_with(".js"));
    format!("/{}", all.next().unwrap())
}

#[tokio::test]
async fn every_place_within_the_page_is_the_page() {
    for path in ["/", "/jobs", "/jobs/7", "/index.html", "/no/such/place"] {
        let (status, headers, body) = get(path, &[]).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        assert_eq!(headers[header::CONTENT_TYPE], "text/html; charset=utf-8");
        assert_eq!(headers[header::CACHE_CONTROL], "no-cache");
        assert!(String::from_utf8(body).unwrap().contains("<div id=\"app\">"), "{path}");
    }
}

#[tokio::test]
async fn what_is_not_the_page_is_not_answered_with_it() {
    let missing = ["/api/v1/nothing", "/api/", "/assets/gone-12345678.js", "/metrics/more"];
    for path in missing {
        assert_eq!(get(path, &[]).await.0, StatusCode::NOT_FOUND, "{path}");
    }
    assert!(at(&Method::POST, "/jobs", &HeaderMap::new()).is_none());
}

#[tokio::test]
async fn hashed_files_are_kept_for_good_and_come_compressed() {
    let path = script();
    let (_, plain, whole) = get(&path, &[]).await;
    assert_eq!(plain[header::CACHE_CONTROL], "public, max-age=31536000, immutable");
    let (_, small, bytes) = get(&path, &[("accept-encoding", "gzip, br")]).await;
    assert_eq!(small[header::CONTENT_ENCODING], "br");
    assert_eq!(small[header::CONTENT_TYPE], "text/javascript; charset=utf-8");
    assert!(bytes.len() < whole.len());
    assert_ne!(small[header::ETAG], plain[header::ETAG]);
    let (_, zipped, _) = get(&path, &[("accept-encoding", "gzip")]).await;
    assert_eq!(zipped[header::CONTENT_ENCODING], "gzip");
    let known = small[header::ETAG].to_str().unwrap();
    let (status, _, body) =
        get(&path, &[("accept-encoding", "br"), ("if-none-match", known)]).await;
    assert_eq!((status, body.len()), (StatusCode::NOT_MODIFIED, 0));
}

#[tokio::test]
async fn the_policy_allows_no_inline_script_or_style_and_the_page_has_none() {
    let (_, headers, body) = get("/", &[]).await;
    let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.contains("script-src 'self';") && policy.contains("style-src 'self';"));
    assert!(!policy.contains("unsafe"));
    let html = String::from_utf8(body).unwrap();
    assert!(!html.contains("<style") && !html.contains(" style="), "{html}");
    for script in html.split("<script").skip(1) {
        assert!(script.contains(" src=\"/assets/"), "{script}");
    }
    // No other origin is named by what is loaded first.
    for link in html.split("href=\"").chain(html.split("src=\"")).skip(1) {
        assert!(link.starts_with('/') || link.starts_with("<!doctype"), "{link}");
    }
}
