//! A job as a YAML file. Mistakes are told with line and column; an unknown key with the nearest
//! one that is known.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use era_api::Credits;
use era_api::job::{Attributes, Constraints, Overrun, Replicas, WorkInput};
use era_api::quote::{Value, ValueStep};
use jiff::Zoned;
use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

use super::draft::{Code, Draft};
use super::nearest::nearest;
use super::{JobError, after, array, span::Span, when};

/// The file as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct JobFile {
    name: Option<String>,
    project: Option<String>,
    command: Option<Words>,
    code: Option<String>,
    env: BTreeMap<String, String>,
    secrets: Texts,
    inputs: Inputs,
    image: Option<String>,
    terminal: Option<bool>,
    #[serde(deserialize_with = "era_api::reading::resources")]
    resources: BTreeMap<String, String>,
    replicas: Option<Spanned<ReplicasText>>,
    gpus: Option<u32>,
    time: Option<Spanned<String>>,
    from: Option<Spanned<String>>,
    by: Option<Spanned<String>>,
    value: Option<Spanned<Worth>>,
    most: Option<Credits>,
    overrun: Option<Overrun>,
    queue: Option<String>,
    preemptible: Option<bool>,
    release_when_idle: Option<bool>,
    priority: Option<i32>,
    attributes: Attributes,
    constraints: Constraints,
    array: Option<Spanned<String>>,
    after: Option<Spanned<Texts>>,
}

/// The draft that a file's text makes, for a reader at `now`; `path` is only named.
pub(crate) fn read(text: &str, path: &str, now: &Zoned) -> Result<Draft, JobError> {
    let options = serde_saphyr::Options { with_snippet: false, ..Default::default() };
    let file: JobFile =
        serde_saphyr::from_str_with_options(text, options).map_err(|e| in_file(text, path, &e))?;
    draft(file, path, now)
}

fn draft(file: JobFile, path: &str, now: &Zoned) -> Result<Draft, JobError> {
    let at = |location: Location, what: String| JobError::InFile {
        path: path.to_owned(),
        line: location.line(),
        column: location.column(),
        what,
    };
    let time = |text: Option<Spanned<String>>| {
        let read = |text: Spanned<String>| {
            when::read(&text.value, now).map_err(|e| at(text.referenced, e.to_string()))
        };
        text.map(read).transpose()
    };
    let span = |text: Spanned<String>| {
        Span::from_str(&text.value).map_err(|e| at(text.referenced, e.to_string()))
    };
    let mut afters = Vec::new();
    if let Some(after) = file.after {
        for (text, place) in &after.value.0 {
            let place = place.unwrap_or(after.referenced);
            afters.extend(after::read(text).map_err(|e| at(place, e.to_string()))?);
        }
    }
    let worth = |worth: Spanned<Worth>| match worth.value {
        Worth::Flat(Ok(credits)) => Ok(Value::Flat(credits)),
        Worth::Flat(Err(what)) => Err(at(worth.referenced, what)),
        Worth::Steps(steps) => {
            let steps: Result<Vec<_>, _> = steps
                .into_iter()
                .map(|step| match when::read(&step.by.value, now) {
                    Ok(by) => Ok(ValueStep { by, worth: step.worth }),
                    Err(error) => Err(at(step.by.referenced, error.to_string())),
                })
                .collect();
            Ok(Value::Steps(steps?))
        }
    };
    Ok(Draft {
        name: file.name,
        project: file.project,
        command: file.command.map(|words| words.0).unwrap_or_default(),
        script: None,
        code: file.code.map(|folder| match folder.as_str() {
            "none" | "false" | "" => Code::None,
            folder => Code::Folder(folder.into()),
        }),
        env: file.env,
        secrets: file.secrets.0.into_iter().map(|(text, _)| text).collect(),
        inputs: file.inputs.0.into_iter().map(|input| input.0).collect(),
        image: file.image,
        terminal: file.terminal,
        resources: file.resources,
        replicas: file
            .replicas
            .map(|text| text.value.0.map_err(|what| at(text.referenced, what)))
            .transpose()?,
        gpus: file.gpus,
        time: file.time.map(span).transpose()?,
        from: time(file.from)?,
        by: time(file.by)?,
        value: file.value.map(worth).transpose()?,
        most: file.most,
        overrun: file.overrun,
        queue: file.queue,
        preemptible: file.preemptible,
        release_when_idle: file.release_when_idle,
        priority: file.priority,
        attributes: file.attributes,
        constraints: file.constraints,
        array: file
            .array
            .map(|text| array::read(&text.value).map_err(|e| at(text.referenced, e.to_string())))
            .transpose()?,
        after: afters,
    })
}

/// The reader's error as ours: one sentence, its place, and what was meant.
fn in_file(text: &str, path: &str, error: &serde_saphyr::Error) -> JobError {
    let error = error.without_snippet();
    let sentence = error.to_string();
    // The reader writes the place behind its sentence; it stands in front of ours.
    let sentence = sentence.split(" at line ").next().unwrap_or_default();
    let read = error.location().map_or((1, 1), |at| (at.line().max(1), at.column().max(1)));
    let unknown = unknown_field(sentence);
    // For an unknown key the reader only knows the map that it is in.
    let (line, column) = unknown.as_ref().and_then(|(key, _)| place_of(text, key)).unwrap_or(read);
    let what = match (unknown, sentence.strip_prefix("invalid ")) {
        (Some((_, told)), _) => told,
        (None, Some("u32" | "i32" | "u64")) => "this is no whole number in its range".to_owned(),
        (None, _) => match sentence.strip_prefix("unexpected event: expected ") {
            Some("sequence start") => "a list belongs here, such as [this, that]".to_owned(),
            Some("mapping start") => "keys and values belong here, such as {key: value}".to_owned(),
            Some(wanted) if wanted.contains("scalar") => "a single value belongs here".to_owned(),
            _ => sentence.to_owned(),
        },
    };
    JobError::InFile { path: path.to_owned(), line, column, what }
}

/// Line and column of a key, each from 1.
fn place_of(text: &str, key: &str) -> Option<(u64, u64)> {
    for (line, content) in text.lines().enumerate() {
        for (at, _) in content.match_indices(key) {
            let before = content[..at].chars().next_back();
            let begins = before.is_none_or(|c| c.is_whitespace() || "{,\"'".contains(c));
            let after = content[at + key.len()..].trim_start_matches(['"', '\'']).trim_start();
            if begins && after.starts_with(':') {
                let column = content[..at].chars().count() + 1;
                return Some((line as u64 + 1, column as u64));
            }
        }
    }
    None
}

/// The key that serde's sentence is about, and the sentence shortened to what helps.
fn unknown_field(sentence: &str) -> Option<(String, String)> {
    let rest = sentence.strip_prefix("unknown field `")?;
    let (word, rest) = rest.split_once('`')?;
    let known = || rest.split('`').skip(1).step_by(2);
    let told = match nearest(word, known()) {
        Some(near) => format!("unknown key `{word}`: did you mean `{near}`?"),
        None => {
            let known = known().collect::<Vec<_>>().join(", ");
            format!("unknown key `{word}`: {known} are known")
        }
    };
    Some((word.to_owned(), told))
}

/// A command: a list of words, or a line for the shell.
#[derive(Debug)]
struct Words(Vec<String>);

/// What a job is worth, as it is written.
#[derive(Debug)]
enum Worth {
    /// What is no amount is told with its place later.
    Flat(Result<Credits, String>),
    Steps(Vec<WorthStep>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorthStep {
    by: Spanned<String>,
    worth: Credits,
}

/// Texts, each with its place; or one alone, whose place is that of the whole.
#[derive(Debug, Default)]
struct Texts(Vec<(String, Option<Location>)>);

/// Data sets, or one.
#[derive(Debug, Default)]
struct Inputs(Vec<Input>);

/// A data set, or one with its place.
#[derive(Debug)]
struct Input(WorkInput);

/// `4`, `2..8` or `{min: 2, max: 8}`; what is none of them is told with its place later.
#[derive(Debug)]
struct ReplicasText(Result<Replicas, String>);

/// A visitor for what may be a text or something else; `T` says what each becomes.
trait Either: Sized {
    const EXPECTED: &'static str;
    fn text(text: &str) -> Result<Self, String>;
    fn list<'de, A: SeqAccess<'de>>(_: A) -> Result<Self, A::Error> {
        Err(de::Error::custom(format!("not a list, but {}", Self::EXPECTED)))
    }
    fn map<'de, A: MapAccess<'de>>(_: A) -> Result<Self, A::Error> {
        Err(de::Error::custom(format!("not a map, but {}", Self::EXPECTED)))
    }
}

struct EitherVisitor<T>(PhantomData<T>);

impl<'de, T: Either> Visitor<'de> for EitherVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        T::text(text).map_err(E::custom)
    }
    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        T::text(&number.to_string()).map_err(E::custom)
    }
    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        T::text(&number.to_string()).map_err(E::custom)
    }
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        T::text(&number.to_string()).map_err(E::custom)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::list(list)
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::map(map)
    }
}

impl<'de, T: Either> DeserializeSeed<'de> for EitherVisitor<T> {
    type Value = T;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Reads any of these by its visitor.
macro_rules! either {
    ($($name:ident),*) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                EitherVisitor::<$name>(PhantomData).deserialize(deserializer)
            }
        }
    )*};
}
either!(Words, Worth, Texts, Inputs, Input, ReplicasText);

fn collected<'de, A: SeqAccess<'de>, T: Deserialize<'de>>(mut list: A) -> Result<Vec<T>, A::Error> {
    let mut items = Vec::new();
    while let Some(item) = list.next_element()? {
        items.push(item);
    }
    Ok(items)
}

impl Either for Words {
    const EXPECTED: &'static str = "a list of words, or a line for the shell";
    fn text(text: &str) -> Result<Words, String> {
        Ok(Words(["sh", "-c", text].map(str::to_owned).to_vec()))
    }
    fn list<'de, A: SeqAccess<'de>>(list: A) -> Result<Words, A::Error> {
        collected(list).map(Words)
    }
}

impl Either for Worth {
    const EXPECTED: &'static str = "an amount such as 30, or a list of {by: 18:00, worth: 30}";
    fn text(text: &str) -> Result<Worth, String> {
        let read: Result<Credits, era_api::credits::BadCredits> = text.parse();
        Ok(Worth::Flat(read.map_err(|e| e.to_string())))
    }
    fn list<'de, A: SeqAccess<'de>>(list: A) -> Result<Worth, A::Error> {
        collected(list).map(Worth::Steps)
    }
}

impl Either for Texts {
    const EXPECTED: &'static str = "a list, or one alone";
    fn text(text: &str) -> Result<Texts, String> {
        Ok(Texts(vec![(text.to_owned(), None)]))
    }
    fn list<'de, A: SeqAccess<'de>>(list: A) -> Result<Texts, A::Error> {
        let texts: Vec<Spanned<String>> = collected(list)?;
        Ok(Texts(texts.into_iter().map(|it| (it.value, Some(it.referenced))).collect()))
    }
}

impl Either for Inputs {
    const EXPECTED: &'static str = "a list of data sets, or one alone";
    fn text(text: &str) -> Result<Inputs, String> {
        Input::text(text).map(|one| Inputs(vec![one]))
    }
    fn list<'de, A: SeqAccess<'de>>(list: A) -> Result<Inputs, A::Error> {
        collected(list).map(Inputs)
    }
    fn map<'de, A: MapAccess<'de>>(map: A) -> Result<Inputs, A::Error> {
        Input::map(map).map(|one| Inputs(vec![one]))
    }
}

impl Either for Input {
    const EXPECTED: &'static str = "a data set's name, or {data: NAME, path: PLACE}";
    fn text(text: &str) -> Result<Input, String> {
        Ok(Input(super::flags::input(text)))
    }
    fn map<'de, A: MapAccess<'de>>(map: A) -> Result<Input, A::Error> {
        WorkInput::deserialize(de::value::MapAccessDeserializer::new(map)).map(Input)
    }
}

impl Either for ReplicasText {
    const EXPECTED: &'static str = "a number such as 4, or a range such as 2..8";
    fn text(text: &str) -> Result<ReplicasText, String> {
        Ok(ReplicasText(super::flags::replicas(text)))
    }
    fn map<'de, A: MapAccess<'de>>(map: A) -> Result<ReplicasText, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Range {
            min: u32,
            max: u32,
        }
        let Range { min, max } = Range::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(ReplicasText(Ok(Replicas::Range { min, max })))
    }
}

#[cfg(test)]
mod tests;
