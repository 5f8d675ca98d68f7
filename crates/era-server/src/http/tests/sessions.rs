//! How long logins and keys are good, and how long whoever guesses passwords waits.

use super::*;

/// As little as can pass.
const MOMENT: Span = Span(1);

/// All but as little as can be of a span.
fn nearly(span: Span) -> Span {
    Span(span.ms() - MOMENT.ms())
}

async fn server() -> TestServer {
    server_with(Wishes { clock_stands: true, ..Wishes::default() }).await
}

impl TestServer {
    async fn log_in(&self, password: &str, cookie: bool) -> Answer {
        let login = json!({ "user": "admin", "password": password, "cookie": cookie });
        self.ask("", "POST", "/sessions", Some(login)).await
    }

    /// What is answered to somebody with a token who asks who they are.
    async fn status(&self, token: &str) -> u16 {
        self.ask(token, "GET", "/sessions", None).await.status.as_u16()
    }
}

#[tokio::test]
async fn a_login_is_good_for_its_time_and_no_longer() {
    let server = server().await;
    let limited = server.log_in(&server.password, false).await.body["token"].clone();
    let limited = limited.as_str().unwrap();
    server.pass(nearly(Span::from_h(1)));
    assert_eq!(server.status(limited).await, 200, "a one-time password is changed in an hour");
    server.pass(MOMENT);
    assert_eq!(server.status(limited).await, 401);
    let token = server.administrator().await;
    // The hour of the one that changed the password is its own: it only loses its limits.
    server.pass(Span::from_h(1));
    assert_eq!(server.status(&token).await, 401);
    let logged = server.log_in("a better password", false).await;
    let token = logged.body["token"].as_str().unwrap();
    server.pass(nearly(Span::from_days(30)));
    assert_eq!(server.status(token).await, 200);
    let kept = server.app.auth.rows().tokens(server.app.clock.machine().0).await.unwrap().len();
    server.pass(MOMENT);
    assert_eq!(server.status(token).await, 401);
    server.app.auth.tend().await.unwrap();
    let left = server.app.auth.rows().tokens(0).await.unwrap().len();
    assert_eq!((kept, left), (1, 0), "what has expired is forgotten");
}

#[tokio::test]
async fn a_browsers_session_is_good_for_a_week() {
    let server = server().await;
    server.administrator().await;
    let logged = server.log_in("a better password", true).await;
    let set = logged.headers["set-cookie"].to_str().unwrap();
    let cookie = set.split(';').next().unwrap().to_owned();
    let look = async || {
        let asked = request("", "GET", "/sessions", None).header("cookie", &cookie);
        server.send(asked.body_or_empty()).await.status.as_u16()
    };
    server.pass(nearly(Span::from_days(7)));
    assert_eq!(look().await, 200);
    server.pass(MOMENT);
    assert_eq!(look().await, 401);
}

#[tokio::test]
async fn whoever_guesses_waits_as_long_as_told_and_the_right_password_opens_again() {
    let server = server().await;
    let mut waits = Vec::new();
    while waits.len() < 4 {
        let answer = server.log_in("not the password", false).await;
        if answer.status == 401 {
            continue;
        }
        assert_eq!(answer.status, 429, "{}", answer.body);
        let wait_s = answer.headers["retry-after"].to_str().unwrap().parse().unwrap();
        waits.push(wait_s);
        // What was told is enough, and even the right password has to wait for it.
        assert_eq!(server.log_in(&server.password, false).await.status, 429);
        server.pass(Span::from_s(wait_s));
    }
    assert!(waits.is_sorted_by(|a, b| a < b), "each costs more than the one before: {waits:?}");
    assert_eq!(server.log_in(&server.password, false).await.status, 201);
    for _ in 0..5 {
        assert_eq!(server.log_in("not the password", false).await.status, 401, "a new start");
    }
}

#[tokio::test]
async fn a_key_lapses_after_a_day_and_is_then_a_new_one() {
    let server = server().await;
    server.administrator().await;
    let logged = server.log_in("a better password", false).await;
    let admin = logged.body["token"].as_str().unwrap();
    let make = async |name: &str| {
        let body = Some(json!({ "name": name }));
        let asked = request(admin, "POST", "/groups", body).header(idempotency::HEADER, "k");
        server.send(asked.body_or_empty()).await
    };
    let first = make("lab").await;
    assert_eq!(first.status, 201, "{}", first.body);
    server.pass(nearly(Span::from_h(24)));
    let again = make("lab").await;
    assert_eq!((again.status.as_u16(), again.body), (201, first.body), "the same answer");
    assert_eq!(make("other").await.body["code"], "key_reused");
    server.pass(MOMENT);
    assert_eq!(make("other").await.status, 201, "nobody knows the key any more");
}
