//! The reference of the command line, `docs/cli.md`, written from the commands themselves.

use std::fmt::Write as _;
use std::io::Write as _;

use clap::Command;

use super::exit;

/// Print the reference of the command line, as docs/cli.md holds it
#[derive(Debug, clap::Args)]
pub(crate) struct Reference {}

impl Reference {
    /// Writes the reference of the `whole` command line.
    pub(crate) fn run(self, whole: Command) -> anyhow::Result<()> {
        std::io::stdout().write_all(markdown(whole).as_bytes())?;
        Ok(())
    }
}

/// The whole reference.
fn markdown(whole: Command) -> String {
    let mut text = String::from(
        "# The command line\n\n\
         Written by `era reference > docs/cli.md`; a test says when it is stale.\n\n\
         Commands that ask a server find it by `--url`, `ERA_URL`, the last `era login`, a server \
         that runs here, or `http://127.0.0.1:7632`. Errors go to standard error, with a hint.\n\n",
    );
    text += &exit_codes();
    text += &variables();
    text += &job_file();
    text += SECRETS;
    text += TERMINAL;
    text += SLURM;
    let mut command = whole.term_width(100);
    command.build();
    for inner in command.get_subcommands_mut() {
        section(inner, "era", &mut text);
    }
    text
}

fn exit_codes() -> String {
    let codes: [(u8, &str); 11] = [
        (0, "done"),
        (1, "failed, for a reason that has no code of its own"),
        (exit::BAD_INPUT, "bad usage or bad input; nothing was done"),
        (exit::REFUSED, "the server refused: a rule, a quota, or the state of things"),
        (exit::NOT_ALLOWED, "not logged in, or not allowed"),
        (exit::NOT_THERE, "no such job, account, node, …"),
        (exit::BID_REFUSED, "the bid was refused: the price, or no room; counter-offers follow"),
        (exit::NO_SERVER, "no server answers, it cannot be trusted, or it is not understood"),
        (75, "a server: another one has taken its lead; start it again and it stands by"),
        (exit::NO_CODE, "`era run`: the job ended without a code of its own"),
        (exit::INTERRUPTED, "interrupted or declined"),
    ];
    let mut text = String::from("## Exit codes\n\n| code | meaning |\n| --- | --- |\n");
    for (code, meaning) in codes {
        // A `String` takes whatever is written to it.
        let _ = writeln!(text, "| {code} | {meaning} |");
    }
    text + "\n`era run` exits with the job's own code where it has one.\n\n"
}

fn variables() -> String {
    "## Environment\n\n| variable | meaning |\n| --- | --- |\n\
     | `ERA_URL` | the server's address |\n\
     | `ERA_TOKEN` | a token |\n\
     | `ERA_CA` | a PEM file of certificates to trust, and no others |\n\
     | `ERA_CONFIG` | the folder that remembers logins, instead of `~/.config/era` |\n\
     | `NO_COLOR` | no colours |\n\
     | `TZ` | the time zone in which times are read and told, instead of the system's |\n\n"
        .to_owned()
}

/// A job's file in which every key stands.
pub(crate) const JOB_FILE: &str = "name: resnet
project: vision
command: python train.py --epochs 90   # or [python, train.py]; a line is a shell's
code: .                                # the folder that goes along; `none` for none
env: {SEED: \"7\"}
secrets: [WANDB_API_KEY]               # set once by `era secret set WANDB_API_KEY`
inputs: [imagenet, {data: ada/labels, path: inputs/labels}]
image: pytorch                         # where the executor has images
terminal: false                        # true is `--pty`: a terminal, for `era attach`
resources: {gpu: 2, cpu: 8, memory: 64Gi, gpu.model: a100}
replicas: 2..4                         # or 4, or `gpus: 16` in all
time: 6h
from: tomorrow 6am                     # from, by, value, most or `accept_price: true`: a bid
by: friday noon
value: 40                              # or [{by: friday, worth: 40}, {by: sunday, worth: 10}]
most: 30
overrun: extend                        # or stop
release_when_idle: true
attributes: {field: vision, framework: pytorch, network: resnet50}
constraints: {pool: a100, same: rack}
";

/// The keys of a job that waits in a queue and not for a promise.
pub(crate) const QUEUE_JOB_FILE: &str = "command: [python, evaluate.py]
queue: night
priority: 5
preemptible: true
array: 0-99%10
after: [\"12\", \"13:any\"]
";

fn job_file() -> String {
    format!(
        "## A job as a file\n\n\
         `era submit job.yaml`, `era run job.yaml` and `era quote job.yaml` read a job from a YAML \
         file; flags before or behind it count over it. A key that is not known is refused with \
         the nearest one that is. All keys of a bid:\n\n```yaml\n{JOB_FILE}```\n\n\
         And those of a job that waits in a queue, beside what it is and needs:\n\n\
         ```yaml\n{QUEUE_JOB_FILE}```\n\n"
    )
}

/// How a job gets its tokens.
const SECRETS: &str = "## Secrets

What stands under `env` of a job is part of its description: everybody who may see the job sees it, \
and it stays in the journal and in backups for ever. A token or key is set once, by `era secret set \
WANDB_API_KEY`, which asks for it (or reads standard input, or with `--from-env` the variable of that \
name here), and is named by the jobs that need it: `--secret WANDB_API_KEY`, or `secrets: \
[WANDB_API_KEY]` in a job's file. Their tasks find it in their environment, with the value that it \
has when they start; so a job that is retried, or started again, has the newest. Nobody is told it \
again, administrators and its owner included: `era secret ls` lists names.

A job that names a secret which is not set is refused. Where one was removed before a task starts, \
the task does not start, and its log says which. A secret belongs to the account that set it, and \
jobs of that account alone can name it; names are those of variables in capitals (64 characters; \
none begins with `ERA_`), values 32 KiB at most, 64 of them for an account and 16 for a job. What a \
job prints is in its log as it is: print no secrets.

";

/// What is understood of terminals.
const TERMINAL: &str = "## A shell on the cluster

`era run --pty --gpu 1 -- bash` is what `srun --pty` is elsewhere: price and slot, then a shell on \
the node, whose code is the command's. Each replica of a job with `--pty` (`terminal: true`) has a \
terminal of its own; what is printed there is in the log too, and nobody need be attached. `~.` at \
the beginning of a line leaves the job running (`~~` types one `~`), and `era attach JOB` comes \
back, with `--rank N` to another replica's. The job's owner and administrators may attach, up to \
eight at once: all see the same, all may type, and the newest window's size counts. A stop asks as \
everywhere (SIGTERM, grace, SIGKILL), and hangs up a shell that ignores it once what it ran is \
gone. Terminals are where tasks are processes of the server's own machine (`era up`) and that runs \
Linux: elsewhere a job that asks for one is refused.

";

/// What is understood of the scripts of those who come from Slurm.
const SLURM: &str = "## Scripts with an `#SBATCH` header

`era submit train.sh` and `era run train.sh` read the header of a script and run it as it is, \
wherever it lies; `era submit -` reads one from standard input. Flags before the script count over \
its header.

| option | becomes |
| --- | --- |
| `--job-name`, `--time`, `--partition`, `--chdir` | `--name`, `--time`, `--queue`, `--code` |
| `--cpus-per-task`, `--cpus-per-gpu`, `--mem`, `--mem-per-cpu`, `--mem-per-gpu` | `--cpu` and \
`--memory` of each replica |
| `--nodes`, `--ntasks`, `--ntasks-per-node` | `--replicas`, and where they stand |
| `--gres=gpu:2`, `--gpus-per-node`, `--gpus-per-task`, `--gpus` | GPUs, with their model |
| `--gres=gpu:2,fpga:1` | a device by its name beside them; where no node has one, it is refused |
| `--array=0-9`, `0-9:3`, `1,2,3-7`, `0-99%10` | `--array`; indices with gaps are refused |
| `--dependency=afterok:12,afterany:13` | `--after`; `after`, `afternotok`, `aftercorr`, \
`singleton` and `?` are refused |
| `--begin`, `--deadline` | `--from`, `--by`: a promise, which takes neither an array nor a \
dependency |
| `--requeue` | `--preemptible` |
| `--export=NAME=VALUE` | `--env`; the variables of whoever submits do not come along |

`--output`, `--error`, `--input`, `--open-mode`, `--mail-*`, `--account`, `--qos` and `--comment` \
mean nothing here (a job's log is kept, and its owner is who submits); all other options are named \
and not used. Each replica runs the whole script: there is no `srun`. Its \
tasks find `SLURM_JOB_ID`, `SLURM_JOB_NAME`, `SLURM_PROCID`, `SLURM_LOCALID`, `SLURM_NTASKS`, \
`SLURM_CPUS_PER_TASK`, `SLURM_SUBMIT_DIR`, `SLURMD_NODENAME` and `SLURM_RESTART_COUNT`, and those \
of an array `SLURM_ARRAY_JOB_ID`, `SLURM_ARRAY_TASK_ID`, `_COUNT`, `_MIN`, `_MAX` and `_STEP`; \
`--env` counts over them. A job of another kind finds them where it sets `SLURM_CLUSTER_NAME`.

";

fn section(command: &mut Command, above: &str, text: &mut String) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let name = format!("{above} {}", command.get_name());
    let help = command.render_long_help().to_string();
    let mut tidy = String::new();
    for line in help.trim_end().lines() {
        let _ = writeln!(tidy, "{}", line.trim_end());
    }
    let _ = write!(text, "## `{name}`\n\n```text\n{tidy}```\n\n");
    for inner in command.get_subcommands_mut() {
        section(inner, &name, text);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_reference_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        let fresh = super::markdown(crate::command::whole());
        let stale = committed.lines().zip(fresh.lines()).find(|(old, new)| old != new);
        assert!(
            committed == fresh,
            "docs/cli.md is stale, first at {stale:?}: run `era reference > docs/cli.md`"
        );
    }
}
