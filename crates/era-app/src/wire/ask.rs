//! Asks and jobs, from the wire to the core.

use era_api::Credits;
use era_api::job::{self as wire, Ask, Quantity, Replicas};
use era_api::quote::{AllOf, OrderedAsk, QuoteAsk, ValueSpec};
use era_core::bid::{Alternative, Attributes, Bid, Constraints, Request, Shape, Topology};
use era_core::bid::{Value, ValueStep, Window};
use era_core::input::{Array, NewJob, Terms};
use era_core::job::{After, Overrun, QueueTerms, When};
use era_core::resources::Resources;
use era_core::units::{HoldId, JobId, Money, Time, UserId};

use super::{BadField, Wrong, money, name, optional_name, optional_title, span, time};

/// Most entries in a map that a stranger sends.
const ENTRIES_MAX: usize = 64;

/// The queue of jobs that name none.
const DEFAULT_QUEUE: &str = "default";

/// An ask as a request, with the defaults for what is not said. Times are left open then, and the
/// core takes them as from now until the horizon: so that the same question, asked again later, is
/// the same question.
pub fn request(ask: &Ask) -> Result<Request, BadField> {
    let mut ask = ask.clone();
    ask.complete();
    let window = Window {
        earliest: ask.earliest.map_or(Time(0), time),
        deadline: ask.deadline.map_or(Time::LATEST, time),
    };
    Ok(Request {
        shape: shape(&ask)?,
        each: resources(&ask.resources)?,
        duration: span(ask.duration_s.unwrap_or_default()),
        window,
        constraints: ask.constraints.as_ref().map(constraints).transpose()?.unwrap_or_default(),
        after: Vec::new(),
    })
}

fn shape(ask: &Ask) -> Result<Shape, BadField> {
    match (ask.replicas, ask.gpus) {
        (Some(_), Some(_)) => {
            Err(BadField::new("gpus", Wrong::NotBoth { one: "replicas", other: "gpus" }))
        }
        (None, Some(total)) => Ok(Shape::Gpus { total }),
        (Some(Replicas::Range { min, max }), None) => Ok(Shape::Replicas { min, max }),
        (Some(Replicas::Fixed(n)), None) => Ok(Shape::gang(n)),
        (None, None) => Ok(Shape::gang(1)),
    }
}

fn resources(given: &wire::ResourcesSpec) -> Result<Resources, BadField> {
    if given.len() > ENTRIES_MAX {
        return Err(BadField::new(
            "resources",
            Wrong::TooMany { most: ENTRIES_MAX, what: "entries" },
        ));
    }
    let texts: Vec<(&str, String)> =
        given.iter().map(|(key, quantity)| (key.as_str(), text_of(quantity))).collect();
    Resources::parse(texts.iter().map(|(key, text)| (*key, text.as_str())))
        .map_err(|bad| BadField::new("resources", bad))
}

fn text_of(quantity: &Quantity) -> String {
    match quantity {
        Quantity::Text(text) => text.chars().take(64).collect(),
        Quantity::Number(number) => number.to_string(),
    }
}

fn constraints(given: &wire::ConstraintsSpec) -> Result<Constraints, BadField> {
    if given.labels.len() > ENTRIES_MAX {
        return Err(BadField::new(
            "constraints.labels",
            Wrong::TooMany { most: ENTRIES_MAX, what: "labels" },
        ));
    }
    let label = |(key, value): (&String, &String)| {
        Ok((name("constraints.labels", key)?, name("constraints.labels", value)?))
    };
    Ok(Constraints {
        pool: optional_name("constraints.pool", given.pool.as_deref())?,
        domain: optional_name("constraints.domain", given.domain.as_deref())?,
        labels: given.labels.iter().map(label).collect::<Result<_, BadField>>()?,
        same: given.same.map(|near| match near {
            wire::TopologySpec::Node => Topology::Node,
            wire::TopologySpec::Rack => Topology::Rack,
            wire::TopologySpec::Domain => Topology::Domain,
        }),
        per_node_max: given.per_node_max,
        spread: given.spread,
    })
}

/// A question for a price as a bid.
pub fn bid(user: UserId, asked: &QuoteAsk) -> Result<Bid, BadField> {
    let one_of = match (&asked.ask, &asked.one_of[..]) {
        (Some(ask), []) => {
            vec![Alternative { all_of: vec![request(ask)?] }]
        }
        (None, []) => return Err(BadField::new("ask", Wrong::Missing)),
        (None, several) => {
            several.iter().map(|AllOf { all_of }| alternative(all_of)).collect::<Result<_, _>>()?
        }
        (Some(_), _) => {
            return Err(BadField::new("ask", Wrong::NotBoth { one: "ask", other: "one_of" }));
        }
    };
    Ok(Bid { user, one_of, value: worth(asked.value.as_ref(), asked.most) })
}

fn alternative(asks: &[OrderedAsk]) -> Result<Alternative, BadField> {
    let ordered =
        |asked: &OrderedAsk| Ok(Request { after: asked.after.clone(), ..request(&asked.ask)? });
    Ok(Alternative { all_of: asks.iter().map(ordered).collect::<Result<_, BadField>>()? })
}

/// What something is worth. Who says no value takes the price: the cheapest slot of the window, up
/// to what it may cost.
fn worth(said: Option<&ValueSpec>, most: Option<Credits>) -> Value {
    said.map_or(Value::Flat(most.map_or(Money::MOST, money)), value)
}

fn value(given: &ValueSpec) -> Value {
    match given {
        ValueSpec::Flat(credits) => Value::Flat(money(*credits)),
        ValueSpec::Steps(steps) => Value::Steps(
            steps
                .iter()
                .map(|step| ValueStep { by: time(step.by), worth: money(step.worth) })
                .collect(),
        ),
    }
}

/// A job as the core knows it: terms and attributes, without what is run.
pub fn new_job(user: UserId, given: &wire::JobSpec) -> Result<NewJob, BadField> {
    Ok(NewJob {
        user,
        name: optional_title("name", given.name.as_deref())?,
        attributes: given.attributes.as_ref().map(attributes).transpose()?.unwrap_or_default(),
        priority: given.priority.unwrap_or_default(),
        terms: terms(user, given)?,
        array: given.array.as_ref().map(array).transpose()?,
        after: given.after.iter().map(after).collect(),
    })
}

/// All that is wrong with the fields of a job, each by itself. What only several of them together
/// make wrong, [`new_job`] says.
pub fn problems(given: &wire::JobSpec) -> Vec<BadField> {
    let ask = &given.ask;
    let mut all: Vec<BadField> = [
        optional_title("name", given.name.as_deref()).err(),
        optional_title("project", given.project.as_deref()).err(),
        given.attributes.as_ref().and_then(|given| attributes(given).err()),
        shape(ask).err(),
        ask.constraints.as_ref().and_then(|given| constraints(given).err()),
        optional_name("queue", given.queue.as_deref()).err(),
        given.array.as_ref().and_then(|given| array(given).err()),
    ]
    .into_iter()
    .flatten()
    .collect();
    if ask.resources.len() <= ENTRIES_MAX {
        let alone = |(name, amount): (&String, &Quantity)| {
            resources(&wire::ResourcesSpec::from([(name.clone(), amount.clone())])).err()
        };
        all.extend(ask.resources.iter().filter_map(alone));
    }
    all
}

fn array(given: &wire::ArraySpec) -> Result<Array, BadField> {
    let count = given.count().ok_or_else(|| BadField::new("array", Wrong::Indices))?;
    Ok(Array { count, running_max: given.limit })
}

fn after(given: &wire::AfterSpec) -> After {
    let when = match given.when {
        wire::AfterWhen::Ok => When::Ok,
        wire::AfterWhen::Any => When::Any,
    };
    After { job: JobId(given.job), when }
}

fn terms(user: UserId, given: &wire::JobSpec) -> Result<Terms, BadField> {
    let overrun = match given.overrun.unwrap_or_default() {
        wire::OverrunSpec::Extend => Overrun::Extend,
        wire::OverrunSpec::Stop => Overrun::Stop,
    };
    let release_when_idle = given.release_when_idle;
    if given.hold.is_some() && given.value.is_some() {
        return Err(BadField::new("hold", Wrong::NotBoth { one: "hold", other: "value" }));
    }
    if let Some(hold) = given.hold {
        return Ok(Terms::Hold { hold: HoldId(hold), overrun, release_when_idle });
    }
    let request = request(&given.ask)?;
    if given.is_bid() {
        if given.queue.is_some() {
            let other = promising(given);
            return Err(BadField::new("queue", Wrong::NotBoth { one: "queue", other }));
        }
        let most = given.most.map(money);
        let value = worth(given.value.as_ref(), given.most);
        let bid = Bid { user, one_of: vec![Alternative { all_of: vec![request] }], value };
        return Ok(Terms::Bid { bid, most, overrun, release_when_idle });
    }
    let queue = QueueTerms {
        queue: name("queue", given.queue.as_deref().unwrap_or(DEFAULT_QUEUE))?,
        preemptible: given.preemptible,
        release_when_idle,
    };
    Ok(Terms::Queue { request, queue })
}

/// The field that makes a job a bid.
fn promising(given: &wire::JobSpec) -> &'static str {
    match given {
        wire::JobSpec { value: Some(_), .. } => "value",
        wire::JobSpec { most: Some(_), .. } => "most",
        wire::JobSpec { accept_price: true, .. } => "accept_price",
        _ => "ask.deadline",
    }
}

fn attributes(given: &wire::AttributesSpec) -> Result<Attributes, BadField> {
    Ok(Attributes {
        field: optional_name("attributes.field", given.field.as_deref())?,
        framework: optional_name("attributes.framework", given.framework.as_deref())?,
        network: optional_name("attributes.network", given.network.as_deref())?,
        parameters_k: given.parameters_k,
        data_mib: given.data_mib,
    })
}
