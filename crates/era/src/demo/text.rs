//! How instants, credits and tables are written, and the page that they are written on.

use era_core::units::{Money, Span, Time};

use crate::paint::{Paint, Tone};

/// Columns of the page.
const WIDTH: usize = 96;

/// The text that is shown, with its colours.
pub(super) struct Page {
    pub(super) paint: Paint,
    text: String,
    sections: u32,
}

impl Page {
    pub(super) fn new(paint: Paint) -> Page {
        Page { paint, text: String::new(), sections: 0 }
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// A line, indented; a line of nothing is empty.
    pub(super) fn line(&mut self, text: &str) {
        if !text.is_empty() {
            self.text.push_str("  ");
            self.text.push_str(text.trim_end());
        }
        self.text.push('\n');
    }

    pub(super) fn title(&mut self, left: &str, right: &str) {
        let gap = WIDTH.saturating_sub(left.chars().count() + right.chars().count());
        let (bold, quiet) =
            (self.paint.tone(Tone::Title, left), self.paint.tone(Tone::Quiet, right));
        self.line("");
        self.line(&format!("{bold}{}{quiet}", " ".repeat(gap)));
        self.line(&self.paint.tone(Tone::Quiet, &"━".repeat(WIDTH)));
    }

    pub(super) fn section(&mut self, title: &str) {
        self.sections += 1;
        let number = self.paint.tone(Tone::Accent, &self.sections.to_string());
        let rule = "─".repeat(WIDTH.saturating_sub(title.chars().count() + 4));
        let (title, rule) =
            (self.paint.tone(Tone::Title, title), self.paint.tone(Tone::Quiet, &rule));
        self.line("");
        self.line(&format!("{number}  {title} {rule}"));
        self.line("");
    }

    /// What somebody does or something becomes, at a time.
    pub(super) fn entry(&mut self, at: Time, who: &str, what: &str, mark: Mark, text: &str) {
        let time = self.paint.tone(Tone::Quiet, &minute(at));
        let mark = self.paint.tone(mark.tone(), mark.sign());
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        self.line(&format!("{time}  {who:<5} {what:<10} {mark} {first}"));
        lines.for_each(|line| self.more(line));
    }

    /// More about the entry above.
    pub(super) fn more(&mut self, text: &str) {
        self.line(&format!("{:26}{text}", ""));
    }

    pub(super) fn quiet(&mut self, text: &str) {
        self.line(&self.paint.tone(Tone::Quiet, text));
    }
}

/// What kind of news an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Asks,
    Good,
    Bad,
    Starts,
    Yields,
    Moves,
}

impl Mark {
    fn sign(self) -> &'static str {
        match self {
            Mark::Asks => "·",
            Mark::Good => "✓",
            Mark::Bad => "✗",
            Mark::Starts => "▸",
            Mark::Yields => "◂",
            Mark::Moves => "↻",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Mark::Asks => Tone::Quiet,
            Mark::Good => Tone::Good,
            Mark::Bad => Tone::Bad,
            Mark::Starts => Tone::Accent,
            Mark::Yields | Mark::Moves => Tone::Warn,
        }
    }
}

/// `08:00`, or `08:00:30` where there are seconds.
pub(super) fn clock(time: Time) -> String {
    let s = time.0.div_euclid(1000).rem_euclid(86_400);
    let (h, min, s) = (s / 3600, s / 60 % 60, s % 60);
    if s == 0 { format!("{h:02}:{min:02}") } else { format!("{h:02}:{min:02}:{s:02}") }
}

/// `08:00`, whatever the seconds.
pub(super) fn minute(time: Time) -> String {
    clock(time.floor_to(Span::from_min(1)))
}

/// `08:00–11:00`.
pub(super) fn stretch(from: Time, to: Time) -> String {
    format!("{}–{}", minute(from), minute(to))
}

/// A length of time to the minute, which is enough for people.
pub(super) fn about(span: Span) -> String {
    Span((span.0 + 30_000).div_euclid(60_000) * 60_000).to_string()
}

/// Credits with two digits, and commas between thousands.
pub(super) fn credits(money: Money) -> String {
    let cents = (i128::from(money.0.unsigned_abs()) + 5_000) / 10_000;
    let (whole, rest) = (cents / 100, cents % 100);
    let digits = whole.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if money.0 < 0 { "-" } else { "" };
    format!("{sign}{grouped}.{rest:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credits_are_rounded_to_cents_and_grouped() {
        for (micro, text) in [
            (0, "0.00"),
            (4_999, "0.00"),
            (5_000, "0.01"),
            (1_234_567_890_000, "1,234,567.89"),
            (-2_500_000, "-2.50"),
            (999_000_000, "999.00"),
        ] {
            assert_eq!(credits(Money(micro)), text);
        }
    }

    #[test]
    fn clocks_show_seconds_only_where_there_are_some() {
        assert_eq!(clock(Time::from_s(8 * 3600)), "08:00");
        assert_eq!(clock(Time::from_s(8 * 3600 + 30)), "08:00:30");
        assert_eq!(about(Span::from_s(3_600 + 29)), "1h");
    }
}
