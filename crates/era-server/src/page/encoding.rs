//! Which compressed copy of a file a browser can read.

/// A form in which copies are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Brotli,
    Gzip,
}

impl Encoding {
    /// The smallest first.
    pub(super) const ALL: [Encoding; 2] = [Encoding::Brotli, Encoding::Gzip];

    /// As HTTP calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Encoding::Brotli => "br",
            Encoding::Gzip => "gzip",
        }
    }

    /// Behind the file's name.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Encoding::Brotli => ".br",
            Encoding::Gzip => ".gz",
        }
    }
}

/// Those that an `accept-encoding` takes, the smallest first.
pub(super) fn accepted(header: &str) -> impl Iterator<Item = Encoding> {
    Encoding::ALL.into_iter().filter(move |encoding| takes(header, encoding.name()))
}

/// Whether a name is there and not refused by `q=0`.
fn takes(header: &str, name: &str) -> bool {
    header.split(',').any(|one| {
        let mut parts = one.split(';').map(str::trim);
        let named = parts.next().is_some_and(|given| given.eq_ignore_ascii_case(name));
        let refused = parts.any(|part| {
            let weight = part.strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok());
            weight == Some(0.0)
        });
        named && !refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_that_is_taken_comes_first() {
        let all = |header: &str| accepted(header).collect::<Vec<_>>();
        assert_eq!(all("gzip, deflate, br, zstd"), [Encoding::Brotli, Encoding::Gzip]);
        assert_eq!(all("gzip;q=0.5"), [Encoding::Gzip]);
        assert_eq!(all("br;q=0, GZIP"), [Encoding::Gzip]);
        assert_eq!(all("identity"), []);
        assert_eq!(all(""), []);
    }
}
