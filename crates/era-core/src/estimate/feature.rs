//! What a frozen forest may ask about a job: what it states, and the habits of its owner.
//!
//! Features are numbered; a number keeps its meaning for ever, since forests are written into
//! journals. New ones are added at the end. What is not known is -1, below all that is.

use super::history::{DurationHistories, DurationHistory, Whose, log2_s};
use crate::bid::{Attributes, Request};
use crate::outlook::{Arrival, Arrivals};
use crate::queue::fixed::Fixed;
use crate::resources::Resource;
use crate::units::{GroupId, Milli, Name, Time, Title, UserId};

/// How many features there are.
pub const FEATURES: usize = Feature::NamedCount as usize + 1;

/// A question that a split may ask. Logarithms are binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Feature {
    /// The owner's number.
    User,
    /// The number of the owner's group.
    Group,
    /// Thousandths of GPUs, or of cores where no GPU is asked for: logarithm.
    Size,
    /// Thousandths of cores: logarithm.
    Cpus,
    Memory,
    Replicas,
    /// Stated seconds: logarithm.
    Stated,
    /// Hour of the day.
    Hour,
    WeekHour,
    /// The owner's own ranking.
    Priority,
    /// The owner's past error in stating.
    Error,
    /// Parameters in thousands: logarithm.
    Parameters,
    /// Data in MiB: logarithm.
    Data,
    /// Hash of the field.
    Field,
    /// Hash of the framework.
    Framework,
    /// Hash of the network.
    Network,
    /// Hash of the name.
    Name,
    /// Seconds since the owner's last submission: logarithm.
    UserGap,
    /// Place in the owner's burst.
    UserInARow,
    /// Seconds since the owner's last submission of this size: logarithm.
    SizedGap,
    /// Place in the owner's burst of this size.
    SizedInARow,
    /// The owner's last duration: logarithm of seconds, as are all that follow but counts.
    UserLast,
    /// The one before.
    UserLast2,
    /// The one before that.
    UserLast3,
    /// Their moving mean.
    UserMean,
    /// Their moving deviation.
    UserDeviation,
    /// How many ended: logarithm.
    UserCount,
    /// The owner's last duration of this size.
    SizedLast,
    /// The one before.
    SizedLast2,
    /// The one before that.
    SizedLast3,
    /// Their moving mean.
    SizedMean,
    /// Their moving deviation.
    SizedDeviation,
    /// How many ended: logarithm.
    SizedCount,
    /// The group's last duration.
    GroupLast,
    /// The group's moving mean.
    GroupMean,
    /// The group's moving deviation.
    GroupDeviation,
    /// The owner's last duration under this name.
    NamedLast,
    /// The one before.
    NamedLast2,
    /// Their moving mean.
    NamedMean,
    /// How many ended: logarithm.
    NamedCount,
}

/// The answers about a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features([Fixed; FEATURES]);

/// Not known.
const UNKNOWN: Fixed = Fixed(-Fixed::ONE.0);

impl Default for Features {
    fn default() -> Features {
        Features([UNKNOWN; FEATURES])
    }
}

impl Features {
    /// The answer to a question by its number; unknown to one that does not exist.
    pub fn get(&self, feature: u8) -> Fixed {
        self.0.get(usize::from(feature)).copied().unwrap_or(UNKNOWN)
    }

    /// Sets an answer.
    pub fn set(&mut self, feature: Feature, value: Fixed) {
        self.0[feature as usize] = value;
    }

    fn set_known(&mut self, feature: Feature, value: Option<Fixed>) {
        self.set(feature, value.unwrap_or(UNKNOWN));
    }
}

/// What is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub user: UserId,
    /// The owner's group.
    pub group: GroupId,
    /// What people call it.
    pub name: Option<&'a Title>,
    pub attributes: &'a Attributes,
    /// The owner's own ranking.
    pub priority: i32,
    /// What it asks for.
    pub request: &'a Request,
    /// When it came.
    pub submitted: Time,
    /// After what it came.
    pub arrivals: Arrivals,
}

impl Subject<'_> {
    fn size(&self) -> u64 {
        let units = self.request.units();
        let gpu = units[Resource::Gpu as usize];
        if gpu > 0 { gpu } else { units[Resource::Cpu as usize] }
    }

    fn sized(&self) -> Whose {
        Whose::Sized(self.user, self.size().checked_ilog2().unwrap_or(0) as u8)
    }

    fn named(&self) -> Option<Whose> {
        self.name.map(|name| Whose::Named(self.user, hash(name.as_str())))
    }

    /// Tells the histories that it came.
    pub fn arrive(&self, histories: &mut DurationHistories) -> Arrivals {
        Arrivals {
            user: histories.note_arrival(Whose::User(self.user), self.submitted),
            sized: histories.note_arrival(self.sized(), self.submitted),
        }
    }

    /// Tells the histories how long it took.
    pub fn end(&self, histories: &mut DurationHistories, took: crate::units::Span) {
        for whose in [Whose::User(self.user), self.sized(), Whose::Group(self.group)] {
            histories.note_end(whose, took);
        }
        if let Some(named) = self.named() {
            histories.note_end(named, took);
        }
    }

    /// All that a forest may ask.
    pub fn features(&self, histories: &DurationHistories, error: Option<Milli>) -> Features {
        use Feature as F;
        let mut features = Features::default();
        self.state_facts(&mut features);
        features.set_known(F::Error, error.map(|e| Fixed::ratio(i64::from(e.0), 1000)));
        let gap = |arrival: Arrival| arrival.gap.map(log2_s);
        features.set_known(F::UserGap, gap(self.arrivals.user));
        features.set_known(F::SizedGap, gap(self.arrivals.sized));
        features.set(F::UserInARow, Fixed::from(self.arrivals.user.in_a_row));
        features.set(F::SizedInARow, Fixed::from(self.arrivals.sized.in_a_row));
        let user = histories.of(Whose::User(self.user));
        features.set_recent(&[F::UserLast, F::UserLast2, F::UserLast3], user);
        features.set_mean([F::UserMean, F::UserDeviation], user);
        features.set_known(F::UserCount, count(user));
        let sized = histories.of(self.sized());
        features.set_recent(&[F::SizedLast, F::SizedLast2, F::SizedLast3], sized);
        features.set_mean([F::SizedMean, F::SizedDeviation], sized);
        features.set_known(F::SizedCount, count(sized));
        let group = histories.of(Whose::Group(self.group));
        features.set_recent(&[F::GroupLast], group);
        features.set_mean([F::GroupMean, F::GroupDeviation], group);
        let named = self.named().and_then(|named| histories.of(named));
        features.set_recent(&[F::NamedLast, F::NamedLast2], named);
        features.set_known(F::NamedMean, known(named).map(|h| h.mean));
        features.set_known(F::NamedCount, count(named));
        features
    }

    /// What the job itself says.
    fn state_facts(&self, features: &mut Features) {
        use Feature as F;
        let units = self.request.units();
        let log = |n: u64| (n > 0).then(|| Fixed::from(n).log2());
        let facts = self.attributes;
        let minutes = self.submitted.0.div_euclid(60_000);
        let hour = |week: i64| Fixed::ratio(minutes.rem_euclid(week * 60), 60);
        features.set(F::User, Fixed::from(self.user.0));
        features.set(F::Group, Fixed::from(self.group.0));
        features.set_known(F::Size, log(self.size()));
        features.set_known(F::Cpus, log(units[Resource::Cpu as usize]));
        features.set_known(F::Memory, log(units[Resource::Memory as usize]));
        features.set_known(F::Replicas, log(u64::from(self.request.shape.promised())));
        features.set(F::Stated, log2_s(self.request.duration));
        features.set(F::Hour, hour(24));
        features.set(F::WeekHour, hour(168));
        features.set(F::Priority, Fixed::from(self.priority));
        features.set_known(F::Parameters, facts.parameters_k.and_then(log));
        features.set_known(F::Data, facts.data_mib.and_then(log));
        let text = |text: Option<&str>| text.map(|text| Fixed::from(hash(text)));
        features.set_known(F::Field, text(facts.field.as_ref().map(Name::as_str)));
        features.set_known(F::Framework, text(facts.framework.as_ref().map(Name::as_str)));
        features.set_known(F::Network, text(facts.network.as_ref().map(Name::as_str)));
        features.set_known(F::Name, text(self.name.map(Title::as_str)));
    }
}

impl Features {
    fn set_recent(&mut self, features: &[Feature], history: Option<&DurationHistory>) {
        for (feature, place) in features.iter().zip(0..) {
            self.set_known(*feature, history.and_then(|h| h.recent.get(place)).copied());
        }
    }

    fn set_mean(&mut self, [mean, deviation]: [Feature; 2], history: Option<&DurationHistory>) {
        self.set_known(mean, known(history).map(|h| h.mean));
        self.set_known(deviation, known(history).map(|h| h.deviation));
    }
}

/// A history in which something ended.
fn known(history: Option<&DurationHistory>) -> Option<&DurationHistory> {
    history.filter(|h| h.ended > 0)
}

fn count(history: Option<&DurationHistory>) -> Option<Fixed> {
    known(history).map(|h| Fixed::from(h.ended).log2())
}

/// FNV-1a. A split cannot tell what shares a hash; a prediction is then a little worse.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
