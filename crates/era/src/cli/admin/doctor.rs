//! `era admin doctor`: checks a deployment from the outside, or the folder of a server that does
//! not start, and says what to mend.

#[cfg(unix)]
mod folder;

use era_api::account::{Me, Role};
use era_api::client::{Client, ClientError, ServerHealth};
use era_api::cluster::{NodeFilter, NodeView};
use era_api::market::MarketView;
use era_api::queue::QueueView;
use jiff::Timestamp;
use serde::Serialize;

use crate::cli::connection::Common;
use crate::cli::exit::ExitWith;
use crate::cli::look::{self, Look};
use crate::paint::Tone;

/// The largest difference between two clocks that is no trouble.
const CLOCK_SECONDS_MAX: i64 = 5;

/// Check a deployment, and say what to mend; exits with 1 if something is broken
#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    /// Look at this folder of a server on this machine instead, whether the server runs or not:
    /// disk, databases, journal, control groups, clock
    #[cfg(unix)]
    #[arg(long, value_name = "DIR")]
    data: Option<std::path::PathBuf>,
    #[cfg(unix)]
    #[command(flatten)]
    database: crate::upkeep::Rows,
    #[command(flatten)]
    common: Common,
}

/// How something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Standing {
    Good,
    Warning,
    Broken,
}

/// What was looked at, how it stands, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    what: &'static str,
    standing: Standing,
    sentence: String,
}

/// What the doctor saw.
#[derive(Debug, Default)]
struct Inspection {
    url: String,
    now: Timestamp,
    health: Option<Result<ServerHealth, String>>,
    me: Option<Result<Me, String>>,
    nodes: Option<Result<Vec<NodeView>, String>>,
    queues: Option<Result<Vec<QueueView>, String>>,
    market: Option<Result<MarketView, String>>,
}

impl Doctor {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let look = self.common.look();
        let findings = self.findings(look.now.timestamp())?;
        look::print(self.common.output, &findings, |findings| render(findings, &look))?;
        if findings.iter().any(|finding| finding.standing == Standing::Broken) {
            return Err(ExitWith(1).into());
        }
        Ok(())
    }
}

impl Doctor {
    fn findings(&self, now: Timestamp) -> anyhow::Result<Vec<Finding>> {
        #[cfg(unix)]
        if let Some(data) = &self.data {
            return Ok(folder::judge(&folder::examine(data, &self.database, now)?));
        }
        Ok(judge(&examine(&self.common.client()?, now)))
    }
}

fn examine(client: &Client, now: Timestamp) -> Inspection {
    fn said<T>(result: Result<T, ClientError>) -> Option<Result<T, String>> {
        Some(result.map_err(|error| error.to_string()))
    }
    let mut seen = Inspection { url: client.url().to_owned(), now, ..Inspection::default() };
    seen.health = said(client.health());
    if matches!(seen.health, Some(Err(_))) {
        return seen;
    }
    seen.me = said(client.me());
    if matches!(seen.me, Some(Err(_))) {
        return seen;
    }
    seen.nodes = said(client.nodes(&NodeFilter::default()));
    seen.queues = said(client.queues());
    seen.market = said(client.market());
    seen
}

/// The findings, from what was seen.
fn judge(seen: &Inspection) -> Vec<Finding> {
    let mut findings = Findings(Vec::new());
    findings.server(seen);
    findings.account(seen);
    if let Some(nodes) = findings.read("nodes", &seen.nodes) {
        findings.nodes(nodes);
    }
    if let Some(queues) = findings.read("queues", &seen.queues) {
        if queues.is_empty() {
            findings.warn("queues", "there is none: make one with `era admin queue put`");
        } else {
            findings.good("queues", format!("{} queues", queues.len()));
        }
    }
    if let Some(market) = findings.read("market", &seen.market) {
        findings.market(market);
    }
    findings.0
}

struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, what: &'static str, standing: Standing, sentence: impl Into<String>) {
        self.0.push(Finding { what, standing, sentence: sentence.into() });
    }

    fn good(&mut self, what: &'static str, sentence: impl Into<String>) {
        self.add(what, Standing::Good, sentence);
    }

    fn warn(&mut self, what: &'static str, sentence: impl Into<String>) {
        self.add(what, Standing::Warning, sentence);
    }

    fn broken(&mut self, what: &'static str, sentence: impl Into<String>) {
        self.add(what, Standing::Broken, sentence);
    }

    /// What was read; what could not be is a finding of its own.
    fn read<'a, T>(
        &mut self,
        what: &'static str,
        seen: &'a Option<Result<T, String>>,
    ) -> Option<&'a T> {
        match seen {
            None => None,
            Some(Ok(value)) => Some(value),
            Some(Err(error)) => {
                self.broken(what, error.clone());
                None
            }
        }
    }

    fn server(&mut self, seen: &Inspection) {
        let Some(health) = self.read("server", &seen.health) else { return };
        if health.ready {
            self.good("server", format!("{} answers and is ready", seen.url));
        } else {
            let said = health.text.trim();
            self.broken("server", format!("{} answers, but is not ready: {said}", seen.url));
        }
        if let Some(clock) = health.clock {
            let apart = seen.now.as_second().abs_diff(clock.as_second());
            if apart > CLOCK_SECONDS_MAX.unsigned_abs() {
                self.warn(
                    "clock",
                    format!("it differs by {apart} s from here: run a time service"),
                );
            } else {
                self.good("clock", "agrees with this machine's");
            }
        }
        if seen.url.starts_with("https://") {
            self.good("encryption", "on");
        } else if seen.url.contains("://127.") || seen.url.contains("://localhost") {
            self.good("encryption", "not needed on this machine itself");
        } else {
            let cure = "start `era up` with --tls-cert and --tls-key";
            self.warn("encryption", format!("passwords and tokens travel in the clear: {cure}"));
        }
    }

    fn account(&mut self, seen: &Inspection) {
        let Some(me) = self.read("account", &seen.me) else { return };
        if me.must_change_password {
            let name = &me.name;
            self.warn("account", format!("{name} has a one-time password: `era login` changes it"));
        } else if me.role != Role::Administrator {
            let name = &me.name;
            self.warn("account", format!("{name} is no administrator, and may not see everything"));
        } else {
            self.good("account", format!("{} is an administrator", me.name));
        }
    }

    fn nodes(&mut self, nodes: &[NodeView]) {
        let named = |health: &str| -> Vec<&str> {
            let of = nodes.iter().filter(|node| node.health == health);
            of.map(|node| node.name.as_str()).collect()
        };
        let (up, lost) = (named("up"), named("lost"));
        if up.is_empty() {
            self.broken("nodes", "none is up: nothing can run");
        } else {
            let gpus: usize = nodes.iter().map(|node| node.gpus.len()).sum();
            self.good("nodes", format!("{} up, {gpus} GPUs", up.len()));
        }
        if !lost.is_empty() {
            let cure = "look at them, or `era admin node leave` them";
            self.warn("nodes", format!("lost: {}; {cure}", lost.join(", ")));
        }
        for (what, nodes) in [("cordoned", named("cordoned")), ("draining", named("draining"))] {
            if !nodes.is_empty() {
                let names = nodes.join(", ");
                self.warn("nodes", format!("{what}: {names}; `era admin node resume` ends that"));
            }
        }
        if nodes.iter().any(|node| node.simulated) {
            self.warn("nodes", "some are simulated: their tasks only sleep");
        }
    }

    fn market(&mut self, market: &MarketView) {
        let (kept, due) = (market.promises_kept, market.promises_due);
        if kept < due {
            let broken = due - kept;
            self.warn("promises", format!("{broken} of {due} were broken: `era nodes` shows why"));
        } else {
            self.good("promises", format!("all {due} that were due were kept"));
        }
        if market.pools.is_empty() {
            self.warn("market", "no pool has prices: make one with `era admin pool put`");
        } else {
            self.good(
                "market",
                format!("{} pools, by {}", market.pools.len(), market.mechanism.name),
            );
        }
    }
}

fn render(findings: &[Finding], look: &Look) -> String {
    let mut text = String::new();
    for finding in findings {
        let (mark, tone) = match finding.standing {
            Standing::Good => ("good", Tone::Good),
            Standing::Warning => ("warning", Tone::Warn),
            Standing::Broken => ("broken", Tone::Bad),
        };
        let mark = look.paint.tone(tone, &format!("{mark:<8}"));
        text += &format!("{mark} {:<11} {}\n", finding.what, finding.sentence);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_server_that_does_not_answer_is_all_there_is_to_say() {
        let seen = Inspection {
            url: "http://gpu.example.org".to_owned(),
            health: Some(Err("no server answers".to_owned())),
            ..Inspection::default()
        };
        let findings = judge(&seen);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].standing, Standing::Broken);
    }

    #[test]
    fn what_is_wrong_is_told_with_what_to_do() {
        let mut lost = crate::cli::nodes::tests::example();
        lost.name = "node-2".to_owned();
        lost.health = "lost".to_owned();
        let health = ServerHealth {
            ready: true,
            text: String::new(),
            clock: Some(at("2026-11-15T12:00:30Z")),
        };
        let me = Me {
            id: 1,
            name: "admin".to_owned(),
            group: "default".to_owned(),
            role: Role::Administrator,
            balance: era_api::Credits(0),
            must_change_password: true,
            csrf: None,
        };
        let market = r#"{"mechanism": {"name": "surge", "floor": 0.1, "ceiling": 10}, "pools": [],
            "promises_due": 10, "promises_kept": 9}"#;
        let seen = Inspection {
            url: "http://gpu.example.org".to_owned(),
            now: at("2026-11-15T12:00:00Z"),
            health: Some(Ok(health)),
            me: Some(Ok(me)),
            nodes: Some(Ok(vec![crate::cli::nodes::tests::example(), lost])),
            queues: Some(Ok(Vec::new())),
            market: Some(Ok(serde_json::from_str(market).unwrap())),
        };
        insta::assert_snapshot!(render(&judge(&seen), &look::plain()));
    }
}
