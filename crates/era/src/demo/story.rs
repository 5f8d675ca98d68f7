//! The story of a day. What is asked for is scripted, with the seed's touch; what comes of it is
//! the core's, and is told from its replies and events.

use era_core::bid::{Alternative, Bid, Request, Value};
use era_core::explain::Explanation;
use era_core::input::{NewJob, Terms};
use era_core::job::{Overrun, QueueTerms};
use era_core::offer::CounterOffers;
use era_core::quote::{base_cost, menu, price_calendar};
use era_core::reason::WaitReason;
use era_core::resources::{Resource, Resources};
use era_core::units::{JobId, Money, Span, UserId};
use era_core::{Command, Reply, explain, quote};

use super::chart;
use super::setting::{at, gang, site};
use super::tell::{job_name, tell, user_name};
use super::text::{Mark, Page, about, clock, credits, stretch};
use super::world::{World, name};
use era_sim::seeded::Seeded;

const ADA: UserId = UserId(1);
const BOB: UserId = UserId(2);
const CHEN: UserId = UserId(3);

pub(super) struct Story {
    pub(super) world: World,
    pub(super) page: Page,
    random: Seeded,
}

impl Story {
    pub(super) fn new(seed: u64, page: Page) -> anyhow::Result<Story> {
        let mut random = Seeded::new(seed);
        let mut world = World::new(site(&mut random)?, at(8, 0))?;
        world.take_news();
        Ok(Story { world, page, random })
    }

    /// The whole day, from 08:00 to 20:00.
    pub(super) fn play(&mut self) -> anyhow::Result<()> {
        self.asking()?;
        let training = self.bidding()?;
        self.queueing()?;
        self.losing(training)?;
        self.afternoon()
    }

    fn asking(&mut self) -> anyhow::Result<()> {
        self.page.section("A quote costs nothing, and shows what patience is worth");
        let request = gang(2, 8, Span::from_h(2), (at(12, 0), at(30, 0)));
        let bid = Bid::single(ADA, request, Money::credits(10_000));
        let quoted = quote(self.world.state(), &bid, self.world.now);
        let quoted = quoted.map_err(|declined| declined.refusal)?;
        self.page.line("ada: two nodes of 8 GPUs for 2h, not before 12:00. What would it cost?");
        self.page.line("");
        let lines = menu(self.world.state(), &bid, self.world.now).map_err(|d| d.refusal)?;
        let deadlines = [14, 18, 19, 20, 21, 22, 24, 26].map(|hour| at(hour, 0));
        chart::menu(&mut self.page, &lines, &deadlines);
        self.page.line("");
        let (price, when) = (credits(quoted.price), stretch(quoted.start, quoted.finish));
        self.page.line(&format!("Cheapest of all by 06:00: {price} for {when}."));
        self.page.line("");
        self.page.line("The fares of the day: credits an hour for the next GPU, hour by hour");
        self.page.line("");
        self.fares()
    }

    fn fares(&mut self) -> anyhow::Result<()> {
        let pool = name("gpu")?;
        let slots = price_calendar(self.world.state(), &pool, self.world.now, at(32, 0))?;
        let rate = self.world.state().cluster().pool(&pool)?.rates.gpu;
        chart::fares(&mut self.page, &slots, rate);
        Ok(())
    }

    fn bidding(&mut self) -> anyhow::Result<Option<JobId>> {
        self.page.section("Bids become promises, or refusals with counter-offers");
        let (h1, h2, h3) = (Span::from_h(1), Span::from_h(2), Span::from_h(3));
        let training = gang(2, 8, h3, (at(8, 0), at(14, 0)));
        let training = self.bid(ADA, "resnet", vec![training], 900)?;
        let tuning = gang(1, 8, h3, (at(12, 0), at(17, 0)));
        let tuned = self.bid(BOB, "llama-ft", vec![tuning], 1_200)?;
        if let Some(job) = tuned {
            let work = Span::from_min(self.random.range(100, 141));
            self.world.really_takes(job, 0, work);
        }
        let mut prepare = gang(1, 0, h1, (at(8, 0), at(14, 0)));
        prepare.each = Resources { cpu: 32_000, memory: 64 * 1024, ..Resources::default() };
        prepare.constraints.pool = Some(name("cpu")?);
        let mut train = gang(1, 4, h2, (at(8, 0), at(14, 0)));
        train.after = vec![0];
        self.bid(CHEN, "corpus", vec![prepare, train], 300)?;
        self.bid(BOB, "benchmark", vec![gang(4, 8, h1, (at(18, 0), at(19, 0)))], 2_000)?;
        self.bid(CHEN, "sweep", vec![gang(1, 8, h2, (at(13, 0), at(16, 0)))], 60)?;
        self.bid(ADA, "pretrain", vec![gang(3, 8, Span::from_h(4), (at(8, 0), at(13, 0)))], 3_000)?;
        self.world.take_news();
        self.page.line("");
        self.page.line("The fares once these are promised: what is taken makes the rest dearer");
        self.page.line("");
        self.fares()?;
        Ok(training)
    }

    /// Hands in a bid, and tells the answer.
    fn bid(
        &mut self,
        user: UserId,
        called: &str,
        requests: Vec<Request>,
        worth: i64,
    ) -> anyhow::Result<Option<JobId>> {
        let wants = requests.iter().map(wanted).collect::<Vec<_>>().join(", then ");
        let deadline = requests.iter().map(|r| r.window.deadline).max().unwrap_or_default();
        let wants = format!("{wants} by {}, worth {worth}", clock(deadline));
        let one_of = vec![Alternative { all_of: requests }];
        let bid = Bid { user, one_of, value: Value::Flat(Money::credits(worth)) };
        let overrun = Overrun::Stop;
        let terms = Terms::Bid { bid, most: None, overrun, release_when_idle: false };
        let reply = self.submit(user, called, terms)?;
        let now = self.world.now;
        self.page.entry(now, user_name(user), called, Mark::Asks, &wants);
        match reply {
            Reply::Accepted { job, quote: Some(quote), .. } => {
                let slots = quote.parts.iter().map(|p| stretch(p.start, p.finish));
                let slots = slots.collect::<Vec<_>>().join(" and ");
                let text = format!("promised {slots} for {}", credits(quote.price));
                self.page.entry(now, "", "", Mark::Good, &text);
                self.vary(job)?;
                Ok(Some(job))
            }
            Reply::Refused { refusal, counter } => {
                self.page.entry(now, "", "", Mark::Bad, &reason(&refusal));
                self.counter(&counter);
                Ok(None)
            }
            other => anyhow::bail!("an odd answer to a bid: {other:?}"),
        }
    }

    fn submit(&mut self, user: UserId, called: &str, terms: Terms) -> anyhow::Result<Reply> {
        let job = NewJob { name: Some(name(called)?.into()), ..NewJob::new(user, terms) };
        self.world.send(Command::Submit { key: None, job })
    }

    /// A job really takes a little less than was stated.
    fn vary(&mut self, id: JobId) -> anyhow::Result<()> {
        let job = self.world.state().job(id)?.clone();
        for (index, part) in job.parts.iter().enumerate() {
            let percent = self.random.range(88, 98);
            let work = Span(part.request.duration.0 * percent / 100);
            self.world.really_takes(id, index as u16, work);
        }
        Ok(())
    }

    fn counter(&mut self, counter: &CounterOffers) {
        if let Some(value) = counter.value {
            self.page.more(&format!("instead: a value of {}", credits(value)));
        }
        if let Some(offer) = &counter.window {
            let when = stretch(offer.start, offer.finish);
            self.page.more(&format!("instead: {when} for {}", credits(offer.price)));
        }
        if let Some((size, offer)) = &counter.size {
            let (price, when) = (credits(offer.price), stretch(offer.start, offer.finish));
            self.page.more(&format!("instead: {}, {when} for {price}", plural(*size, "replica")));
        }
        if let Some((span, offer)) = &counter.duration {
            let (price, when) = (credits(offer.price), stretch(offer.start, offer.finish));
            self.page.more(&format!("instead: only {}, {when} for {price}", about(*span)));
        }
    }

    fn queueing(&mut self) -> anyhow::Result<()> {
        self.page.section("Queue work fills the holes, and gives way in time");
        self.world.until(at(8, 5))?;
        tell(&mut self.page, &mut self.world);
        self.enqueue(CHEN, "grid", 8, Span::from_h(9), true)?;
        for (user, called) in [(BOB, "tune-1"), (ADA, "tune-2"), (BOB, "tune-3")] {
            let gpus = self.random.pick(&[2, 4]);
            let limit = Span::from_min(self.random.range(5, 10) * 10);
            self.enqueue(user, called, gpus, limit, false)?;
        }
        let late = self.enqueue(ADA, "eval", 8, Span::from_min(90), false)?;
        self.world.pass()?;
        tell(&mut self.page, &mut self.world);
        self.explain(late)?;
        self.world.until(at(10, 0))?;
        tell(&mut self.page, &mut self.world);
        Ok(())
    }

    fn enqueue(
        &mut self,
        user: UserId,
        called: &str,
        gpus: u32,
        limit: Span,
        preemptible: bool,
    ) -> anyhow::Result<JobId> {
        let now = self.world.now;
        let request = gang(1, gpus, limit, (now, now + limit));
        let how = if preemptible { "may be preempted" } else { "runs to its end" };
        let text = format!("queues: {}, at most {limit}, {how}", plural(gpus, "GPU"));
        self.page.entry(now, user_name(user), called, Mark::Asks, &text);
        let queue = QueueTerms { preemptible, ..QueueTerms::new(name("default")?) };
        match self.submit(user, called, Terms::Queue { request, queue })? {
            Reply::Accepted { job, .. } => {
                self.vary(job)?;
                Ok(job)
            }
            other => anyhow::bail!("queue work was not accepted: {other:?}"),
        }
    }

    /// Why a job waits, and until when.
    fn explain(&mut self, id: JobId) -> anyhow::Result<()> {
        let Explanation::Waiting { position, start, reason } = explain(self.world.state(), id)?
        else {
            return Ok(());
        };
        let job = self.world.state().job(id)?.clone();
        let likely = start.map_or_else(String::new, |start| {
            let spread = match (start.earliest, start.latest) {
                (earliest, latest) if earliest < latest => {
                    format!(" ({})", stretch(earliest, latest))
                }
                _ => String::new(),
            };
            format!(", likely to start at {}{spread}", clock(start.likely))
        });
        let text = format!("waits as number {position}{likely}:");
        self.page.entry(self.world.now, user_name(job.user), &job_name(&job), Mark::Asks, &text);
        self.page.more(&match reason {
            WaitReason::Short { resource: Resource::Gpu, free, needed } => {
                format!("{} of the {} that it needs are free", free / 1000, gpus(needed))
            }
            other => other.to_string(),
        });
        Ok(())
    }

    fn losing(&mut self, training: Option<JobId>) -> anyhow::Result<()> {
        self.page.section("A node is lost: promises are re-planned, or refunded");
        let training = training.filter(|job| self.world.node_of(*job).is_some());
        if let Some(job) = training {
            self.world.checkpoint(job, Span::from_min(115))?;
        }
        self.world.until(at(10, 10))?;
        tell(&mut self.page, &mut self.world);
        let first = self.world.state().cluster().nodes().next().map(|node| node.id);
        let Some(node) = training.and_then(|job| self.world.node_of(job)).or(first) else {
            return Ok(());
        };
        let called = self.world.node_name(node);
        self.page.entry(self.world.now, "", &called, Mark::Bad, "does not answer any more");
        self.world.lose(node)?;
        self.world.until(at(12, 0))?;
        tell(&mut self.page, &mut self.world);
        self.world.bring_back(node)?;
        self.page.entry(self.world.now, "", &called, Mark::Good, "is back");
        tell(&mut self.page, &mut self.world);
        Ok(())
    }

    /// Bids and queue work as the seed has it, while early ends bring money and room back.
    fn afternoon(&mut self) -> anyhow::Result<()> {
        self.page.section("The busy afternoon: more bids, early ends, refunds");
        let names =
            ["segment", "whisper", "bert", "diffusion", "clip", "yolo", "gpt-mini", "vit", "ocr"];
        for (index, called) in names.into_iter().enumerate() {
            let minute = index as i64 * 35 + self.random.range(5, 31);
            self.world.until(at(12, minute))?;
            tell(&mut self.page, &mut self.world);
            let user = self.random.pick(&[ADA, BOB, CHEN]);
            let gpus = self.random.pick(&[4, 8, 8]);
            let length = Span::from_min(self.random.range(6, 16) * 10);
            if index % 2 == 1 {
                self.enqueue(user, called, gpus, length, false)?;
                self.world.pass()?;
            } else {
                let deadline =
                    (self.world.now + length + Span::from_h(2)).floor_to(Span::from_h(1));
                let request = gang(1, gpus, length, (self.world.now, deadline));
                let base = base_cost(self.world.state(), &name("gpu")?, &request)?;
                let worth = base.0 / 1_000_000 * self.random.range(8, 41) / 10;
                self.bid(user, called, vec![request], worth)?;
            }
            tell(&mut self.page, &mut self.world);
        }
        self.world.until(at(20, 0))?;
        tell(&mut self.page, &mut self.world);
        Ok(())
    }
}

/// A refusal as a sentence, with its amounts rounded.
fn reason(refusal: &era_core::Refusal) -> String {
    match refusal {
        era_core::Refusal::TooDear { price, .. } => {
            format!("refused: the cheapest slot costs {}", credits(*price))
        }
        // What would be right is shown by the counter-offers below.
        other => {
            let sentence = other.to_string();
            format!("refused: {}", sentence.split(": ").next().unwrap_or(&sentence))
        }
    }
}

/// `2 × 8 GPUs for 3h`.
fn wanted(request: &Request) -> String {
    let (replicas, gpus) = (request.shape.promised(), request.each.gpu / 1000);
    let each = match gpus {
        0 => plural(request.each.cpu / 1000, "core"),
        _ => plural(gpus, "GPU"),
    };
    let times = if replicas > 1 { format!("{replicas} × ") } else { String::new() };
    format!("{times}{each} for {}", request.duration)
}

fn gpus(thousandths: u64) -> String {
    plural(u32::try_from(thousandths / 1000).unwrap_or(u32::MAX), "GPU")
}

fn plural(count: u32, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
