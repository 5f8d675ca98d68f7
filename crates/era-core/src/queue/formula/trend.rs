//! Whether a formula can be known never to fall as a job waits longer, all else being equal.
//!
//! Then jobs that differ in nothing but their wait are served oldest first, and whoever orders
//! them needs to look at the oldest only. The answer errs on the side of no.

use super::code::Op;
use super::{DEPTH_MAX, Formula, Var};
use crate::queue::fixed::Fixed;

/// How a value moves as the wait grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trend {
    /// Not at all.
    Still,
    Rises,
    Falls,
    Unknown,
}

/// What is known about the sign of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    NotNegative,
    NotPositive,
    Unknown,
}

type Known = (Trend, Sign);

const NOTHING: Known = (Trend::Unknown, Sign::Unknown);
/// A condition that does not depend on the wait.
const STILL_YES_OR_NO: Known = (Trend::Still, Sign::NotNegative);

impl Trend {
    fn reversed(self) -> Trend {
        match self {
            Trend::Rises => Trend::Falls,
            Trend::Falls => Trend::Rises,
            same => same,
        }
    }

    /// Of something that never falls when either of two rises.
    fn with(self, other: Trend) -> Trend {
        match (self, other) {
            (Trend::Still, trend) | (trend, Trend::Still) => trend,
            (one, two) if one == two => one,
            _ => Trend::Unknown,
        }
    }

    /// Of this, times or divided by something still of that sign.
    fn scaled(self, by: Sign) -> Trend {
        match (self, by) {
            (Trend::Still, _) => Trend::Still,
            (trend, Sign::NotNegative) => trend,
            (trend, Sign::NotPositive) => trend.reversed(),
            (_, Sign::Unknown) => Trend::Unknown,
        }
    }
}

impl Sign {
    fn reversed(self) -> Sign {
        match self {
            Sign::NotNegative => Sign::NotPositive,
            Sign::NotPositive => Sign::NotNegative,
            Sign::Unknown => Sign::Unknown,
        }
    }

    fn with(self, other: Sign) -> Sign {
        if self == other { self } else { Sign::Unknown }
    }

    fn times(self, other: Sign) -> Sign {
        match (self, other) {
            (Sign::Unknown, _) | (_, Sign::Unknown) => Sign::Unknown,
            (one, two) if one == two => Sign::NotNegative,
            _ => Sign::NotPositive,
        }
    }
}

impl Formula {
    /// Whether it never falls as a job waits longer, all else being equal. No may mean that
    /// nothing is known.
    pub fn never_falls_with_wait(&self) -> bool {
        let mut stack = [NOTHING; DEPTH_MAX];
        let mut held = 0;
        for op in self.code.iter() {
            held -= op.takes();
            stack[held] = known(*op, &stack[held..]);
            held += 1;
        }
        matches!(stack[0].0, Trend::Still | Trend::Rises)
    }
}

/// What is known of an operation's value, by what is known of its arguments.
fn known(op: Op, args: &[Known]) -> Known {
    let (trend, sign) = args[0];
    let all_still = args[..op.takes().max(1)].iter().all(|(trend, _)| *trend == Trend::Still);
    match op {
        Op::Push(number) if number >= Fixed::ZERO => (Trend::Still, Sign::NotNegative),
        Op::Push(_) => (Trend::Still, Sign::NotPositive),
        Op::Load(Var::Wait) => (Trend::Rises, Sign::NotNegative),
        Op::Load(_) => (Trend::Still, Sign::Unknown),
        Op::Is(..) => STILL_YES_OR_NO,
        Op::Neg => (trend.reversed(), sign.reversed()),
        Op::Add => (trend.with(args[1].0), sign.with(args[1].1)),
        Op::Sub => (trend.with(args[1].0.reversed()), sign.with(args[1].1.reversed())),
        Op::Mul => match (trend, args[1].0) {
            (_, Trend::Still) => (trend.scaled(args[1].1), sign.times(args[1].1)),
            (Trend::Still, other) => (other.scaled(sign), sign.times(args[1].1)),
            _ => (Trend::Unknown, sign.times(args[1].1)),
        },
        Op::Div if args[1].0 == Trend::Still => (trend.scaled(args[1].1), sign.times(args[1].1)),
        Op::Div => (Trend::Unknown, sign.times(args[1].1)),
        Op::Min | Op::Max => (trend.with(args[1].0), sign.with(args[1].1)),
        // They never fall as their argument rises, and say something of their sign at most.
        Op::Log2 | Op::Ln => (trend, Sign::Unknown),
        Op::Sqrt => (trend, Sign::NotNegative),
        Op::Abs if sign == Sign::NotNegative => (trend, sign),
        Op::Clamp => (trend.with(args[1].0).with(args[2].0), Sign::Unknown),
        Op::If if trend == Trend::Still => (args[1].0.with(args[2].0), args[1].1.with(args[2].1)),
        Op::Greater | Op::GreaterEqual => (trend.with(args[1].0.reversed()), Sign::NotNegative),
        Op::Less | Op::LessEqual => (trend.reversed().with(args[1].0), Sign::NotNegative),
        Op::Not | Op::And | Op::Or | Op::Equal | Op::NotEqual if all_still => STILL_YES_OR_NO,
        Op::Abs if all_still => (Trend::Still, Sign::NotNegative),
        _ => NOTHING,
    }
}
