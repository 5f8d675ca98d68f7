//! A job as flags, the same for every command that takes one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, FromArgMatches, ValueEnum};
use era_spec::{
    ArraySpec, Ask, AttributesSpec, ConstraintsSpec, Credits, JobSpec, OverrunSpec, Replicas,
    ResourcesSpec, SpanSpec, TopologySpec, ValueSpec, Work, after, when,
};
use jiff::Zoned;

use super::draft::{Code, Draft};
use super::{JobError, file, read_limited, read_small, script};
use crate::numbers;

/// What a job is and needs.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "The job")]
pub(crate) struct JobFlags {
    /// A YAML file that describes the job; flags count over it
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// What people call it
    #[arg(short, long)]
    name: Option<String>,
    /// What it is done for: spending is told by project
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// GPUs of each replica, such as 1, 0.5 or a100:2
    #[arg(short, long, value_name = "N")]
    gpu: Option<String>,
    /// Cores of each replica, such as 4 or 500m
    #[arg(short, long, value_name = "N")]
    cpu: Option<String>,
    /// Memory of each replica, such as 16Gi or 16GB
    #[arg(short, long, alias = "mem", value_name = "SIZE")]
    memory: Option<String>,
    /// Only GPUs of this model, such as h100
    #[arg(long, value_name = "MODEL")]
    gpu_model: Option<String>,
    /// Only GPUs with at least so much memory, such as 40Gi
    #[arg(long, value_name = "SIZE")]
    gpu_memory: Option<String>,
    /// A named device of each replica, such as fpga=1
    #[arg(long, value_name = "NAME=N")]
    device: Vec<String>,
    /// Replicas that start together: 4, or 2..8 for a job that may grow
    #[arg(short, long, value_name = "N|MIN..MAX")]
    replicas: Option<String>,
    /// A total of GPUs instead of replicas, split over nodes
    #[arg(long, value_name = "N")]
    gpus: Option<u32>,
    /// How long it runs at most: 2h30m, 45m, 90 (minutes), 2-12:00:00 [default: 1h]
    #[arg(short, long, value_name = "TIME")]
    time: Option<String>,
    /// Not before: now+2h, 18:00, tomorrow 6am, 2026-11-20T06:00
    #[arg(long, value_name = "WHEN")]
    from: Option<String>,
    /// Finished by: 18:00, tomorrow 6am, now+8h; a day alone is its end
    #[arg(long, value_name = "WHEN")]
    by: Option<String>,
    /// What it is worth, in credits: makes it a bid for a promise
    #[arg(long, value_name = "CREDITS")]
    value: Option<Credits>,
    /// The most that it may cost, in credits
    #[arg(long, value_name = "CREDITS")]
    most: Option<Credits>,
    /// Take the price, up to --most: makes it a bid for a promise
    #[arg(long)]
    accept_price: bool,
    /// What happens when it needs longer than it said
    #[arg(long, value_enum)]
    overrun: Option<OverrunName>,
    /// The queue that it waits in without a promise
    #[arg(short, long, value_name = "NAME")]
    queue: Option<String>,
    /// It may be stopped for others, with grace, and started again
    #[arg(long)]
    preemptible: bool,
    /// Idle GPUs may be taken back
    #[arg(long)]
    release_when_idle: bool,
    /// The owner's own ranking of waiting jobs
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    priority: Option<i32>,
    /// An environment variable
    #[arg(short, long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// A secret that it finds in its environment: see `era secret set`
    #[arg(long, value_name = "NAME")]
    secret: Vec<String>,
    /// A data set that it sees, read-only
    #[arg(short, long, value_name = "DATA[:PLACE]")]
    input: Vec<String>,
    /// The image that it runs in, where the executor has images
    #[arg(long, value_name = "NAME")]
    image: Option<String>,
    /// A terminal of its own, to which one can attach
    #[arg(long)]
    pty: bool,
    /// The folder that is uploaded and becomes the working folder
    #[arg(long, value_name = "FOLDER")]
    code: Option<PathBuf>,
    /// Upload no code
    #[arg(long, conflicts_with = "code")]
    no_code: bool,
    /// Many of the same: 0-99, 0-99:2, 0-99%10 (at most 10 at a time). An array waits in a queue:
    /// not with --value, --most, --by or --from
    #[arg(long, value_name = "INDICES")]
    array: Option<String>,
    /// After other jobs: 12, 12:ok, 12:any, by comma; the first job of an array stands for all of
    /// it. Such a job waits in a queue: not with --value, --most, --by or --from
    #[arg(long, value_name = "JOB[:ok|any]")]
    after: Vec<String>,
    #[command(flatten)]
    place: PlaceFlags,
    #[command(flatten)]
    facts: FactFlags,
    /// The command and its arguments, or a job's file (flags may follow it), or a script, with an
    /// #SBATCH header or without; `-` reads a script from standard input
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Where a job may run.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Where it may run")]
struct PlaceFlags {
    /// Only in this pool
    #[arg(long, value_name = "NAME")]
    pool: Option<String>,
    /// Only in this domain
    #[arg(long, value_name = "NAME")]
    domain: Option<String>,
    /// Only on nodes with this label
    #[arg(long, value_name = "NAME=VALUE")]
    label: Vec<String>,
    /// All replicas on one node, in one rack or in one domain
    #[arg(long, value_enum)]
    same: Option<TopologyName>,
    /// At most so many replicas on a node
    #[arg(long, value_name = "N")]
    per_node_max: Option<u32>,
    /// Spread replicas over nodes rather than pack them
    #[arg(long)]
    spread: bool,
}

/// Facts that policies and estimates may use.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Facts for policies and estimates")]
struct FactFlags {
    /// Such as vision or language
    #[arg(long, value_name = "NAME")]
    field: Option<String>,
    /// Such as pytorch
    #[arg(long, value_name = "NAME")]
    framework: Option<String>,
    /// Such as resnet50
    #[arg(long, value_name = "NAME")]
    network: Option<String>,
    /// Parameters of the network, in thousands
    #[arg(long, value_name = "N")]
    parameters_k: Option<u64>,
    /// Size of the data, in MiB
    #[arg(long, value_name = "N")]
    data_mib: Option<u64>,
}

/// What happens when a job needs longer than it said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OverrunName {
    /// It goes on at the market price while there is room and money
    Extend,
    /// It is told to stop one grace period before its promised end
    Stop,
}

/// How near to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TopologyName {
    /// One machine
    Node,
    /// One rack
    Rack,
    /// One domain
    Domain,
}

/// A draft, and what was read and is not used.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// All sources laid over each other.
    pub(crate) draft: Draft,
    /// Sentences for the user.
    pub(crate) notes: Vec<String>,
}

impl JobFlags {
    /// The draft that file, script and flags make together.
    pub(crate) fn written(&self, now: &Zoned) -> Result<Written, JobError> {
        let mut flags = self.draft(now)?;
        let mut written = Written::default();
        let mut script = None;
        match (&self.file, self.command.split_first()) {
            (None, Some((named, rest))) if is_yaml(Path::new(named)) => {
                flags.spec.work.command.clear();
                flags = after_file(rest)?.draft(now)?.over(flags);
                written.draft = read_file(Path::new(named), now)?;
            }
            (None, Some((named, rest))) if named == "-" || is_script(Path::new(named)) => {
                let (path, text) = script_text(named)?;
                let (draft, notes) = script::read(&text, &path, now)?;
                written = Written { draft, notes };
                flags.spec.work.command.clear();
                script = Some((path, text, rest));
            }
            (Some(path), _) => written.draft = read_file(path, now)?,
            (None, _) => {}
        }
        written.draft = flags.over(written.draft);
        if let Some((path, text, rest)) = script {
            script::run_along(&mut written.draft, &path, &text, rest);
        }
        let spec = &mut written.draft.spec;
        script::add_variables(spec);
        // Who says when it begins and not what it is worth asks for a promise at its price.
        spec.accept_price |= spec.ask.earliest.is_some() && spec.value.is_none();
        Ok(written)
    }

    fn draft(&self, now: &Zoned) -> Result<Draft, JobError> {
        let from = self.from.as_deref().map(|text| when::read(text, now)).transpose();
        let by = self.by.as_deref().map(|text| when::read_deadline(text, now)).transpose();
        let mut afters = Vec::new();
        for text in &self.after {
            afters.extend(after::read(text).map_err(|e| wrong("--after", e))?);
        }
        let array = self.array.as_deref().map(ArraySpec::from_str).transpose();
        let replicas = self.replicas.as_deref().map(Replicas::from_str).transpose();
        let span = self.time.as_deref().map(SpanSpec::from_str).transpose();
        let code = match (&self.code, self.no_code) {
            (_, true) => Some(Code::None),
            (Some(folder), _) => Some(Code::Folder(folder.clone())),
            (None, false) => None,
        };
        let spec = JobSpec {
            name: self.name.clone(),
            project: self.project.clone(),
            work: Work {
                command: self.command.clone(),
                code: None,
                env: pairs("--env", &self.env)?,
                secrets: self.secret.clone(),
                inputs: self.input.iter().map(|text| text.as_str().into()).collect(),
                image: self.image.clone(),
                terminal: self.pty,
            },
            ask: Ask {
                resources: self.resources()?,
                replicas: replicas.map_err(|e| wrong("--replicas", e))?,
                gpus: self.gpus,
                duration_s: span.map_err(|e| wrong("--time", e))?.map(|span| span.seconds),
                earliest: from.map_err(|e| wrong("--from", e))?,
                deadline: by.map_err(|e| wrong("--by", e))?,
                constraints: self.place.constraints()?,
            },
            value: self.value.map(ValueSpec::Flat),
            most: self.most,
            accept_price: self.accept_price,
            hold: None,
            overrun: self.overrun.map(|name| match name {
                OverrunName::Extend => OverrunSpec::Extend,
                OverrunName::Stop => OverrunSpec::Stop,
            }),
            queue: self.queue.clone(),
            preemptible: self.preemptible,
            release_when_idle: self.release_when_idle,
            priority: self.priority,
            attributes: self.facts.attributes(),
            array: array.map_err(|e| wrong("--array", e))?,
            after: afters,
        };
        Ok(Draft { spec, code, script: None })
    }

    fn resources(&self) -> Result<ResourcesSpec, JobError> {
        let devices = pairs("--device", &self.device)?;
        let mut resources: ResourcesSpec =
            devices.into_iter().map(|(name, count)| (name, count.into())).collect();
        let named = [
            ("gpu", &self.gpu),
            ("cpu", &self.cpu),
            ("memory", &self.memory),
            ("gpu.model", &self.gpu_model),
            ("gpu.memory", &self.gpu_memory),
        ];
        for (name, amount) in named {
            if let Some(amount) = amount {
                resources.insert(name.to_owned(), amount.clone().into());
            }
        }
        // `a100:2`, as others write it.
        if let Some((model, count)) = self.gpu.as_deref().and_then(|gpu| gpu.split_once(':')) {
            resources.insert("gpu".to_owned(), count.into());
            resources
                .entry("gpu.model".to_owned())
                .or_insert_with(|| model.to_ascii_lowercase().into());
        }
        Ok(resources)
    }
}

impl PlaceFlags {
    fn constraints(&self) -> Result<Option<ConstraintsSpec>, JobError> {
        let said = ConstraintsSpec {
            pool: self.pool.clone(),
            domain: self.domain.clone(),
            labels: pairs("--label", &self.label)?,
            same: self.same.map(|name| match name {
                TopologyName::Node => TopologySpec::Node,
                TopologyName::Rack => TopologySpec::Rack,
                TopologyName::Domain => TopologySpec::Domain,
            }),
            per_node_max: self.per_node_max,
            spread: self.spread,
        };
        Ok((said != ConstraintsSpec::default()).then_some(said))
    }
}

impl FactFlags {
    fn attributes(&self) -> Option<AttributesSpec> {
        let said = AttributesSpec {
            field: self.field.clone(),
            framework: self.framework.clone(),
            network: self.network.clone(),
            parameters_k: self.parameters_k,
            data_mib: self.data_mib,
        };
        (said != AttributesSpec::default()).then_some(said)
    }
}

fn wrong(flag: &'static str, what: impl std::fmt::Display) -> JobError {
    JobError::Flag { flag, what: what.to_string() }
}

fn read_file(path: &Path, now: &Zoned) -> Result<Draft, JobError> {
    file::read(&read_small(path)?, &path.display().to_string(), now)
}

fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "yaml" || e == "yml")
}

/// What stands behind a job's file: flags, which count over it.
fn after_file(words: &[String]) -> Result<JobFlags, JobError> {
    let wrong = |what: String| JobError::Flag { flag: "after the job's file", what };
    let command = clap::Command::new("job").no_binary_name(true).disable_help_flag(true);
    let command = numbers::taken(JobFlags::augment_args(command));
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    let refused = |error| wrong(first_line(&numbers::plainly(error, &words)));
    let matches = command.try_get_matches_from(&words).map_err(refused)?;
    let flags = JobFlags::from_arg_matches(&matches).map_err(refused)?;
    match flags.command.first() {
        None => Ok(flags),
        Some(word) => Err(wrong(format!("`{word}` is no flag: the file says what is run"))),
    }
}

/// What is wrong, without how all of it is used.
fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    let line = line.trim_start_matches("error: ");
    format!("{line} (flags that are not the job's own come before the file)")
}

/// A script's text and where it is: what standard input says is kept in a file for the while.
fn script_text(named: &str) -> Result<(PathBuf, String), JobError> {
    if named != "-" {
        return Ok((named.into(), read_small(Path::new(named))?));
    }
    let unreadable =
        |e: std::io::Error| JobError::Unreadable { path: named.to_owned(), why: e.to_string() };
    let text = read_limited(std::io::stdin(), "standard input")?;
    let folder = tempfile::Builder::new().prefix("era-").tempdir().map_err(unreadable)?;
    let path = folder.keep().join("script");
    std::fs::write(&path, &text).map_err(unreadable)?;
    Ok((path, text))
}

/// Whether a file begins as a script does, or is named like one.
fn is_script(path: &Path) -> bool {
    use std::io::Read;
    if !path.is_file() {
        return false;
    }
    let mut head = [0u8; 2];
    let begins = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    (begins.is_ok() && &head == b"#!") || path.extension().is_some_and(|e| e == "sh")
}

/// `NAME=VALUE` texts as a map.
fn pairs(flag: &'static str, texts: &[String]) -> Result<BTreeMap<String, String>, JobError> {
    let pair = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(wrong(flag, format!("`{text}` is no pair: write NAME=VALUE"))),
    };
    texts.iter().map(pair).collect()
}

#[cfg(test)]
mod tests;
