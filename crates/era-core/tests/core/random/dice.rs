//! Random choices that shrink: a command is made of a few numbers, and smaller numbers are simpler
//! choices. What is chosen among is the state of the moment, so a story stays sensible when
//! commands are taken out of it.

use proptest::collection::vec;
use proptest::prelude::{Strategy, any};

/// How many numbers a world is made of, and how many one command: more than any of them needs, or
/// whatever is chosen last would always be the simplest.
const WORLD_FACES: usize = 256;
const FACES: usize = 64;

/// The numbers that one command is made of.
#[derive(Clone, Debug)]
pub struct Dice {
    faces: Vec<u16>,
    next: usize,
}

impl Dice {
    pub fn new(faces: &[u16]) -> Dice {
        Dice { faces: faces.to_vec(), next: 0 }
    }

    /// The next number as it is.
    pub fn raw(&mut self) -> u16 {
        let face = self.faces.get(self.next).copied();
        self.next += 1;
        face.expect("there are more choices than numbers to choose by")
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.raw()) % n.max(1)
    }

    /// A number from `from` to `to`, both included.
    pub fn within(&mut self, from: i64, to: i64) -> i64 {
        from + i64::from(self.raw()) % (to - from + 1)
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    /// One of these; the first is the simplest.
    pub fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    /// One of these, if there is any.
    pub fn any_of<T: Clone>(&mut self, choices: &[T]) -> Option<T> {
        if choices.is_empty() { None } else { Some(self.one_of(choices)) }
    }
}

/// The numbers of a world, and of so many commands.
pub fn story(commands: std::ops::Range<usize>) -> impl Strategy<Value = (Vec<u16>, Vec<Vec<u16>>)> {
    (vec(any::<u16>(), WORLD_FACES), vec(vec(any::<u16>(), FACES), commands))
}
