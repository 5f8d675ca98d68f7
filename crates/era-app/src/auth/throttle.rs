//! How often somebody may try to log in: a few wrong passwords per account and per address are
//! free, and then each costs twice the wait of the one before.
//!
//! A pure book: the time is given, and nothing is known of passwords.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// Wrong attempts that cost nothing, per account.
pub const FREE_PER_ACCOUNT: u32 = 5;
/// Wrong attempts that cost nothing, per address, from where many may come.
pub const FREE_PER_ADDRESS: u32 = 20;
/// Longest wait.
const WAIT_MS_MAX: i64 = 15 * 60_000;
/// After this long without an attempt all is forgotten.
const FORGOTTEN_MS: i64 = 60 * 60_000;
/// Most entries; the oldest are forgotten first.
const ENTRIES_MAX: usize = 20_000;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Whose {
    Account(String),
    Address(IpAddr),
}

#[derive(Clone, Copy, Debug)]
struct Tried {
    wrong: u32,
    last: i64,
}

/// Who tried how often.
#[derive(Debug, Default)]
pub struct Throttle {
    tried: BTreeMap<Whose, Tried>,
}

/// Addresses of one IPv6 subscriber count as one.
fn subscriber(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => {
            let s = six.segments();
            IpAddr::V6([s[0], s[1], s[2], s[3], 0, 0, 0, 0].into())
        }
        four => four,
    }
}

fn free(whose: &Whose) -> u32 {
    match whose {
        Whose::Account(_) => FREE_PER_ACCOUNT,
        Whose::Address(_) => FREE_PER_ADDRESS,
    }
}

impl Tried {
    /// When the next attempt is let in.
    fn open_at(self, free: u32) -> i64 {
        let over = self.wrong.saturating_sub(free);
        let wait = if over == 0 { 0 } else { (500_i64 << over.min(20)).min(WAIT_MS_MAX) };
        self.last + wait
    }
}

impl Throttle {
    /// Lets an attempt in, or says for how many milliseconds to wait. An attempt that is let in
    /// counts as wrong until [`Throttle::right`] says otherwise, so that many at once do not all
    /// slip through.
    pub fn attempt(&mut self, account: &str, from: IpAddr, now: i64) -> Result<(), i64> {
        let both = both(account, from);
        let wait = |whose: &Whose| {
            let tried = self.tried.get(whose)?;
            Some(tried.open_at(free(whose)) - now).filter(|wait| *wait > 0)
        };
        if let Some(wait) = both.iter().filter_map(wait).max() {
            return Err(wait);
        }
        for whose in both {
            let tried = self.tried.entry(whose).or_insert(Tried { wrong: 0, last: now });
            if now - tried.last > FORGOTTEN_MS {
                tried.wrong = 0;
            }
            tried.wrong += 1;
            tried.last = now;
        }
        self.forget(now);
        Ok(())
    }

    /// The attempt was right: the account is open again, and the address gets its attempt back.
    pub fn right(&mut self, account: &str, from: IpAddr) {
        let [account, address] = both(account, from);
        self.tried.remove(&account);
        if let Some(tried) = self.tried.get_mut(&address) {
            tried.wrong = tried.wrong.saturating_sub(1);
        }
    }

    fn forget(&mut self, now: i64) {
        if self.tried.len() <= ENTRIES_MAX {
            return;
        }
        self.tried.retain(|_, tried| now - tried.last <= FORGOTTEN_MS);
        if self.tried.len() > ENTRIES_MAX {
            let mut ages: Vec<i64> = self.tried.values().map(|tried| tried.last).collect();
            ages.sort_unstable();
            let middle = ages[ages.len() / 2];
            self.tried.retain(|_, tried| tried.last > middle);
        }
    }
}

fn both(account: &str, from: IpAddr) -> [Whose; 2] {
    // A name that is no name is not kept at its full length.
    let account = account.chars().take(64).collect();
    [Whose::Account(account), Whose::Address(subscriber(from))]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn an_account_is_closed_for_longer_after_each_wrong_attempt_from_anywhere() {
        let mut throttle = Throttle::default();
        for n in 0..=FREE_PER_ACCOUNT {
            assert_eq!(throttle.attempt("ada", address(n as u8), 0), Ok(()), "{n}");
        }
        assert_eq!(throttle.attempt("ada", address(99), 0), Err(1000));
        assert_eq!(throttle.attempt("bob", address(99), 0), Ok(()));
        assert_eq!(throttle.attempt("ada", address(98), 1000), Ok(()));
        assert_eq!(throttle.attempt("ada", address(97), 1000), Err(2000));
    }

    #[test]
    fn an_address_is_closed_whatever_accounts_it_tries() {
        let mut throttle = Throttle::default();
        for n in 0..=FREE_PER_ADDRESS {
            assert_eq!(throttle.attempt(&format!("a{n}"), address(1), 0), Ok(()), "{n}");
        }
        assert!(throttle.attempt("other", address(1), 0).is_err());
        assert_eq!(throttle.attempt("other", address(2), 0), Ok(()));
    }

    #[test]
    fn the_right_password_opens_the_account_again() {
        let mut throttle = Throttle::default();
        for _ in 0..FREE_PER_ACCOUNT {
            throttle.attempt("ada", address(1), 0).unwrap();
        }
        throttle.right("ada", address(1));
        for _ in 0..=FREE_PER_ACCOUNT {
            assert_eq!(throttle.attempt("ada", address(1), 0), Ok(()));
        }
    }

    #[test]
    fn nobody_waits_for_ever_and_an_hour_forgives_all() {
        let mut throttle = Throttle::default();
        let mut now = 0;
        for _ in 0..40 {
            match throttle.attempt("ada", address(1), now) {
                Ok(()) => {}
                Err(wait) => {
                    assert!(wait <= WAIT_MS_MAX);
                    now += wait;
                }
            }
        }
        now += FORGOTTEN_MS + WAIT_MS_MAX;
        for _ in 0..FREE_PER_ACCOUNT {
            assert_eq!(throttle.attempt("ada", address(1), now), Ok(()));
        }
    }

    #[test]
    fn a_subscriber_of_ipv6_is_one_address_and_the_book_stays_small() {
        let mut throttle = Throttle::default();
        let mut refused = 0;
        for n in 0..50_u16 {
            let from = IpAddr::from([0x2001, 0xdb8, 0, 1, 0, 0, 0, n]);
            refused += u32::from(throttle.attempt(&format!("a{n}"), from, 0).is_err());
        }
        assert!(refused > 0);
        for n in 0..2 * ENTRIES_MAX as u32 {
            let from = IpAddr::from(n.to_be_bytes());
            let _ = throttle.attempt(&format!("b{n}"), from, i64::from(n));
        }
        assert!(throttle.tried.len() <= ENTRIES_MAX + 2);
    }
}
