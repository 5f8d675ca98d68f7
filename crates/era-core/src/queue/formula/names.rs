//! Every name that a formula may use, with what it means, in one table each.
//!
//! The parser, the refusals and the documentation all read these tables, so a name that is added
//! here is known everywhere.

/// One table of names: the enum, its list, and the text of each.
macro_rules! names {
    ($(#[$meta:meta])* $enum:ident { $($variant:ident $name:literal $doc:literal;)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $enum {
            $(#[doc = $doc] $variant,)*
        }

        impl $enum {
            /// All of them, in the order in which they are listed to people.
            pub const ALL: &'static [$enum] = &[$($enum::$variant,)*];
            pub const COUNT: usize = $enum::ALL.len();

            /// As a formula writes it.
            pub const fn name(self) -> &'static str {
                match self { $($enum::$variant => $name,)* }
            }

            /// What it means.
            pub const fn doc(self) -> &'static str {
                match self { $($enum::$variant => $doc,)* }
            }

            pub(super) fn named(name: &str) -> Option<$enum> {
                $enum::ALL.iter().copied().find(|known| known.name() == name)
            }
        }
    };
}

names! {
    /// A number that a formula may use.
    Var {
        UserLevel "user_level" "Level of the job's owner.";
        GroupLevel "group_level" "Level of the owner's group.";
        Priority "priority" "The job's own priority, as its owner set it.";
        Wait "wait" "Seconds that the job has waited.";
        Gpus "gpus" "GPUs that the job asks for, all replicas together.";
        Cpus "cpus" "CPU cores that the job asks for, all replicas together.";
        Memory "memory" "GiB of memory that the job asks for, all replicas together.";
        Replicas "replicas" "Replicas that the job asks for.";
        Stated "stated" "Seconds that the owner said it would take.";
        Predicted "predicted" "Seconds that it is predicted to take.";
        Remaining "remaining" "Predicted seconds that are left of it.";
        Attained "attained" "GPU-seconds that the job has received so far.";
        Error "error" "The owner's past error: actual over stated duration; 1 is exact.";
        Debt "debt" "The owner's decayed share of use minus the share it is entitled to.";
        FreeGpus "free_gpus" "GPUs that are free in the cluster now.";
        FreeCpus "free_cpus" "CPU cores that are free in the cluster now.";
        FreeMemory "free_memory" "GiB of memory that are free in the cluster now.";
        Parameters "parameters" "Parameters of the network, in millions.";
        Data "data" "Size of the data, in GiB.";
        Attempts "attempts" "How often the job has been started already.";
    }
}

names! {
    /// A text that a formula may compare.
    Attr {
        Field "field" "What kind of work, such as \"vision\" or \"language\".";
        Framework "framework" "Such as \"pytorch\".";
        Network "network" "Such as \"resnet50\".";
    }
}

names! {
    /// A function that a formula may call.
    Function {
        If "if" "if(condition, a, b): a where the condition is not 0, else b.";
        Min "min" "min(a, b, ...): the least.";
        Max "max" "max(a, b, ...): the greatest.";
        Abs "abs" "abs(x): x without its sign.";
        Clamp "clamp" "clamp(x, low, high): x, but not below low nor above high.";
        Log2 "log2" "log2(x): the binary logarithm; x below 0.000001 counts as 0.000001.";
        Ln "ln" "ln(x): the natural logarithm; x below 0.000001 counts as 0.000001.";
        Sqrt "sqrt" "sqrt(x): the square root; 0 for what is negative.";
    }
}

impl Function {
    /// How it is written: its [`Function::doc`] up to the colon.
    pub fn signature(self) -> &'static str {
        self.doc().split(':').next().unwrap_or(self.name())
    }

    /// How many arguments it takes; `None` where two or more will do.
    pub const fn arity(self) -> Option<usize> {
        match self {
            Function::If | Function::Clamp => Some(3),
            Function::Min | Function::Max => None,
            Function::Abs | Function::Log2 | Function::Ln | Function::Sqrt => Some(1),
        }
    }
}

/// The known name with the fewest changes to `name`, if more of it stays than changes.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let all = Var::ALL
        .iter()
        .map(|v| v.name())
        .chain(Attr::ALL.iter().map(|a| a.name()))
        .chain(Function::ALL.iter().map(|f| f.name()));
    let (changes, known) = all.map(|known| (distance(name, known), known)).min()?;
    (changes * 2 <= known.len()).then_some(known)
}

/// The edit distance, upper and lower case being the same (after Wagner and Fischer).
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let swap = diagonal + usize::from(!x.eq_ignore_ascii_case(&y));
            diagonal = row[j + 1];
            row[j + 1] = swap.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_and_no_two_are_the_same() {
        let mut all: Vec<&str> = Var::ALL.iter().map(|v| v.name()).collect();
        all.extend(Attr::ALL.iter().map(|a| a.name()));
        all.extend(Function::ALL.iter().map(|f| f.name()));
        for v in Var::ALL {
            assert_eq!(Var::named(v.name()), Some(*v));
        }
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn the_nearest_name_is_suggested_and_a_far_one_is_not() {
        for (given, suggestion) in [
            ("wiat", Some("wait")),
            ("GPUS", Some("gpus")),
            ("gpu", Some("gpus")),
            ("usrlevel", Some("user_level")),
            ("freegpus", Some("free_gpus")),
            ("xyzzy_plugh", None),
        ] {
            assert_eq!(nearest(given), suggestion, "{given}");
        }
    }
}
