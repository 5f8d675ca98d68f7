//! The `#SBATCH` header of an existing Slurm script, as a draft. What has no meaning here is
//! named, not refused: the script should run as it is.

use std::collections::BTreeMap;
use std::path::Path;

use era_spec::{
    ArraySpec, Ask, ConstraintsSpec, JobSpec, Replicas, ResourcesSpec, SpanSpec, TopologySpec,
    Work, after, when,
};
use jiff::Zoned;

use super::JobError;
use super::draft::{Code, Draft, Script};

/// Options that say nothing that ERA needs: logs are kept, the owner is who submits.
const WITHOUT_MEANING: [&str; 11] = [
    "output",
    "error",
    "mail-type",
    "mail-user",
    "account",
    "qos",
    "open-mode",
    "input",
    "comment",
    "get-user-env",
    "no-requeue",
];

/// One-letter options by their long names.
const SHORT: [(char, &str); 20] = [
    ('q', "qos"),
    ('i', "input"),
    ('C', "constraint"),
    ('w', "nodelist"),
    ('x', "exclude"),
    ('H', "hold"),
    ('J', "job-name"),
    ('G', "gpus"),
    ('t', "time"),
    ('c', "cpus-per-task"),
    ('a', "array"),
    ('d', "dependency"),
    ('N', "nodes"),
    ('n', "ntasks"),
    ('p', "partition"),
    ('b', "begin"),
    ('o', "output"),
    ('e', "error"),
    ('A', "account"),
    ('D', "chdir"),
];

/// What a header says, by option; the number is its line.
type Options = BTreeMap<String, (usize, String)>;

/// The draft of a script's header, and what of it is not used.
pub(crate) fn read(text: &str, path: &Path, now: &Zoned) -> Result<(Draft, Vec<String>), JobError> {
    let named = path.display().to_string();
    let options = options(text);
    let of_slurm = !options.is_empty();
    let mut reading = Reading { path: named, now, options, notes: Vec::new() };
    let mut draft = reading.draft()?;
    draft.code.get_or_insert_with(|| Code::Folder(".".into()));
    reading.note_what_is_left();
    if of_slurm {
        draft.spec.work.env.insert(CLUSTER.to_owned(), "era".to_owned());
        if uses_srun(text) {
            let path = &reading.path;
            let note =
                format!("{path}: srun is not known here: each replica runs the whole script");
            reading.notes.push(note);
        }
    }
    Ok((draft, reading.notes))
}

/// The variable by which a task is known to want what Slurm tells a task; what is known of a task
/// only when it starts is added there (`era_cloud`).
const CLUSTER: &str = "SLURM_CLUSTER_NAME";

/// Adds what Slurm tells the tasks of a script and only the whole of the job says: to be called
/// once flags were laid over the header.
pub(crate) fn add_variables(spec: &mut JobSpec) {
    let env = &mut spec.work.env;
    if !env.contains_key(CLUSTER) {
        return;
    }
    let mut add = |name: &str, value: String| {
        env.entry(name.to_owned()).or_insert(value);
    };
    if let Some(array) = &spec.array {
        let last = array.count().map_or(array.to, |count| array.from + (count - 1) * array.step);
        add("SLURM_ARRAY_TASK_MIN", array.from.to_string());
        add("SLURM_ARRAY_TASK_MAX", last.to_string());
        add("SLURM_ARRAY_TASK_STEP", array.step.to_string());
    }
    if let Some(queue) = &spec.queue {
        add("SLURM_JOB_PARTITION", queue.clone());
    }
}

/// Whether a line of the script begins with `srun`.
fn uses_srun(text: &str) -> bool {
    text.lines().any(|line| line.split_whitespace().next() == Some("srun"))
}

/// Where a script lies in the code if it does not lie in the folder that is sent.
const SPOOL: &str = ".era";

/// Makes a job run a script, which goes along wherever it lies: under its own name where that is in
/// the folder that is sent, beside it otherwise. To be called once it is known which folder that is.
pub(crate) fn run_along(draft: &mut Draft, path: &Path, text: &str, arguments: &[String]) {
    let within = match &draft.code {
        Some(Code::Folder(folder)) => inside(path, folder),
        Some(Code::None) | None => None,
    };
    let at = match within {
        Some(at) => at,
        None => {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("script");
            format!("{SPOOL}/{name}")
        }
    };
    let words = &mut draft.spec.work.command;
    *words = command(text, &at);
    words.extend_from_slice(arguments);
    draft.script = Some(Script { file: path.to_owned(), at });
}

/// The way from a folder to a file in it, as it is written in a job's code.
fn inside(path: &Path, folder: &Path) -> Option<String> {
    let (path, folder) = (path.canonicalize().ok()?, folder.canonicalize().ok()?);
    let parts: Option<Vec<&str>> =
        path.strip_prefix(folder).ok()?.iter().map(|part| part.to_str()).collect();
    parts.map(|parts| parts.join("/"))
}

/// How a script is run: by what its first line says, else by the shell.
fn command(text: &str, at: &str) -> Vec<String> {
    let first = text.lines().next().unwrap_or_default();
    let mut words: Vec<String> = match first.strip_prefix("#!") {
        Some(line) => line.split_whitespace().map(str::to_owned).collect(),
        None => Vec::new(),
    };
    if words.is_empty() {
        words.push("sh".to_owned());
    }
    words.push(at.to_owned());
    words
}

/// The options of a header. It ends with the first line that is neither comment nor empty.
fn options(text: &str) -> Options {
    let mut options = Options::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        let Some(rest) = line.strip_prefix("#SBATCH") else {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            break;
        };
        let mut words = words(rest).into_iter().peekable();
        while let Some(word) = words.next() {
            let (name, value) = match word.strip_prefix("--") {
                Some(long) => match long.split_once('=') {
                    Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                    None => (long.to_owned(), None),
                },
                None => short(&word),
            };
            let value = value.or_else(|| words.next_if(|next| !next.starts_with('-')));
            options.insert(name, (at + 1, value.unwrap_or_default()));
        }
    }
    options
}

/// The words of a line, as a shell would split it; what follows a lone `#` is a remark.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c == '#' && word.is_none() => break,
            None if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

fn short(word: &str) -> (String, Option<String>) {
    let mut letters = word.trim_start_matches('-').chars();
    let letter = letters.next().unwrap_or_default();
    let rest = letters.as_str();
    let name = SHORT.iter().find(|(short, _)| *short == letter);
    let name = name.map_or_else(|| word.to_owned(), |(_, long)| (*long).to_owned());
    (name, (!rest.is_empty()).then(|| rest.trim_start_matches('=').to_owned()))
}

struct Reading<'a> {
    path: String,
    now: &'a Zoned,
    options: Options,
    notes: Vec<String>,
}

impl Reading<'_> {
    fn take(&mut self, name: &str) -> Option<(usize, String)> {
        self.options.remove(name)
    }

    fn text(&mut self, name: &str) -> Option<String> {
        self.take(name).map(|(_, value)| value)
    }

    fn wrong(&self, line: usize, what: impl std::fmt::Display) -> JobError {
        JobError::InScript { path: self.path.clone(), line, what: what.to_string() }
    }

    /// An option read by `read`.
    fn read<T, E: std::fmt::Display>(
        &mut self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, JobError> {
        match self.take(name) {
            Some((line, value)) => match read(&value) {
                Ok(value) => Ok(Some(value)),
                Err(error) => Err(self.wrong(line, format!("--{name}: {error}"))),
            },
            None => Ok(None),
        }
    }

    fn number(&mut self, name: &str) -> Result<Option<u32>, JobError> {
        self.read(name, |text| match text.parse::<u32>() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(format!("`{text}` is no number above 0")),
        })
    }

    fn draft(&mut self) -> Result<Draft, JobError> {
        let now = self.now.clone();
        let time = |text: &str| {
            // A number alone is of seconds there.
            let seconds = text.strip_prefix("now+").and_then(|n| n.parse::<u32>().ok());
            match seconds {
                Some(seconds) => when::read(&format!("now+{seconds}s"), &now),
                None => when::read(&text.replacen('T', " ", 1), &now),
            }
        };
        for (name, unlimited, instead) in [
            ("time", "UNLIMITED", "say how long"),
            ("time", "INFINITE", "say how long"),
            ("mem", "0", "say how much it needs"),
        ] {
            if self.options.get(name).is_some_and(|(_, value)| value == unlimited)
                && let Some((line, value)) = self.take(name)
            {
                self.note(line, &format!("--{name}={value} is not used: {instead}"));
            }
        }
        let mut spec = JobSpec {
            name: self.text("job-name"),
            queue: self.text("partition"),
            work: Work { env: self.exported(), ..Work::default() },
            ask: Ask {
                duration_s: self.read("time", str::parse::<SpanSpec>)?.map(|span| span.seconds),
                earliest: self.read("begin", time)?,
                deadline: self.read("deadline", time)?,
                ..Ask::default()
            },
            array: self.read("array", str::parse::<ArraySpec>)?,
            after: self.read("dependency", after::read)?.unwrap_or_default(),
            preemptible: self.take("requeue").is_some(),
            ..JobSpec::default()
        };
        if (spec.ask.earliest.is_some() || spec.ask.deadline.is_some())
            && let Some(queue) = spec.queue.take()
        {
            self.notes.push(format!("partition {queue} is not used: a promise has no queue"));
        }
        self.resources(&mut spec.ask)?;
        let code = self.text("chdir").map(|folder| Code::Folder(folder.into()));
        Ok(Draft { spec, code, script: None })
    }

    fn note(&mut self, line: usize, what: &str) {
        self.notes.push(format!("{}:{line}: #SBATCH {what}", self.path));
    }

    /// The variables that a script sets for itself.
    fn exported(&mut self) -> BTreeMap<String, String> {
        let mut env = BTreeMap::new();
        let Some((line, value)) = self.take("export") else { return env };
        for item in value.split(',').filter(|item| !["", "ALL", "NONE", "NIL"].contains(item)) {
            match item.split_once('=') {
                Some((name, value)) => drop(env.insert(name.to_owned(), value.to_owned())),
                None => {
                    self.note(line, &format!("--export: {item} is not taken from here: use --env"));
                }
            }
        }
        env
    }

    /// `4`, or the least of `2-4`.
    fn nodes(&mut self) -> Result<Option<u32>, JobError> {
        if let Some((line, value)) = self.options.get("nodes").cloned()
            && let Some((least, _)) = value.split_once('-')
        {
            self.note(line, &format!("--nodes={value}: {least} are asked for"));
            self.options.insert("nodes".to_owned(), (line, least.to_owned()));
        }
        self.number("nodes")
    }

    /// Tasks become replicas; what Slurm counts for each node is divided among those of a node.
    fn resources(&mut self, ask: &mut Ask) -> Result<(), JobError> {
        let nodes = self.nodes()?;
        let tasks = self.number("ntasks")?;
        let per_node = self.number("ntasks-per-node")?;
        let (replicas, per_node) = match (nodes, tasks, per_node) {
            (_, None, None) => (nodes.unwrap_or(1), 1),
            (nodes, _, Some(per_node)) => (nodes.unwrap_or(1).saturating_mul(per_node), per_node),
            (Some(nodes), Some(tasks), None) => (tasks, tasks.div_ceil(nodes)),
            (None, Some(tasks), None) => (tasks, tasks),
        };
        if replicas > 1 {
            ask.replicas = Some(Replicas::Fixed(replicas));
            ask.constraints = Some(match per_node == replicas {
                true => {
                    ConstraintsSpec { same: Some(TopologySpec::Node), ..ConstraintsSpec::default() }
                }
                false => {
                    ConstraintsSpec { per_node_max: Some(per_node), ..ConstraintsSpec::default() }
                }
            });
        }
        self.gpus(ask, per_node)?;
        let gpus = ask.resources.get("gpu").and_then(|gpus| gpus.to_string().parse::<u32>().ok());
        let gpus = gpus.or(ask.gpus.map(|_| 1)).unwrap_or(1);
        let of_gpu = self.number("cpus-per-gpu")?.map(|cores| cores.saturating_mul(gpus));
        let cores = self.number("cpus-per-task")?.or(of_gpu);
        let resources = &mut ask.resources;
        if let Some(cores) = cores {
            resources.insert("cpu".to_owned(), cores.to_string().into());
        }
        self.memory(resources, per_node, cores.unwrap_or(1), gpus)
    }

    fn memory(
        &mut self,
        resources: &mut ResourcesSpec,
        per_node: u32,
        cores: u32,
        gpus: u32,
    ) -> Result<(), JobError> {
        let of_node = self.read("mem", mebibytes)?.map(|of_node| of_node / u64::from(per_node));
        let of_core = self.read("mem-per-cpu", mebibytes)?;
        let of_gpu = self.read("mem-per-gpu", mebibytes)?;
        let mebibytes = of_node
            .or(of_core.map(|of_core| of_core.saturating_mul(u64::from(cores))))
            .or(of_gpu.map(|of_gpu| of_gpu.saturating_mul(u64::from(gpus))));
        if let Some(mebibytes) = mebibytes {
            let text = match mebibytes % 1024 {
                0 => format!("{}Gi", mebibytes / 1024),
                _ => format!("{mebibytes}Mi"),
            };
            resources.insert("memory".to_owned(), text.into());
        }
        Ok(())
    }

    fn gpus(&mut self, ask: &mut Ask, per_node: u32) -> Result<(), JobError> {
        let Gres { gpus: named, devices } = self.read("gres", gres)?.unwrap_or_default();
        for (name, count) in devices {
            let each = self.share(count, per_node, &name)?;
            self.notes.push(format!("{}: {name} is asked for as a device of that name", self.path));
            ask.resources.insert(name, each.to_string().into());
        }
        let of_node = match named {
            Some(gpus) => Some(gpus),
            None => self.read("gpus-per-node", gpus)?,
        };
        let of_task = match of_node {
            Some((count, model)) => Some((self.share(count, per_node, "GPUs")?, model)),
            None => self.read("gpus-per-task", gpus)?,
        };
        let total = self.read("gpus", gpus)?;
        if let Some((count, model)) = of_task {
            ask.resources.insert("gpu".to_owned(), count.to_string().into());
            ask.resources.extend(model.map(|model| ("gpu.model".to_owned(), model.into())));
        } else if let Some((count, model)) = total {
            ask.resources.extend(model.map(|model| ("gpu.model".to_owned(), model.into())));
            if ask.replicas.is_none() {
                ask.gpus = Some(count);
            } else if let Some(Replicas::Fixed(replicas)) = ask.replicas {
                ask.resources.insert("gpu".to_owned(), count.div_ceil(replicas).to_string().into());
            }
        }
        Ok(())
    }

    /// What each task of a node has of what the node is asked for.
    fn share(&self, count: u32, per_node: u32, what: &str) -> Result<u32, JobError> {
        if per_node > 0 && count.is_multiple_of(per_node) {
            return Ok(count / per_node);
        }
        let what = format!("{count} {what} of a node cannot be divided by {per_node} tasks");
        Err(JobError::Contradiction(format!("{}: {what}", self.path)))
    }

    fn note_what_is_left(&mut self) {
        let left = std::mem::take(&mut self.options);
        for (name, (line, _)) in left {
            if !WITHOUT_MEANING.contains(&name.as_str()) {
                let dashes = if name.starts_with('-') { "" } else { "--" };
                self.note(line, &format!("{dashes}{name} is not used"));
            }
        }
    }
}

/// What of a node's generic resources is asked for: GPUs, and devices by name.
#[derive(Debug, Default, PartialEq, Eq)]
struct Gres {
    gpus: Option<(u32, Option<String>)>,
    devices: BTreeMap<String, u32>,
}

/// `gpu:2`, `gpu:a100:2`, `gpu`, `fpga:1`, by comma; `none` asks for nothing.
fn gres(text: &str) -> Result<Gres, String> {
    let mut read = Gres::default();
    if text == "none" {
        return Ok(read);
    }
    for item in text.split(',') {
        // What a device may be bound to, such as `(S:0)`, is the platform's to choose.
        let item = item.trim().split('(').next().unwrap_or_default();
        let (name, rest) = item.split_once(':').unwrap_or((item, "1"));
        if name == "gpu" {
            if read.gpus.replace(gpus(rest)?).is_some() {
                return Err(format!("`{text}` asks for two kinds of GPUs: a job has one kind"));
            }
            continue;
        }
        let count = rest.parse::<u32>().ok().filter(|count| *count > 0);
        let named = !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
            && !["cpu", "memory"].contains(&name);
        match count.filter(|_| named) {
            Some(count) if !read.devices.contains_key(name) => {
                read.devices.insert(name.to_owned(), count);
            }
            _ => return Err(format!("`{item}` is no device: write gpu:2, gpu:a100:2 or fpga:1")),
        }
    }
    Ok(read)
}

/// `2`, `a100:2`, `a100`.
fn gpus(text: &str) -> Result<(u32, Option<String>), String> {
    let text = text.split('(').next().unwrap_or_default();
    let (model, count) = match text.rsplit_once(':') {
        Some((model, count)) => (Some(model.to_ascii_lowercase()), count),
        None if text.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            (Some(text.to_ascii_lowercase()), "1")
        }
        None => (None, text),
    };
    match count.parse::<u32>() {
        Ok(count) if count > 0 => Ok((count, model)),
        _ => Err(format!("`{text}` is no number of GPUs: write 2 or a100:2")),
    }
}

/// Memory as Slurm writes it, in MiB: `4000`, `16G`, `512M`.
fn mebibytes(text: &str) -> Result<u64, String> {
    let bad = || format!("`{text}` is no amount of memory: write 16G or 4000M");
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let amount: u64 = digits.parse().ok().filter(|n| (1..1 << 40).contains(n)).ok_or_else(bad)?;
    match unit.to_ascii_uppercase().trim_end_matches('B').trim_end_matches('I') {
        "K" => Ok(amount.div_ceil(1024)),
        "" | "M" => Ok(amount),
        "G" => Ok(amount << 10),
        "T" => Ok(amount << 20),
        _ => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<(Draft, Vec<String>), JobError> {
        let now = "2026-11-15T14:30:00+01:00[Europe/Berlin]".parse().unwrap();
        read(text, Path::new("train.sh"), &now)
    }

    fn amount(draft: &Draft, name: &str) -> String {
        draft.spec.ask.resources[name].to_string()
    }

    #[test]
    fn a_script_of_yesterday_is_understood() {
        let text = "#!/bin/bash\n#SBATCH --job-name=resnet\n#SBATCH --gres=gpu:a100:2\n\
                    #SBATCH --time 1-12:00:00 # a day and a half\n#SBATCH --mem=64G -c 8\n\
                    #SBATCH --array=0-9%2\n#SBATCH --dependency=afterok:12\n#SBATCH -o out.txt\n\
                    #SBATCH --mail-type=END\n#SBATCH --exclusive\n\nsrun python train.py\n\
                    #SBATCH --gres=gpu:9\n";
        let (draft, notes) = read_text(text).unwrap();
        insta::assert_json_snapshot!((draft.spec, notes));
    }

    #[test]
    fn what_slurm_counts_by_node_is_divided_among_its_tasks() {
        let text = "#!/bin/bash\n#SBATCH -N 2\n#SBATCH --ntasks-per-node=4\n\
                    #SBATCH --gres=gpu:8\n#SBATCH --mem=256G\n";
        let (draft, _) = read_text(text).unwrap();
        assert_eq!(draft.spec.ask.replicas, Some(Replicas::Fixed(8)));
        assert_eq!(draft.spec.ask.constraints.as_ref().unwrap().per_node_max, Some(4));
        assert_eq!(amount(&draft, "gpu"), "2");
        assert_eq!(amount(&draft, "memory"), "64Gi");
    }

    #[test]
    fn devices_beside_gpus_are_asked_for_by_name() {
        let header = |gres: &str| format!("#!/bin/sh\n#SBATCH -n2\n#SBATCH --gres={gres}\n");
        let (draft, _) = read_text(&header("gpu:2,nvme:4")).unwrap();
        assert_eq!(["gpu", "nvme"].map(|name| amount(&draft, name)), ["1", "2"]);
        assert!(
            !draft.spec.ask.resources.contains_key("gpu.model"),
            "{:?}",
            draft.spec.ask.resources
        );
        let (draft, _) = read_text(&header("none")).unwrap();
        assert!(draft.spec.ask.resources.is_empty(), "{:?}", draft.spec.ask.resources);
        assert!(read_text(&header("gpu:2,nvme:3")).is_err(), "three cannot be divided by two");
    }

    #[test]
    fn tasks_without_nodes_stay_together() {
        let (draft, _) = read_text("#!/bin/sh\n#SBATCH -n4\n#SBATCH --mem-per-cpu=500\n").unwrap();
        assert_eq!(draft.spec.ask.replicas, Some(Replicas::Fixed(4)));
        assert_eq!(draft.spec.ask.constraints.as_ref().unwrap().same, Some(TopologySpec::Node));
        assert_eq!(amount(&draft, "memory"), "500Mi");
    }

    #[test]
    fn tasks_of_a_script_with_a_header_find_what_slurm_would_tell_them() {
        let text = "#!/bin/sh\n#SBATCH --array=1-8:3\n#SBATCH -p night\n";
        let (mut draft, _) = read_text(text).unwrap();
        draft.spec.work.env.insert("SLURM_ARRAY_TASK_STEP".to_owned(), "mine".to_owned());
        add_variables(&mut draft.spec);
        for (name, value) in [
            ("SLURM_CLUSTER_NAME", "era"),
            ("SLURM_ARRAY_TASK_MIN", "1"),
            ("SLURM_ARRAY_TASK_MAX", "7"),
            ("SLURM_ARRAY_TASK_STEP", "mine"),
            ("SLURM_JOB_PARTITION", "night"),
        ] {
            assert_eq!(draft.spec.work.env[name], value, "{name}");
        }
        let (mut plain, _) = read_text("#!/bin/sh\nsrun true\n").unwrap();
        add_variables(&mut plain.spec);
        assert!(
            plain.spec.work.env.is_empty(),
            "a script without a header is no script of Slurm's"
        );
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (line, expected) in [
            ("--time=soon", "train.sh:2: --time: `soon` is no length of time"),
            ("--mem=lots", "train.sh:2: --mem: `lots` is no amount of memory"),
            ("--gres=fpga:some", "train.sh:2: --gres: `fpga:some` is no device"),
            ("--gres=gpu:2,", "train.sh:2: --gres: `` is no device"),
            ("--gres=gpu:a100:1,gpu:v100:1", "train.sh:2: --gres: `gpu:a100:1,gpu:v100:1` asks"),
            ("--array=1,2,4-7", "train.sh:2: --array: the indices `1,2,4-7` are not evenly"),
            ("--dependency=singleton", "train.sh:2: --dependency: `singleton` is a kind of"),
            ("--array=9-1", "train.sh:2: --array: `9-1` is no array"),
            ("--nodes=0", "train.sh:2: --nodes: `0` is no number above 0"),
        ] {
            let error = read_text(&format!("#!/bin/sh\n#SBATCH {line}\n")).unwrap_err();
            assert!(error.to_string().starts_with(expected), "{error}");
        }
    }

    #[test]
    fn a_script_is_run_by_what_its_first_line_says() {
        let python = command("#!/usr/bin/env python3\n", "a.sh");
        assert_eq!(python, ["/usr/bin/env", "python3", "a.sh"]);
        assert_eq!(command("echo hi\n", "a.sh"), ["sh", "a.sh"]);
    }

    #[test]
    fn a_script_goes_along_wherever_it_lies() {
        let folder = tempfile::tempdir().unwrap();
        let (sub, beside) = (folder.path().join("sub"), folder.path().join("t.sh"));
        std::fs::create_dir(&sub).unwrap();
        std::fs::write(&beside, "#!/bin/sh\n").unwrap();
        std::fs::write(sub.join("u.sh"), "#!/bin/sh\n").unwrap();
        let run = |path: &Path, code: Code| {
            let mut draft = Draft { code: Some(code), ..Draft::default() };
            run_along(&mut draft, path, "#!/bin/sh\n", &["--fast".to_owned()]);
            assert_eq!(draft.spec.work.command[2], "--fast");
            assert_eq!(
                draft.script.map(|script| script.at).as_ref(),
                Some(&draft.spec.work.command[1])
            );
            draft.spec.work.command[1].clone()
        };
        let whole = || Code::Folder(folder.path().to_owned());
        assert_eq!(run(&beside, whole()), "t.sh");
        assert_eq!(run(&sub.join("u.sh"), whole()), "sub/u.sh");
        assert_eq!(run(&sub.join("../t.sh"), whole()), "t.sh");
        assert_eq!(run(&beside, Code::Folder(sub.clone())), ".era/t.sh", "not in what is sent");
        assert_eq!(run(&beside, Code::None), ".era/t.sh");
    }

    #[test]
    fn what_slurm_writes_in_its_own_way_is_read_so() {
        let read = |line: &str| read_text(&format!("#!/bin/sh\n#SBATCH {line}\n")).unwrap();
        let begin = |line: &str| read(line).0.spec.ask.earliest.unwrap().to_string();
        assert_eq!(begin("--begin=now+60"), "2026-11-15T13:31:00Z", "seconds");
        assert_eq!(begin("--begin=now+1hour"), "2026-11-15T14:30:00Z");
        assert_eq!(read("--job-name=\"my job\"").0.spec.name.as_deref(), Some("my job"));
        assert_eq!(amount(&read("-J 'my job' -c 2").0, "cpu"), "2");
        let (draft, notes) = read("--export=ALL,SEED=7,HOME");
        assert_eq!(draft.spec.work.env["SEED"], "7");
        assert_eq!(notes, ["train.sh:2: #SBATCH --export: HOME is not taken from here: use --env"]);
        for (line, note) in [
            ("--mem=0", "train.sh:2: #SBATCH --mem=0 is not used: say how much it needs"),
            ("--time=UNLIMITED", "train.sh:2: #SBATCH --time=UNLIMITED is not used: say how long"),
            ("-q high --exclusive", "train.sh:2: #SBATCH --exclusive is not used"),
            ("-Z 1", "train.sh:2: #SBATCH -Z is not used"),
        ] {
            let (draft, notes) = read(line);
            assert_eq!(notes, [note]);
            assert!(draft.spec.ask.resources.is_empty() && draft.spec.ask.duration_s.is_none());
        }
        let (draft, notes) = read("--nodes=2-4");
        assert_eq!(draft.spec.ask.replicas, Some(Replicas::Fixed(2)));
        assert_eq!(notes, ["train.sh:2: #SBATCH --nodes=2-4: 2 are asked for"]);
        let (draft, _) = read("--gpus-per-node=2 --cpus-per-gpu=4 --mem-per-gpu=8G");
        assert_eq!(["cpu", "memory"].map(|name| amount(&draft, name)), ["8", "16Gi"]);
    }

    proptest::proptest! {
        #[test]
        fn no_header_makes_it_panic(text in "(#SBATCH [ -~]{0,60}\n){0,6}") {
            let _ = read_text(&text);
        }
    }
}
