//! From tokens to postfix code, by recursive descent with one token of lookahead.
//!
//! Code is written as it is parsed; there is no tree. Constant parts are folded on the way: code
//! whose last operation is a `Push` *is* that one constant, so the last operations tell which
//! operands are constants. Folding serves to find constant mistakes more than to save time.

use super::code::Op;
use super::lex::{Token, tokens};
use super::names::{Attr, Function, Var};
use super::{DEPTH_MAX, Fault, FormulaError, OPS_MAX, SOURCE_LEN_MAX};
use crate::units::Name;

type Parsed<T> = Result<T, FormulaError>;

/// The code of a formula, and the texts that it compares with.
pub(super) fn compile(source: &str) -> Parsed<(Vec<Op>, Vec<Name>)> {
    let chars: Vec<char> = source.chars().take(SOURCE_LEN_MAX + 1).collect();
    if chars.len() > SOURCE_LEN_MAX {
        let problem = Fault::TooLong { most: SOURCE_LEN_MAX };
        return Err(FormulaError { at: SOURCE_LEN_MAX, problem });
    }
    let mut parser = Parser { tokens: tokens(&chars)?, ..Parser::default() };
    if *parser.peek() == Token::End {
        return parser.fail(Fault::Empty);
    }
    parser.number(Parser::any_of)?;
    if *parser.peek() != Token::End {
        let found = parser.peek().describe();
        return parser.fail(Fault::ExpectedOperator { found });
    }
    Ok((parser.code, parser.texts))
}

#[derive(Default)]
struct Parser {
    tokens: Vec<(usize, Token)>,
    next: usize,
    code: Vec<Op>,
    texts: Vec<Name>,
    /// How deep the source is nested here.
    depth: usize,
    /// How many values the code so far leaves on the stack.
    held: usize,
}

/// What an expression turned out to be.
enum Operand {
    /// A number, whose code has been written.
    Number,
    /// One of the job's texts, not yet compared.
    Attr(Attr),
    /// A text in quotes, not yet compared.
    Text(Name),
}

/// A rule of the grammar.
type Rule = fn(&mut Parser) -> Parsed<Operand>;

impl Parser {
    /// `a or b`
    fn any_of(&mut self) -> Parsed<Operand> {
        self.chain(Parser::all_of, &[("or", Op::Or)])
    }

    /// `a and b`
    fn all_of(&mut self) -> Parsed<Operand> {
        self.chain(Parser::negation, &[("and", Op::And)])
    }

    /// `not a`
    fn negation(&mut self) -> Parsed<Operand> {
        self.prefixed("not", Op::Not, Parser::negation, Parser::comparison)
    }

    /// `a < b`
    fn comparison(&mut self) -> Parsed<Operand> {
        const OPS: [(&str, Op); 6] = [
            ("<", Op::Less),
            ("<=", Op::LessEqual),
            ("==", Op::Equal),
            ("!=", Op::NotEqual),
            (">", Op::Greater),
            (">=", Op::GreaterEqual),
        ];
        let left = self.sum()?;
        let Some(op) = self.operator(&OPS) else { return Ok(left) };
        let at = self.at();
        self.next += 1;
        if let (Operand::Attr(attr), Token::Ident(word)) = (&left, self.peek())
            && Var::named(word).is_none()
        {
            let (attr, word) = (attr.name().to_owned(), word.clone());
            return self.fail(Fault::Unquoted { attr, word });
        }
        let right = self.sum()?;
        match (left, right) {
            (Operand::Number, Operand::Number) => self.emit(op, at)?,
            (Operand::Attr(attr), Operand::Text(text))
            | (Operand::Text(text), Operand::Attr(attr)) => self.emit_is(attr, text, op, at)?,
            _ => return Err(not_a_number(at)),
        }
        if self.operator(&OPS).is_some() {
            return self.fail(Fault::Chained);
        }
        Ok(Operand::Number)
    }

    /// `a + b`, `a - b`
    fn sum(&mut self) -> Parsed<Operand> {
        self.chain(Parser::product, &[("+", Op::Add), ("-", Op::Sub)])
    }

    /// `a * b`, `a / b`
    fn product(&mut self) -> Parsed<Operand> {
        self.chain(Parser::signed, &[("*", Op::Mul), ("/", Op::Div)])
    }

    /// `-a`
    fn signed(&mut self) -> Parsed<Operand> {
        self.prefixed("-", Op::Neg, Parser::signed, Parser::primary)
    }

    /// A number, a name, a text, a call, or something in parentheses.
    fn primary(&mut self) -> Parsed<Operand> {
        let (at, token) = self.tokens[self.next].clone();
        match token {
            Token::Number(number) => {
                self.next += 1;
                self.emit(Op::Push(number), at)?;
                Ok(Operand::Number)
            }
            Token::Text(text) => {
                self.next += 1;
                Ok(Operand::Text(text))
            }
            Token::Symbol("(") => {
                self.next += 1;
                let inside = self.nested(Parser::any_of)?;
                if !self.eat(")") {
                    let found = self.peek().describe();
                    return self.fail(Fault::Unclosed { open: at, found });
                }
                Ok(inside)
            }
            Token::Ident(word) if !matches!(word.as_str(), "and" | "or" | "not") => {
                self.named(&word, at)
            }
            Token::Ident(word) if word == "not" => self.fail(Fault::LooseNot),
            token => self.fail(Fault::ExpectedOperand { found: token.describe() }),
        }
    }

    /// What begins with a name: a variable, a text of the job, a call.
    fn named(&mut self, word: &str, at: usize) -> Parsed<Operand> {
        let (var, attr, function) = (Var::named(word), Attr::named(word), Function::named(word));
        self.next += 1;
        let called = *self.peek() == Token::Symbol("(");
        let problem = match (var, attr, function) {
            (Some(var), ..) if !called => {
                self.emit(Op::Load(var), at)?;
                return Ok(Operand::Number);
            }
            (_, Some(attr), _) if !called => return Ok(Operand::Attr(attr)),
            (.., Some(function)) if called => return self.call(function, at),
            (.., Some(function)) => {
                Fault::NotCalled { name: word.to_owned(), signature: function.signature() }
            }
            (None, None, None) => Fault::of_name(word),
            _ => Fault::NoFunction { name: word.to_owned() },
        };
        Err(FormulaError { at, problem })
    }

    /// The arguments of a call, and its code.
    fn call(&mut self, function: Function, at: usize) -> Parsed<Operand> {
        self.next += 1;
        let mut given = 0;
        if *self.peek() != Token::Symbol(")") {
            loop {
                self.nested(|parser| parser.number(Parser::any_of))?;
                given += 1;
                // The least of many is that of the least so far and the next.
                match function {
                    Function::Min if given > 1 => self.emit(Op::Min, at)?,
                    Function::Max if given > 1 => self.emit(Op::Max, at)?,
                    _ => {}
                }
                if !self.eat(",") {
                    break;
                }
            }
        }
        if !self.eat(")") {
            let (name, found) = (function.name().to_owned(), self.peek().describe());
            return self.fail(Fault::UnclosedCall { name, open: at, found });
        }
        if function.arity().map_or(given < 2, |arity| given != arity) {
            let problem = Fault::Arguments { given, signature: function.signature() };
            return Err(FormulaError { at, problem });
        }
        match function {
            Function::Min | Function::Max => {}
            Function::If => self.emit(Op::If, at)?,
            Function::Clamp => self.emit(Op::Clamp, at)?,
            Function::Abs => self.emit(Op::Abs, at)?,
            Function::Log2 => self.emit(Op::Log2, at)?,
            Function::Ln => self.emit(Op::Ln, at)?,
            Function::Sqrt => self.emit(Op::Sqrt, at)?,
        }
        Ok(Operand::Number)
    }

    /// Operands of one precedence, from left to right.
    fn chain(&mut self, operand: Rule, ops: &[(&str, Op)]) -> Parsed<Operand> {
        let start = self.at();
        let first = operand(self)?;
        if self.operator(ops).is_none() {
            return Ok(first);
        }
        let Operand::Number = first else { return Err(not_a_number(start)) };
        while let Some(op) = self.operator(ops) {
            let at = self.at();
            self.next += 1;
            self.number(operand)?;
            self.emit(op, at)?;
        }
        Ok(Operand::Number)
    }

    /// An operator before its operand, or what binds tighter.
    fn prefixed(&mut self, symbol: &str, op: Op, again: Rule, tighter: Rule) -> Parsed<Operand> {
        let at = self.at();
        if self.operator(&[(symbol, op)]).is_none() {
            return tighter(self);
        }
        self.next += 1;
        self.nested(|parser| parser.number(again))?;
        self.emit(op, at)?;
        Ok(Operand::Number)
    }

    /// An operand that must be a number.
    fn number(&mut self, rule: Rule) -> Parsed<Operand> {
        let start = self.at();
        match rule(self)? {
            Operand::Number => Ok(Operand::Number),
            _ => Err(not_a_number(start)),
        }
    }

    /// A part one level further in.
    fn nested(&mut self, part: impl FnOnce(&mut Parser) -> Parsed<Operand>) -> Parsed<Operand> {
        if self.depth == DEPTH_MAX {
            return self.fail(Fault::TooDeep { most: DEPTH_MAX });
        }
        self.depth += 1;
        let operand = part(self)?;
        self.depth -= 1;
        Ok(operand)
    }

    /// Writes one operation that stands at character `at`, or what it comes to on constants.
    fn emit(&mut self, op: Op, at: usize) -> Parsed<()> {
        let fail = |problem| Err(FormulaError { at, problem });
        let start = self.code.len().saturating_sub(op.takes());
        // From the right, up to the first that is no `Push`, these are the operands themselves;
        // what stands before that one may be part of an operand, and nothing below relies on it.
        let constant = |op: &Op| if let Op::Push(number) = op { Some(*number) } else { None };
        let args: Vec<_> = self.code[start..].iter().map(constant).collect();
        if let Some(problem) = op.fault(&args) {
            return fail(problem);
        }
        self.held = self.held + 1 - op.takes();
        if self.held > DEPTH_MAX {
            return fail(Fault::TooManyHeld { most: DEPTH_MAX });
        }
        // Operations without operands depend on the job, or are constants already.
        let known: Option<Vec<_>> = args.into_iter().collect();
        match known.filter(|args| !args.is_empty()) {
            Some(args) => {
                self.code.truncate(start);
                self.code.push(Op::Push(op.value(&args)));
            }
            None => self.code.push(op),
        }
        if self.code.len() > OPS_MAX {
            return fail(Fault::TooLarge { most: OPS_MAX });
        }
        Ok(())
    }

    /// Writes a comparison of texts.
    fn emit_is(&mut self, attr: Attr, text: Name, op: Op, at: usize) -> Parsed<()> {
        let (Op::Equal | Op::NotEqual) = op else {
            return Err(FormulaError { at, problem: Fault::TextsHaveNoOrder });
        };
        let index = self.texts.iter().position(|known| *known == text).unwrap_or_else(|| {
            self.texts.push(text);
            self.texts.len() - 1
        });
        // A source has fewer characters than an index has values.
        let index = u16::try_from(index).unwrap_or(u16::MAX);
        self.emit(Op::Is(attr, index), at)?;
        if op == Op::NotEqual { self.emit(Op::Not, at) } else { Ok(()) }
    }

    fn peek(&self) -> &Token {
        &self.tokens[self.next].1
    }

    /// The index of the next token's first character.
    fn at(&self) -> usize {
        self.tokens[self.next].0
    }

    /// Which of these operators comes next.
    fn operator(&self, ops: &[(&str, Op)]) -> Option<Op> {
        let next = match self.peek() {
            Token::Symbol(symbol) => symbol,
            Token::Ident(word) => word.as_str(),
            _ => return None,
        };
        ops.iter().find(|(symbol, _)| *symbol == next).map(|(_, op)| *op)
    }

    /// Takes the next token if it is this symbol.
    fn eat(&mut self, symbol: &str) -> bool {
        let is_next = matches!(self.peek(), Token::Symbol(next) if *next == symbol);
        self.next += usize::from(is_next);
        is_next
    }

    fn fail<T>(&self, problem: Fault) -> Parsed<T> {
        Err(FormulaError { at: self.at(), problem })
    }
}

fn not_a_number(at: usize) -> FormulaError {
    FormulaError { at, problem: Fault::TextIsNoNumber }
}
