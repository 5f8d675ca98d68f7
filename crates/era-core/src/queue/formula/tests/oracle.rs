//! Random expression trees, printed to source with no more parentheses than they need, must
//! evaluate as a naive recursion over 128-bit integers says; and no text whatever may panic.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::queue::fixed::SCALE;

/// An expression, as a person thinks of it.
#[derive(Clone, Debug)]
enum Tree {
    Number(u64),
    Var(Var),
    /// A text of the job, whether it is compared with `==`, and the text.
    Is(Attr, bool, &'static str),
    Prefix(&'static str, Box<Tree>),
    Infix(Box<Tree>, &'static str, Box<Tree>),
    Call(Function, Vec<Tree>),
}

const OR: u8 = 0;
const AND: u8 = 1;
const NOT: u8 = 2;
const COMPARE: u8 = 3;
const SUM: u8 = 4;
const PRODUCT: u8 = 5;
const SIGN: u8 = 6;
const PRIMARY: u8 = 7;

fn binding(infix: &str) -> u8 {
    match infix {
        "or" => OR,
        "and" => AND,
        "+" | "-" => SUM,
        "*" | "/" => PRODUCT,
        _ => COMPARE,
    }
}

/// The source of a tree where only what binds at least as tightly as `least` may stand bare.
fn print(tree: &Tree, least: u8) -> String {
    let (own, text) = match tree {
        Tree::Number(raw) => (PRIMARY, Fixed(i64::try_from(*raw).unwrap()).to_string()),
        Tree::Var(var) => (PRIMARY, var.name().to_owned()),
        Tree::Is(attr, equal, text) => {
            let op = if *equal { "==" } else { "!=" };
            (COMPARE, format!("{} {op} \"{text}\"", attr.name()))
        }
        Tree::Prefix("-", x) => (SIGN, format!("-{}", print(x, SIGN))),
        Tree::Prefix(word, x) => (NOT, format!("{word} {}", print(x, NOT))),
        Tree::Infix(a, op, b) => {
            let own = binding(op);
            // Comparisons do not chain on either side; the rest chain on the left.
            let left = if own == COMPARE { SUM } else { own };
            (own, format!("{} {op} {}", print(a, left), print(b, own + 1)))
        }
        Tree::Call(function, args) => {
            let args: Vec<String> = args.iter().map(|arg| print(arg, OR)).collect();
            (PRIMARY, format!("{}({})", function.name(), args.join(", ")))
        }
    };
    if own < least { format!("({text})") } else { text }
}

/// What a tree comes to on some inputs.
struct Outcome {
    value: i128,
    /// It is the same for every job.
    constant: bool,
    /// Some constant part of it is a mistake.
    mistaken: bool,
}

fn clip(wide: i128) -> i128 {
    wide.clamp(i128::from(i64::MIN), i128::from(i64::MAX))
}

fn naive(tree: &Tree, inputs: &Inputs<'_>) -> Outcome {
    let parts: Vec<Outcome> = match tree {
        Tree::Number(raw) => {
            return Outcome { value: i128::from(*raw), constant: true, mistaken: false };
        }
        Tree::Var(var) => {
            let value = i128::from(inputs.get(*var).0);
            return Outcome { value, constant: false, mistaken: false };
        }
        Tree::Is(attr, equal, text) => {
            let same = inputs.text(*attr).is_some_and(|own| own.as_str() == *text);
            let value = i128::from(SCALE) * i128::from(same == *equal);
            return Outcome { value, constant: false, mistaken: false };
        }
        Tree::Prefix(_, x) => vec![naive(x, inputs)],
        Tree::Infix(a, _, b) => vec![naive(a, inputs), naive(b, inputs)],
        Tree::Call(_, args) => args.iter().map(|arg| naive(arg, inputs)).collect(),
    };
    let args: Vec<i128> = parts.iter().map(|part| part.value).collect();
    let exact = match tree {
        Tree::Prefix(op, _) => prefix(op, args[0]),
        Tree::Infix(_, op, _) => infix(op, args[0], args[1]),
        Tree::Call(function, _) => call(*function, &args),
        _ => unreachable!("a leaf has no parts"),
    };
    let constant = parts.iter().all(|part| part.constant);
    // Clipping a constant is a mistake, and so are some arguments that are constant.
    let mistaken = parts.iter().any(|part| part.mistaken)
        || constant && clip(exact) != exact
        || has_bad_constant(tree, &parts);
    Outcome { value: clip(exact), constant, mistaken }
}

fn has_bad_constant(tree: &Tree, parts: &[Outcome]) -> bool {
    let bad = |i: usize, test: fn(i128) -> bool| parts[i].constant && test(parts[i].value);
    match tree {
        Tree::Infix(_, "/", _) => bad(1, |x| x == 0),
        Tree::Call(Function::Log2 | Function::Ln, _) => bad(0, |x| x <= 0),
        Tree::Call(Function::Sqrt, _) => bad(0, |x| x < 0),
        Tree::Call(Function::Clamp, _) => {
            parts[1].constant && parts[2].constant && parts[1].value > parts[2].value
        }
        _ => false,
    }
}

fn prefix(op: &str, x: i128) -> i128 {
    if op == "-" { -x } else { i128::from(SCALE) * i128::from(x == 0) }
}

fn infix(op: &str, a: i128, b: i128) -> i128 {
    let one = i128::from(SCALE);
    let yes = |condition: bool| one * i128::from(condition);
    match op {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b / one,
        "/" if b == 0 => 0,
        "/" => a * one / b,
        "and" => yes(a != 0 && b != 0),
        "or" => yes(a != 0 || b != 0),
        "<" => yes(a < b),
        "<=" => yes(a <= b),
        ">" => yes(a > b),
        ">=" => yes(a >= b),
        "==" => yes(a == b),
        "!=" => yes(a != b),
        other => unreachable!("{other} is no operator"),
    }
}

fn call(function: Function, args: &[i128]) -> i128 {
    // The elementary functions have tests of their own, beside them.
    let fixed = Fixed(i64::try_from(args[0]).unwrap());
    match function {
        Function::If => args[if args[0] != 0 { 1 } else { 2 }],
        Function::Min => *args.iter().min().unwrap(),
        Function::Max => *args.iter().max().unwrap(),
        Function::Abs => args[0].abs(),
        Function::Clamp if args[0] > args[2] => args[1].max(args[2]),
        Function::Clamp => args[1].max(args[0]),
        Function::Log2 => i128::from(fixed.log2().0),
        Function::Ln => i128::from(fixed.ln().0),
        Function::Sqrt => i128::from(fixed.sqrt().0),
    }
}

fn trees() -> impl Strategy<Value = Tree> {
    let small = (0_u64..=20).prop_map(|n| Tree::Number(n * SCALE.unsigned_abs() / 2));
    let large = (0_u64..=i64::MAX.unsigned_abs()).prop_map(Tree::Number);
    let vars = proptest::sample::select(Var::ALL).prop_map(Tree::Var);
    let texts = proptest::sample::select(&["vision", "pytorch", "resnet50"][..]);
    let is = (proptest::sample::select(Attr::ALL), any::<bool>(), texts)
        .prop_map(|(attr, equal, text)| Tree::Is(attr, equal, text));
    let leaf = prop_oneof![4 => small, 1 => large, 6 => vars, 1 => is];
    leaf.prop_recursive(5, 60, 4, |inner| {
        let ops = ["+", "-", "*", "/", "and", "or", "<", "<=", ">", ">=", "==", "!="];
        let infix = (inner.clone(), proptest::sample::select(ops.to_vec()), inner.clone());
        let signs = proptest::sample::select(&["-", "not"][..]);
        let calls = (proptest::sample::select(Function::ALL), vec(inner.clone(), 4), 2..=4_usize);
        prop_oneof![
            5 => infix.prop_map(|(a, op, b)| Tree::Infix(Box::new(a), op, Box::new(b))),
            1 => (signs, inner).prop_map(|(op, x)| Tree::Prefix(op, Box::new(x))),
            2 => calls.prop_map(|(function, mut args, many)| {
                args.truncate(function.arity().unwrap_or(many));
                Tree::Call(function, args)
            }),
        ]
    })
}

/// Numbers of every magnitude, zero among them.
fn numbers() -> impl Strategy<Value = [Fixed; Var::COUNT]> {
    let number = (any::<i64>(), 0_u32..64)
        .prop_map(|(x, shift)| Fixed(x.checked_shr(shift).filter(|_| shift < 63).unwrap_or(0)));
    vec(number, Var::COUNT).prop_map(|numbers| numbers.try_into().unwrap())
}

/// Texts out of the pieces of the language, which reach further into the parser than noise.
fn almost_formulas() -> impl Strategy<Value = String> {
    let pieces = [
        "1",
        "0",
        "2.5",
        "9999999999999",
        "wait",
        "gpus",
        "field",
        "\"vision\"",
        "\"",
        "==",
        "<",
        "+",
        "-",
        "*",
        "/",
        "(",
        ")",
        ",",
        "min(",
        "if(",
        "clamp(",
        "log2(",
        "not",
        "and",
        "or",
        " ",
        "=",
        ".",
        "e",
        "é",
    ];
    vec(proptest::sample::select(pieces.to_vec()), 0..40).prop_map(|pieces| pieces.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn compiled_code_gives_what_a_naive_evaluation_gives(tree in trees(), numbers in numbers()) {
        let [vision, pytorch] = ["vision", "pytorch"].map(|text| Name::new(text).unwrap());
        let (field, framework) = (Some(&vision), Some(&pytorch));
        let inputs = Inputs { numbers, field, framework, network: None };
        let source = print(&tree, OR);
        let outcome = naive(&tree, &inputs);
        match Formula::parse(&source) {
            Ok(formula) => {
                prop_assert!(!outcome.mistaken, "{} is accepted", source);
                prop_assert_eq!(i128::from(formula.eval(&inputs).0), outcome.value, "{}", source);
            }
            Err(error) => prop_assert!(outcome.mistaken, "{}: {}", source, error),
        }
    }

    #[test]
    fn what_is_known_never_to_fall_with_the_wait_does_not(
        tree in trees(),
        numbers in numbers(),
        waits in vec(0..i64::MAX, 2..8),
    ) {
        let Ok(formula) = Formula::parse(&print(&tree, OR)) else { return Ok(()) };
        if !formula.never_falls_with_wait() {
            return Ok(());
        }
        let mut waits = waits;
        waits.extend([0, 1, 1_000_000, i64::MAX]);
        waits.sort_unstable();
        let values: Vec<Fixed> = waits
            .iter()
            .map(|wait| {
                let mut inputs = Inputs { numbers, ..Inputs::default() };
                inputs.set(Var::Wait, Fixed(*wait));
                formula.eval(&inputs)
            })
            .collect();
        prop_assert!(values.is_sorted(), "{}: {:?} {:?}", formula, waits, values);
    }

    #[test]
    fn no_text_panics_the_parser(source in any::<String>()) {
        check_no_panic(&source);
    }

    #[test]
    fn no_text_that_is_almost_a_formula_panics_the_parser(source in almost_formulas()) {
        check_no_panic(&source);
    }
}

fn check_no_panic(source: &str) {
    match Formula::parse(source) {
        Ok(formula) => drop(formula.eval(&counted())),
        Err(error) => assert!(error.at <= source.chars().count(), "{source:?}: {error}"),
    }
}
