//! Batches writes under load, and writes at once when idle.
//!
//! A transaction of many rows costs about as much as one of a single row. So a writer commits at
//! once while little arrives, and under load waits a moment so that more goes into the same
//! transaction. What is gathered, and what becomes of it, is not known here: instants are counted
//! from wherever the writer likes.

use std::time::Duration;

/// How long a count goes on before the next begins.
const WINDOW: Duration = Duration::from_millis(50);

/// Counts what comes in.
#[derive(Clone, Debug)]
pub struct Gathering {
    /// So many in a window are a load.
    load: usize,
    /// How long a wait is.
    pause: Duration,
    begun: Duration,
    /// In the window that has begun, and in the one before.
    counts: [usize; 2],
}

impl Gathering {
    /// One that takes so many in 50 ms for a load, and waits for so long then.
    pub fn new(load: usize, pause: Duration) -> Gathering {
        Gathering { load, pause, begun: Duration::ZERO, counts: [0; 2] }
    }

    /// Counts what came just now; says how long to wait for more before the next is taken.
    pub fn came(&mut self, count: usize, now: Duration) -> Option<Duration> {
        let since = now.saturating_sub(self.begun);
        if since >= WINDOW {
            let before = if since < WINDOW * 2 { self.counts[0] } else { 0 };
            (self.counts, self.begun) = ([0, before], now);
        }
        self.counts[0] += count;
        self.counts.iter().any(|count| *count >= self.load).then_some(self.pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn whoever_comes_alone_does_not_wait() {
        let mut gathering = Gathering::new(10, 5 * MS);
        for n in 0..100 {
            assert_eq!(gathering.came(1, 6 * MS * n), None, "{n}");
        }
    }

    #[test]
    fn under_load_there_is_a_wait_and_soon_after_it_none() {
        let mut gathering = Gathering::new(10, 5 * MS);
        let told: Vec<_> = (0..100).map(|n| gathering.came(2, MS * n)).collect();
        assert_eq!(told[0], None);
        assert!(told[5..].iter().all(|wait| *wait == Some(5 * MS)), "from one window to the next");
        assert_eq!(gathering.came(1, 300 * MS), None);
    }
}
