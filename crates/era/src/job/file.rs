//! A job as a YAML file. Mistakes are told with line and column; an unknown key with the nearest
//! one that is known.
//!
//! A key has the name and the form of the field of a [`JobSpec`], unless people write it in a form
//! of their own: those are listed here ([`JobFile`]).

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::sync::LazyLock;

use era_spec::credits::BadCredits;
use era_spec::plain;
use era_spec::when::{self, BadTime};
use era_spec::{
    ArraySpec, Ask, BadReplicas, Credits, JobSpec, Overlay, Replicas, ResourcesSpec, SpanSpec,
    ValueSpec, ValueStepSpec, Work, WorkInput, after,
};
use jiff::{Timestamp, Zoned};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde_saphyr::{Location, Spanned};

use super::JobError;
use super::draft::{Code, Draft};

/// Keys that are written in a form of their own.
const FORMS: [&str; 12] = [
    "command",
    "code",
    "secrets",
    "inputs",
    "resources",
    "replicas",
    "time",
    "from",
    "by",
    "value",
    "array",
    "after",
];
/// Fields that have another name here, or none.
const NOT_KEYS: [&str; 6] = ["work", "ask", "hold", "duration_s", "earliest", "deadline"];
/// All keys.
static KEYS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let fields = [JobSpec::FIELDS, Work::FIELDS, Ask::FIELDS].concat().into_iter();
    let plain = fields.filter(|name| !FORMS.contains(name) && !NOT_KEYS.contains(name));
    FORMS.into_iter().chain(plain).collect()
});

/// The file as it is written: what has a form of its own, and everything else.
#[derive(Debug, Default)]
struct JobFile {
    spec: JobSpec,
    code: Option<String>,
    replicas: Option<Spanned<ReplicasText>>,
    time: Option<Spanned<String>>,
    from: Option<Spanned<String>>,
    by: Option<Spanned<String>>,
    value: Option<Spanned<Worth>>,
    array: Option<Spanned<String>>,
    after: Option<Spanned<Texts>>,
}

impl<'de> Deserialize<'de> for JobFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<JobFile, D::Error> {
        deserializer.deserialize_map(JobFileVisitor)
    }
}

struct JobFileVisitor;

impl<'de> Visitor<'de> for JobFileVisitor {
    type Value = JobFile;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a job's keys and values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JobFile, A::Error> {
        let mut file = JobFile::default();
        while let Some(key) = map.next_key::<String>()? {
            let JobSpec { work, ask, .. } = &mut file.spec;
            match key.as_str() {
                "command" => {
                    work.command = map.next_value::<Option<Words>>()?.unwrap_or_default().0
                }
                "secrets" => work.secrets = map.next_value::<Texts>()?.texts(),
                "inputs" => work.inputs = map.next_value::<Inputs>()?.0,
                "resources" => ask.resources = map.next_value::<Amounts>()?.0,
                "code" => file.code = map.next_value()?,
                "replicas" => file.replicas = map.next_value()?,
                "time" => file.time = map.next_value()?,
                "from" => file.from = map.next_value()?,
                "by" => file.by = map.next_value()?,
                "value" => file.value = map.next_value()?,
                "array" => file.array = map.next_value()?,
                "after" => file.after = map.next_value()?,
                key => map.next_value_seed(Plain { key, spec: &mut file.spec })?,
            }
        }
        Ok(file)
    }
}

/// A key that is the field of its name.
struct Plain<'a> {
    key: &'a str,
    spec: &'a mut JobSpec,
}

impl<'de> DeserializeSeed<'de> for Plain<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        let Plain { key, spec } = self;
        if !KEYS.contains(&key) {
            return Err(de::Error::unknown_field(key, &KEYS));
        }
        let field = MapAccessDeserializer::new(Field { key, value: Some(value) });
        if Work::FIELDS.contains(&key) {
            spec.work = Work::deserialize(field)?.over(std::mem::take(&mut spec.work));
        } else if Ask::FIELDS.contains(&key) {
            spec.ask = Ask::deserialize(field)?.over(std::mem::take(&mut spec.ask));
        } else {
            *spec = JobSpec::deserialize(field)?.over(std::mem::take(spec));
        }
        Ok(())
    }
}

/// A struct of which one field is said.
struct Field<'a, D> {
    key: &'a str,
    value: Option<D>,
}

impl<'de, D: Deserializer<'de>> MapAccess<'de> for Field<'_, D> {
    type Error = D::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, D::Error> {
        let key = self.value.as_ref().map(|_| self.key.into_deserializer());
        key.map(|key| seed.deserialize(key)).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, D::Error> {
        let value = self.value.take();
        value.map_or(Err(de::Error::custom("a value is asked for twice")), |value| {
            seed.deserialize(value)
        })
    }
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
    type Reading = fn(&str, &Zoned) -> Result<Timestamp, BadTime>;
    let time = |text: Option<Spanned<String>>, read: Reading| {
        let read = |text: Spanned<String>| {
            read(&text.value, now).map_err(|e| at(text.referenced, e.to_string()))
        };
        text.map(read).transpose()
    };
    let span = |text: Spanned<String>| {
        SpanSpec::from_str(&text.value).map_err(|e| at(text.referenced, e.to_string()))
    };
    let array = |text: Spanned<String>| {
        ArraySpec::from_str(&text.value).map_err(|e| at(text.referenced, e.to_string()))
    };
    let replicas = |text: Spanned<ReplicasText>| text.value.0.map_err(|e| at(text.referenced, e));
    let worth = |worth: Spanned<Worth>| match worth.value {
        Worth::Flat(Ok(credits)) => Ok(ValueSpec::Flat(credits)),
        Worth::Flat(Err(what)) => Err(at(worth.referenced, what)),
        Worth::Steps(steps) => {
            let steps: Result<Vec<_>, _> = steps
                .into_iter()
                .map(|step| match when::read_deadline(&step.by.value, now) {
                    Ok(by) => Ok(ValueStepSpec { by, worth: step.worth }),
                    Err(error) => Err(at(step.by.referenced, error.to_string())),
                })
                .collect();
            Ok(ValueSpec::Steps(steps?))
        }
    };
    let mut spec = file.spec;
    for (text, place) in file.after.iter().flat_map(|after| &after.value.0) {
        let place = place.or(file.after.as_ref().map(|after| after.referenced));
        let read = after::read(text);
        spec.after.extend(read.map_err(|e| at(place.unwrap_or(Location::UNKNOWN), e.to_string()))?);
    }
    spec.ask.replicas = file.replicas.map(replicas).transpose()?;
    spec.ask.duration_s = file.time.map(span).transpose()?.map(|span| span.seconds);
    spec.ask.earliest = time(file.from, when::read)?;
    spec.ask.deadline = time(file.by, when::read_deadline)?;
    spec.value = file.value.map(worth).transpose()?;
    spec.array = file.array.map(array).transpose()?;
    let code = file.code.map(|folder| match folder.as_str() {
        "none" | "false" | "" => Code::None,
        folder => Code::Folder(folder.into()),
    });
    Ok(Draft { spec, code, script: None })
}

/// The reader's error as ours: one sentence, its place, and what was meant.
fn in_file(text: &str, path: &str, error: &serde_saphyr::Error) -> JobError {
    let error = error.without_snippet();
    let read = error.location().map(|at| (at.line(), at.column()));
    let plain::Misread { line, column, what } = plain::misread(text, &error.to_string(), read);
    JobError::InFile { path: path.to_owned(), line, column, what }
}

/// A command: a list of words, or a line for the shell.
#[derive(Debug, Default)]
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

impl Texts {
    fn texts(self) -> Vec<String> {
        self.0.into_iter().map(|(text, _)| text).collect()
    }
}

/// Amounts by resource, as they are written.
struct Amounts(ResourcesSpec);

impl<'de> Deserialize<'de> for Amounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Amounts, D::Error> {
        let texts: BTreeMap<String, String> = era_spec::reading::resources(deserializer)?;
        Ok(Amounts(texts.into_iter().map(|(name, text)| (name, text.into())).collect()))
    }
}

/// Data sets, or one.
#[derive(Debug, Default)]
struct Inputs(Vec<WorkInput>);

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
        let read: Result<Credits, BadCredits> = text.parse();
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
        Input::text(text).map(|one| Inputs(vec![one.0]))
    }
    fn list<'de, A: SeqAccess<'de>>(list: A) -> Result<Inputs, A::Error> {
        let inputs: Vec<Input> = collected(list)?;
        Ok(Inputs(inputs.into_iter().map(|input| input.0).collect()))
    }
    fn map<'de, A: MapAccess<'de>>(map: A) -> Result<Inputs, A::Error> {
        Input::map(map).map(|one| Inputs(vec![one.0]))
    }
}

impl Either for Input {
    const EXPECTED: &'static str = "a data set's name, or {data: NAME, path: PLACE}";
    fn text(text: &str) -> Result<Input, String> {
        Ok(Input(text.into()))
    }
    fn map<'de, A: MapAccess<'de>>(map: A) -> Result<Input, A::Error> {
        WorkInput::deserialize(MapAccessDeserializer::new(map)).map(Input)
    }
}

impl Either for ReplicasText {
    const EXPECTED: &'static str = "a number such as 4, or a range such as 2..8";
    fn text(text: &str) -> Result<ReplicasText, String> {
        Ok(ReplicasText(text.parse().map_err(|e: BadReplicas| e.to_string())))
    }
    fn map<'de, A: MapAccess<'de>>(map: A) -> Result<ReplicasText, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Range {
            min: u32,
            max: u32,
        }
        let Range { min, max } = Range::deserialize(MapAccessDeserializer::new(map))?;
        Ok(ReplicasText(Ok(Replicas::Range { min, max })))
    }
}

#[cfg(test)]
mod tests;
