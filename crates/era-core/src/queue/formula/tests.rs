//! What formulas promise, as data; and a naive evaluation that the compiled one must equal.

use super::*;

mod oracle;

/// Inputs that tell every variable apart: the first is 1, the second 2, and so on.
fn counted() -> Inputs<'static> {
    let mut inputs = Inputs::default();
    for (number, var) in (1..).zip(Var::ALL) {
        inputs.set(*var, Fixed::from_int(number));
    }
    inputs
}

/// The value of `source` on `inputs`, as text.
#[track_caller]
fn value(source: &str, inputs: &Inputs<'_>) -> String {
    match Formula::parse(source) {
        Ok(formula) => formula.eval(inputs).to_string(),
        Err(error) => panic!("{source}: {error}"),
    }
}

#[track_caller]
fn check(source: &str, expected: &str) {
    assert_eq!(value(source, &counted()), expected, "{source}");
}

/// That `source` is refused at a character, with a sentence that begins so.
#[track_caller]
fn check_refused(source: &str, at: usize, begins: &str) {
    let error = Formula::parse(source).expect_err(source);
    assert!(error.problem.to_string().starts_with(begins), "{source}: {error}");
    assert_eq!(error.at, at, "{source}: {error}");
}

#[test]
fn numbers_are_read_exactly() {
    for (source, expected) in [
        ("0", "0"),
        ("007", "7"),
        ("0.5", "0.5"),
        ("1.000001", "1.000001"),
        ("2.50000000000", "2.5"),
        ("-3", "-3"),
        ("9223372036854.775807", "9223372036854.775807"),
        ("-9223372036854.775807 - 0.000001", "-9223372036854.775808"),
    ] {
        check(source, expected);
    }
}

#[test]
fn operators_bind_as_in_school() {
    for (source, expected) in [
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("10 - 4 - 3", "3"),
        ("24 / 4 / 2", "3"),
        ("-2 * -3", "6"),
        ("- -2", "2"),
        ("2 - -2", "4"),
        ("1 / 3", "0.333333"),
        ("-1 / 3", "-0.333333"),
        ("1+2\t*\n3", "7"),
    ] {
        check(source, expected);
    }
}

#[test]
fn conditions_are_one_or_zero() {
    for (source, expected) in [
        ("1 < 2", "1"),
        ("2 < 1", "0"),
        ("2 <= 2", "1"),
        ("2 > 2", "0"),
        ("2 >= 2", "1"),
        ("1 + 1 == 2", "1"),
        ("1 != 1", "0"),
        ("not 0", "1"),
        ("not not 7", "1"),
        ("not 1 < 2", "0"),
        ("3 and -1", "1"),
        ("3 and 0", "0"),
        ("0 or 0.5", "1"),
        ("1 or 0 and 0", "1"),
        ("(1 or 0) and 0", "0"),
        ("not 0 and 0", "0"),
        ("if(wait > 3, 10, 20)", "10"),
        ("if(wait < 3, 10, 20)", "20"),
        ("if(0.000001, 10, 20)", "10"),
        ("5 * (wait > 3) + 1", "6"),
    ] {
        check(source, expected);
    }
}

#[test]
fn functions_give_what_they_say() {
    for (source, expected) in [
        ("min(3, 2)", "2"),
        ("max(3, 2)", "3"),
        ("min(wait, 9, gpus, 7)", "4"),
        ("max(1, wait, gpus, 2)", "5"),
        ("abs(-2.5)", "2.5"),
        ("clamp(5, 1, 3)", "3"),
        ("clamp(-5, 1, 3)", "1"),
        ("clamp(2, 1, 3)", "2"),
        ("clamp(wait, gpus, 1)", "5"),
        ("log2(8)", "3"),
        ("log2(0.125)", "-3"),
        ("ln(1)", "0"),
        ("ln(10)", "2.302585"),
        ("sqrt(2)", "1.414213"),
        ("sqrt(wait - gpus)", "0"),
        ("log2(wait - gpus) == log2(0.000001)", "1"),
    ] {
        check(source, expected);
    }
}

#[test]
fn every_variable_reads_its_own_number() {
    for (number, var) in (1..).zip(Var::ALL) {
        check(var.name(), &Fixed::from_int(number).to_string());
        assert!(!var.doc().is_empty());
    }
}

#[test]
fn what_goes_wrong_only_for_some_jobs_still_has_a_value() {
    check("wait / (wait - wait)", "0");
    check("9000000000000 * wait", "9223372036854.775807");
    check("-9000000000000 * wait", "-9223372036854.775808");
}

#[test]
fn texts_are_compared_and_a_missing_one_equals_none() {
    let (vision, resnet) = (Name::new("vision").unwrap(), Name::new("resnet50").unwrap());
    let inputs = Inputs { field: Some(&vision), network: Some(&resnet), ..counted() };
    for (source, expected) in [
        (r#"field == "vision""#, "1"),
        (r#""vision" == field"#, "1"),
        (r#"field == "Vision""#, "0"),
        (r#"field != "vision""#, "0"),
        (r#"framework == "pytorch""#, "0"),
        (r#"framework != "pytorch""#, "1"),
        (r#"(field) == ("vision") and network == "resnet50""#, "1"),
        (r#"10 * (field == "vision") + wait"#, "14"),
        (r#"if(not field == "vision", 1, 2)"#, "2"),
    ] {
        assert_eq!(value(source, &inputs), expected, "{source}");
    }
}

#[test]
fn a_wrong_name_is_refused_with_the_nearest_and_all_known() {
    check_refused(
        "1 + wiat",
        4,
        "`wiat` is not known (did you mean `wait`?): numbers are user_lev",
    );
    check_refused("qqqqqqqq", 0, "`qqqqqqqq` is not known: numbers are");
    check_refused("pow(2, 3)", 0, "`pow` is not known");
    check_refused(r#"queue == "day""#, 0, "`queue` is not known");
    check_refused("NaN", 0, "`NaN` is no number here: write a finite one");
    check_refused("-inf", 1, "`inf` is no number here");
    check_refused("true", 0, "`true` is not known here: write 1 or 0");
    let problem = Formula::parse("wiat").unwrap_err().problem.to_string();
    let attrs = Attr::ALL.iter().map(|a| a.name());
    for name in Var::ALL.iter().map(|v| v.name()).chain(attrs) {
        assert!(problem.contains(name), "{name}");
    }
}

#[test]
fn a_wrong_number_is_refused() {
    for (source, at, begins) in [
        ("1e400", 0, "`1e400` has an exponent: write numbers in digits, up to 9223372036854.7"),
        ("99999999999999999999", 0, "`99999999999999999999` is out of range: numbers go up to 92"),
        ("9223372036854.775808", 0, "`9223372036854.775808` is out of range"),
        ("0.0000001", 0, "`0.0000001` is too fine: write at most 6 decimals"),
        ("1.", 0, "`1.` has no digit after its point: write 1"),
        (".5", 0, "`.` means nothing here: write a digit before the point"),
        ("1.2.3", 0, "`1.2.3` is no number: write one point at most"),
        ("2wait", 0, "`2wait` is no number: put an operator between"),
    ] {
        check_refused(source, at, begins);
    }
}

#[test]
fn a_wrong_shape_is_refused_where_it_goes_wrong() {
    for (source, at, begins) in [
        ("", 0, "the formula is empty: write at least a number"),
        ("  ", 2, "the formula is empty"),
        ("1 +", 3, "expected a number, a name or `(`, found the end"),
        ("1 + * 2", 4, "expected a number, a name or `(`, found `*`"),
        ("1 and or 2", 6, "expected a number, a name or `(`, found `or`"),
        ("(1 + 2", 6, "expected `)` for the `(` at character 0, found the end"),
        ("min(1, 2", 8, "expected `,` or `)` for `min(` at character 0, found the end"),
        ("1 + 2)", 5, "expected an operator or the end, found `)`"),
        ("wait gpus", 5, "expected an operator or the end, found `gpus`"),
        ("wait 5", 5, "expected an operator or the end, found `5`"),
        ("1 < wait < 3", 9, "comparisons do not chain: write `a < b and b < c`"),
        ("1 + not 2", 4, "`not` binds loosely: put it in parentheses"),
        ("wait(3)", 0, "`wait` is no function"),
        ("field(3)", 0, "`field` is no function"),
        ("2 * min", 4, "`min` is a function: min(a, b, ...)"),
        ("min()", 0, "0 arguments given: write min(a, b, ...)"),
        ("1 + min(1)", 4, "1 argument given: write min(a, b, ...)"),
        ("clamp(1, 2)", 0, "2 arguments given: write clamp(x, low, high)"),
        ("if(1, 2, 3, 4)", 0, "4 arguments given: write if(condition, a, b)"),
        ("log2(1, 2)", 0, "2 arguments given: write log2(x)"),
        ("min(1, )", 7, "expected a number, a name or `(`, found `)`"),
    ] {
        check_refused(source, at, begins);
    }
}

#[test]
fn what_other_languages_write_is_refused_with_what_to_write_here() {
    for (source, at, begins) in [
        ("wait = 1", 5, "`=` means nothing here: write `==` to compare"),
        ("1 && 2", 2, "`&` means nothing here: write `and`"),
        ("1 || 2", 2, "`|` means nothing here: write `or`"),
        ("!1", 0, "`!` means nothing here: write `not`"),
        ("2 ^ 3", 2, "`^` means nothing here: there are no powers"),
        ("5 % 3", 2, "`%` means nothing here"),
        ("field == 'vision'", 9, "`'` means nothing here: write texts in double quotes"),
        ("1 ? 2 : 3", 2, "`?` means nothing here: write if(condition, a, b)"),
        ("1 × 2", 2, "`×` means nothing here: write numbers, names"),
        ("é + $", 0, "`é` means nothing here"),
        ("1\0", 1, "`\\0` means nothing here"),
    ] {
        check_refused(source, at, begins);
    }
}

#[test]
fn a_text_is_only_ever_compared_with_a_text() {
    for (source, at, begins) in [
        ("field", 0, "a text is no number: compare one of the job's"),
        (r#"1 + "vision""#, 4, "a text is no number"),
        (r#""vision" + 1"#, 0, "a text is no number"),
        ("-field", 1, "a text is no number"),
        ("max(1, field)", 7, "a text is no number"),
        ("not field", 4, "a text is no number"),
        ("field == 3", 6, "a text is no number"),
        ("field == wait", 6, "a text is no number"),
        (r#"1 + field == "vision""#, 4, "a text is no number"),
        (r#"field == "vision" * 2"#, 9, "a text is no number"),
        (r#""a" == "b""#, 4, "a text is no number"),
        ("field == vision", 9, "write the text in quotes: field == \"vision\""),
        (r#"field < "vision""#, 6, "texts have no order: compare them with == or !="),
        (r#"field == "vision"#, 9, "the text has no end: close it"),
        (r#"field == "no name""#, 9, "`no name` is not a name: use 1 to 63 characters"),
        (r#"field == """#, 9, "`` is not a name"),
    ] {
        check_refused(source, at, begins);
    }
}

#[test]
fn a_constant_mistake_is_refused_when_the_formula_is_set() {
    for (source, at, begins) in [
        ("1 / 0", 2, "this divides by zero"),
        ("wait / 0", 5, "this divides by zero"),
        ("wait / (2 - 1 - 1)", 5, "this divides by zero"),
        ("if(wait, 1 / 0, 2)", 11, "this divides by zero"),
        ("9000000000000 * 2", 14, "this is out of range whatever the job: stay between"),
        ("wait + 9000000000000 * 2", 21, "this is out of range"),
        ("9223372036854.775807 + 0.000001", 21, "this is out of range"),
        ("-9223372036854.775807 - 1", 22, "this is out of range"),
        ("9000000000000 / 0.1", 14, "this is out of range"),
        ("-(-9223372036854.775807 - 0.000001)", 0, "this is out of range"),
        ("log2(0)", 0, "0 has no logarithm: give a number above 0"),
        ("ln(1 - 2)", 0, "-1 has no logarithm"),
        ("sqrt(-4)", 0, "-4 has no square root: give 0 or more"),
        ("clamp(wait, 3, 2)", 0, "clamp's 3 is above its 2: give the lower first"),
    ] {
        check_refused(source, at, begins);
    }
}

#[test]
fn limits_stand_on_length_nesting_and_operations() {
    let sum = |terms: usize| vec!["wait"; terms].join("+");
    let wrapped = |open: &str, levels: usize, close: &str| {
        format!("{}1{}", open.repeat(levels), close.repeat(levels))
    };
    // Each accepted source is the largest of its kind.
    for (source, expected) in [
        (format!("{:4096}", 1), "1"),
        (sum(256), "1024"),
        (wrapped("(", 64, ")"), "1"),
        (wrapped("-", 64, ""), "1"),
        (wrapped("not ", 64, ""), "1"),
        (wrapped("abs(", 64, ")"), "1"),
        (wrapped("wait+(", 63, ")"), "253"),
    ] {
        check(&source, expected);
    }
    check_refused(&format!("{:4097}", 1), 4096, "the formula is too long: write at most 4096");
    check_refused(&"é".repeat(5000), 4096, "the formula is too long");
    check_refused(&sum(257), 1279, "the formula is too large: write at most 512 operations");
    for (open, close, at) in [("(", ")", 65), ("-", "", 65), ("not ", "", 260), ("abs(", ")", 260)]
    {
        let begins = "the formula is nested too deeply: nest at most 64 levels";
        check_refused(&wrapped(open, 65, close), at, begins);
    }
    // Not nested too deeply, but too many values would wait for their operators.
    check_refused(&wrapped("wait+wait*(", 33, ")"), 352, "more than 64 values wait here");
}

#[test]
fn a_formula_is_stored_as_its_source() {
    let source = r#"2*wait  + (field == "vision")"#;
    let formula = Formula::parse(source).unwrap();
    let json = serde_json::to_string(&formula).unwrap();
    assert_eq!(json, r#""2*wait  + (field == \"vision\")""#);
    let back: Formula = serde_json::from_str(&json).unwrap();
    assert_eq!(back, formula);
    assert_eq!(back.source(), source);
    assert_eq!(back.eval(&counted()), formula.eval(&counted()));
    assert_ne!(Formula::parse("1+1").unwrap(), Formula::parse("2").unwrap());
    let error = serde_json::from_str::<Formula>(r#""1 +""#).unwrap_err().to_string();
    assert!(error.starts_with("expected a number, a name or `(`, found the end"), "{error}");
}

#[test]
fn a_bad_formula_is_a_refusal_with_its_code_and_place() {
    let refusal = Refusal::from(Formula::parse("1 / 0").unwrap_err());
    assert_eq!(refusal.code(), "bad_formula");
    assert_eq!(refusal.field(), Some("formula"));
    assert_eq!(
        refusal.to_string(),
        "formula: this divides by zero: divide by something else, at character 2"
    );
}

#[test]
fn whether_a_formula_never_falls_as_a_job_waits_is_known_of_the_usual_ones() {
    for source in [
        "100 * user_level + 10 * priority + wait / 3600 - 4 * log2(1 + gpus)",
        "priority - predicted / 60 - 50 * debt",
        "min(wait / 60, 100) + if(field == \"vision\", 2, 0)",
        "-(priority - sqrt(wait))",
        "if(priority > 3, wait, 2 * wait)",
        "clamp(log2(1 + wait), 0, 12) - (wait < 60)",
    ] {
        assert!(Formula::parse(source).unwrap().never_falls_with_wait(), "{source}");
    }
    for source in [
        "priority - wait",
        "100 / (1 + wait)",
        "wait * debt",
        "abs(wait - 100)",
        "if(wait > 60, 0, 1)",
        "wait == 60",
    ] {
        assert!(!Formula::parse(source).unwrap().never_falls_with_wait(), "{source}");
    }
}
