//! The operations of compiled formulas: what each takes from the stack and gives back, and which
//! constants it must not be given.

use crate::queue::fixed::Fixed;
use crate::queue::formula::{Attr, Fault, Var};

/// One step of postfix code. Replaces the top values of a stack by one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Push(Fixed),
    /// One of the job's numbers.
    Load(Var),
    /// Whether one of the job's texts is the one with this index.
    Is(Attr, u16),
    Neg,
    Not,
    Abs,
    Log2,
    Ln,
    Sqrt,
    Add,
    Sub,
    Mul,
    Div,
    Min,
    Max,
    And,
    Or,
    Less,
    LessEqual,
    Equal,
    NotEqual,
    Greater,
    GreaterEqual,
    Clamp,
    If,
}

impl Op {
    /// How many values it takes; it always gives one.
    pub(super) const fn takes(self) -> usize {
        match self {
            Op::Push(_) | Op::Load(_) | Op::Is(..) => 0,
            Op::Neg | Op::Not | Op::Abs | Op::Log2 | Op::Ln | Op::Sqrt => 1,
            Op::Clamp | Op::If => 3,
            _ => 2,
        }
    }

    /// Its value on the first values of `args`, at least as many as it takes.
    pub(super) fn value(self, args: &[Fixed]) -> Fixed {
        match self {
            Op::Push(number) => number,
            // What depends on the job is the caller's to look up.
            Op::Load(_) | Op::Is(..) => Fixed::ZERO,
            Op::Neg => -args[0],
            Op::Not => Fixed::from_bool(!args[0].is_yes()),
            Op::Abs => args[0].abs(),
            Op::Log2 => args[0].log2(),
            Op::Ln => args[0].ln(),
            Op::Sqrt => args[0].sqrt(),
            Op::Add => args[0] + args[1],
            Op::Sub => args[0] - args[1],
            Op::Mul => args[0] * args[1],
            Op::Div => args[0] / args[1],
            Op::Min => args[0].min(args[1]),
            Op::Max => args[0].max(args[1]),
            Op::And => Fixed::from_bool(args[0].is_yes() && args[1].is_yes()),
            Op::Or => Fixed::from_bool(args[0].is_yes() || args[1].is_yes()),
            Op::Less => Fixed::from_bool(args[0] < args[1]),
            Op::LessEqual => Fixed::from_bool(args[0] <= args[1]),
            Op::Equal => Fixed::from_bool(args[0] == args[1]),
            Op::NotEqual => Fixed::from_bool(args[0] != args[1]),
            Op::Greater => Fixed::from_bool(args[0] > args[1]),
            Op::GreaterEqual => Fixed::from_bool(args[0] >= args[1]),
            Op::Clamp => args[0].between(args[1], args[2]),
            Op::If if args[0].is_yes() => args[1],
            Op::If => args[2],
        }
    }

    /// What is wrong with it on these arguments, `None` being one that is known only when a job
    /// is ranked. At run time such arguments get a value; in a source they are a mistake.
    pub(super) fn fault(self, args: &[Option<Fixed>]) -> Option<Fault> {
        let in_range = match (self, args) {
            (Op::Div, [_, Some(Fixed::ZERO)]) => {
                return Some(Fault::DividesByZero);
            }
            (Op::Clamp, [_, Some(low), Some(high)]) if low > high => {
                let (low, high) = (low.to_string(), high.to_string());
                return Some(Fault::Backwards { low, high });
            }
            (Op::Log2 | Op::Ln, [Some(x)]) if *x <= Fixed::ZERO => {
                return Some(Fault::NoLogarithm { number: x.to_string() });
            }
            (Op::Sqrt, [Some(x)]) if *x < Fixed::ZERO => {
                return Some(Fault::NoRoot { number: x.to_string() });
            }
            (Op::Add, [Some(a), Some(b)]) => a.checked_add(*b).is_some(),
            (Op::Sub, [Some(a), Some(b)]) => a.checked_sub(*b).is_some(),
            (Op::Mul, [Some(a), Some(b)]) => a.checked_mul(*b).is_some(),
            (Op::Div, [Some(a), Some(b)]) => a.checked_div(*b).is_some(),
            (Op::Neg | Op::Abs, [Some(x)]) => *x != Fixed::MIN,
            _ => true,
        };
        let edges =
            || Fault::BeyondRange { min: Fixed::MIN.to_string(), max: Fixed::MAX.to_string() };
        (!in_range).then(edges)
    }
}
