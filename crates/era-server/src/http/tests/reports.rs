//! Reports beside the same period without ERA.

use std::path::{Path, PathBuf};
use std::sync::{Barrier, Mutex};

use era_app::report::Replays;
use era_core::units::Time;

use super::*;

/// Lets nobody go before two are there, and looks at both files then.
#[derive(Clone)]
struct Two {
    met: Arc<Barrier>,
    seen: Arc<Mutex<Vec<(PathBuf, String)>>>,
}

impl Laboratory for Two {
    fn replay(&self, journal: &Path, _: Time, _: Time) -> Result<Replays, String> {
        self.met.wait();
        let text = std::fs::read_to_string(journal).map_err(|e| e.to_string())?;
        self.seen.lock().unwrap().push((journal.to_owned(), text));
        // Nobody's file goes before both were read.
        self.met.wait();
        Ok(Replays::default())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_of_one_period_asked_for_at_once_do_not_meet_in_one_file() {
    let two = Two { met: Arc::new(Barrier::new(2)), seen: Arc::default() };
    let wishes = Wishes { laboratory: Some(std::sync::Arc::new(two.clone())), ..Wishes::default() };
    let server = server_with(wishes).await;
    let admin = server.administrator().await;
    let path = "/report?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z&without=true";
    let (a, b) =
        tokio::join!(server.ask(&admin, "GET", path, None), server.ask(&admin, "GET", path, None));
    assert_eq!((a.status.as_u16(), b.status.as_u16()), (200, 200), "{} {}", a.body, b.body);
    let seen = two.seen.lock().unwrap().clone();
    assert_ne!(seen[0].0, seen[1].0);
    for (file, text) in &seen {
        assert!(text.starts_with("{\"segment\":1,") && text.ends_with('\n'), "{text}");
        assert!(!file.exists(), "{} is left behind", file.display());
    }
}
