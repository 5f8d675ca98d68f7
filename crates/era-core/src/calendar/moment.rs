//! What is free on every node at this moment, for whoever wants to start now.
//!
//! Kept up to date booking by booking, so that a scheduling pass need not look at every node's
//! bookings. Where nothing more is taken later than now (on most nodes: bookings of queue work
//! begin at once and only end), what is free now stays free, and the answer is exact.

use std::sync::Arc;

use super::node::NodeCalendar;
use super::profile::{CPU, GPU0, MEMORY};
use crate::cluster::Health;
use crate::resources::{Resources, WHOLE_GPU};
use crate::units::{Span, Time};

/// What is free on a node now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FreeNow {
    /// Thousandths of cores.
    pub(crate) cpu: u32,
    pub(crate) memory: u32,
    /// Wholly free GPUs.
    pub(crate) whole_gpus: u32,
    /// Thousandths of GPUs, whole or not.
    pub(crate) gpu: u32,
    /// Whether it stays free, as far as is known.
    pub(crate) steady: bool,
}

impl FreeNow {
    fn of(node_calendar: &NodeCalendar, now: Time) -> FreeNow {
        if node_calendar.node.health != Health::Up {
            return FreeNow::default();
        }
        let after = now + Span(1);
        let taken = node_calendar.peak(now, after, after);
        let capacity = &node_calendar.node.capacity;
        let gpus = &taken[GPU0..][..capacity.gpus.len()];
        FreeNow {
            cpu: capacity.cpu.saturating_sub(taken[CPU]),
            memory: capacity.memory.saturating_sub(taken[MEMORY]),
            whole_gpus: gpus.iter().filter(|used| **used == 0).count() as u32,
            gpu: gpus.iter().map(|used| WHOLE_GPU.saturating_sub(*used)).sum(),
            steady: node_calendar.only_frees_after(now),
        }
    }

    /// How many such replicas fit now, at most: exactly so many where nobody asks for a share of
    /// a GPU, a model or a device.
    pub(crate) fn count(&self, each: &Resources, most: u32) -> u32 {
        if most == 1 && (each.gpu == 0 || each.gpu >= WHOLE_GPU) {
            // The question that is asked most: it needs no division.
            let fits = self.whole_gpus * WHOLE_GPU >= each.gpu
                && self.cpu >= each.cpu
                && self.memory >= each.memory;
            return u32::from(fits);
        }
        let gpus = match each.gpu {
            0 => most,
            gpu if gpu < WHOLE_GPU => self.gpu / gpu,
            gpu => self.whole_gpus / (gpu / WHOLE_GPU),
        };
        let cpu = self.cpu.checked_div(each.cpu).unwrap_or(most);
        let memory = self.memory.checked_div(each.memory).unwrap_or(most);
        most.min(gpus).min(cpu).min(memory)
    }
}

/// The nodes of a pool as they are now.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    /// When something last changed: it is as true until the next change.
    now: Time,
    nodes: Vec<FreeNow>,
    /// When each node has so many whole GPUs free at once, and from then on, from 1: never, if at
    /// no time; at once, if nothing is known because what is free there does not stay free.
    frees: Vec<Vec<Time>>,
    /// How many nodes nothing is known of.
    unknown: usize,
    /// When each node changes next, if nobody books or unbooks anything.
    changes: Vec<Time>,
    /// Not after the first of them.
    due: Time,
}

/// It says nothing that the nodes do not say.
impl PartialEq for Moment {
    fn eq(&self, _: &Moment) -> bool {
        true
    }
}

impl Moment {
    pub(crate) fn new(now: Time, node_calendars: &[Arc<NodeCalendar>]) -> Moment {
        let nodes = vec![FreeNow::default(); node_calendars.len()];
        let changes = vec![Time::MAX; node_calendars.len()];
        let gpus = node_calendars
            .iter()
            .map(|node_calendar| node_calendar.node.capacity.gpus.len())
            .max()
            .unwrap_or(0);
        let frees = vec![vec![Time::MAX; node_calendars.len()]; gpus];
        let mut moment = Moment { now, nodes, frees, unknown: 0, changes, due: Time::MAX };
        for (place, node_calendar) in node_calendars.iter().enumerate() {
            moment.refresh(now, place, node_calendar);
        }
        moment
    }

    /// A node's bookings have changed. Of the others, all that was true is true now.
    pub(crate) fn refresh(&mut self, now: Time, place: usize, node_calendar: &NodeCalendar) {
        self.now = now;
        self.look_at(place, node_calendar);
        self.due = self.due.min(self.changes[place]);
    }

    fn look_at(&mut self, place: usize, node_calendar: &NodeCalendar) {
        let free = FreeNow::of(node_calendar, self.now);
        self.nodes[place] = free;
        self.changes[place] = node_calendar.next_change(self.now);
        let was_unknown = self.frees.first().is_some_and(|times| times[place] == Time::MIN);
        self.unknown -= usize::from(was_unknown);
        self.frees.iter_mut().for_each(|times| times[place] = Time::MAX);
        if node_calendar.node.health != Health::Up {
            return;
        }
        // That no more is taken later than now is not enough: what comes free may be taken again.
        let (mut before, mut stays) = (0u64, free.steady);
        if stays {
            node_calendar.whole_gpus_over_time(self.now, |time, gpus| {
                let (had, has) = (before.count_ones() as usize, gpus.count_ones() as usize);
                self.frees.iter_mut().take(has).skip(had).for_each(|times| times[place] = time);
                stays &= before & !gpus == 0;
                before = gpus;
            });
        }
        if !stays {
            self.unknown += usize::from(!self.frees.is_empty());
            self.frees.iter_mut().for_each(|times| times[place] = Time::MIN);
        }
    }

    /// When each node has so many whole GPUs free, as far as is known, if it is asked for GPUs
    /// alone.
    pub(crate) fn frees(&self, each: &Resources) -> Option<&[Time]> {
        let gpus = (each.gpu / WHOLE_GPU) as usize;
        let known = each.is_plain() && each.cpu == 0 && each.memory == 0 && gpus > 0;
        self.frees.get(gpus.wrapping_sub(1)).filter(|_| known).map(Vec::as_slice)
    }

    /// Whether it is known of every node when its GPUs come free.
    pub(crate) fn knows_all(&self) -> bool {
        self.unknown == 0
    }

    /// Whether time has passed that changes something.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        now >= self.due
    }

    /// Time has passed.
    pub(crate) fn advance(&mut self, now: Time, node_calendars: &[Arc<NodeCalendar>]) {
        if !self.is_due(now) {
            return;
        }
        self.now = now;
        for (place, node_calendar) in node_calendars.iter().enumerate() {
            if self.changes[place] <= now {
                self.look_at(place, node_calendar);
            }
        }
        self.due = self.changes.iter().copied().min().unwrap_or(Time::MAX);
    }

    /// What is free on each node for whoever starts at `from`, if nothing changes before.
    pub(crate) fn nodes(&self, from: Time) -> Option<&[FreeNow]> {
        (self.now <= from && !self.is_due(from)).then_some(&self.nodes)
    }

    /// Whether it says what the nodes say. When a GPU came free in the past does not matter.
    pub(crate) fn is_true_of(&self, node_calendars: &[Arc<NodeCalendar>]) -> bool {
        let fresh = Moment::new(self.now, node_calendars);
        let times = |moment: &Moment| -> Vec<Time> {
            moment.frees.iter().flatten().map(|time| (*time).max(self.now)).collect()
        };
        self.nodes == fresh.nodes
            && self.unknown == fresh.unknown
            && times(self) == times(&fresh)
            && fresh.due >= self.due
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::calendar::{Booking, BookingHolder, Layer, Take};
    use crate::cluster::Node;
    use crate::resources::{Capacity, Gpu};
    use crate::units::{HoldId, Name, NodeId};

    const GPUS: usize = 3;

    /// A node with bookings: of these GPUs, from when, until when.
    fn node_calendar(bookings: &[(Layer, u64, i64, i64)]) -> NodeCalendar {
        let gpu = Gpu { model: Name::new("g").unwrap(), memory: 1 };
        let mut node_calendar = NodeCalendar::new(Arc::new(Node {
            id: NodeId(0),
            name: Name::new("n").unwrap(),
            pool: Name::new("p").unwrap(),
            capacity: Capacity { cpu: 0, memory: 0, gpus: vec![gpu; GPUS], ..Default::default() },
            labels: Default::default(),
            rack: None,
            domain: None,
            health: Health::Up,
            maintenance: Vec::new(),
            stop_at: None,
            kept: None,
            closed: false,
        }));
        for (rank, (layer, gpus, from, to)) in bookings.iter().enumerate() {
            let holder = BookingHolder::Hold { hold: HoldId(1), part: 0, rank: rank as u32 };
            let take = Take { gpus: *gpus, gpu_share: WHOLE_GPU, ..Default::default() };
            let (from, to) = (Time(*from), Time(*to));
            node_calendar.add(Booking { holder, from, to, layer: *layer, take });
        }
        node_calendar
    }

    /// When so many GPUs have come free, as it is known at `now`.
    fn known(node_calendar: &NodeCalendar, now: Time, gpus: usize) -> Option<Time> {
        let moment = Moment::new(now, &[Arc::new(node_calendar.clone())]);
        moment.knows_all().then(|| moment.frees[gpus - 1][0])
    }

    #[test]
    fn gpus_that_come_free_and_stay_free_are_known() {
        let both = node_calendar(&[(Layer::Firm, 0b011, 0, 10), (Layer::Soft, 0b100, 0, 20)]);
        let times = [1, 2, 3].map(|gpus| known(&both, Time(0), gpus));
        assert_eq!(times, [Some(Time(10)), Some(Time(10)), Some(Time(20))]);
    }

    #[test]
    fn gpus_that_are_free_only_for_a_while_are_not_known_as_free() {
        // No more is taken later than now, but what comes free at 10 is taken again at 20.
        let again = node_calendar(&[(Layer::Firm, 0b111, 0, 10), (Layer::Firm, 0b111, 20, 30)]);
        assert!(again.only_frees_after(Time(0)));
        assert_eq!(known(&again, Time(0), 1), None);
        assert_eq!(known(&again, Time(20), 1), Some(Time(30)));
    }

    #[test]
    fn as_many_free_gpus_need_not_be_the_same_ones() {
        let turns = node_calendar(&[
            (Layer::Firm, 0b111, 0, 10),
            (Layer::Firm, 0b110, 10, 20),
            (Layer::Firm, 0b101, 20, 30),
        ]);
        assert!(turns.only_frees_after(Time(0)));
        assert_eq!(known(&turns, Time(0), 1), None);
    }

    fn bookings() -> impl Strategy<Value = Vec<(Layer, u64, i64, i64)>> {
        let layer = prop_oneof![Just(Layer::Firm), Just(Layer::Soft)];
        // Half of them have begun.
        let from = prop_oneof![Just(0i64), 0i64..30];
        let one = (layer, 0u64..1 << GPUS, from, 1i64..20)
            .prop_map(|(layer, gpus, from, len)| (layer, gpus, from, from + len));
        proptest::collection::vec(one, 0..6)
    }

    proptest! {
        #[test]
        fn what_is_known_is_the_first_instant_with_room_however_long_it_is_for(
            bookings in bookings(), now in 0i64..30, gpus in 1..=GPUS, lasting in 1i64..40,
        ) {
            let node_calendar = node_calendar(&bookings);
            let has_room = |from: &i64| {
                let (from, to) = (Time(*from), Time(*from + lasting));
                let taken = node_calendar.peak(from, to, to);
                taken[GPU0..][..GPUS].iter().filter(|used| **used == 0).count() >= gpus
            };
            if let Some(known) = known(&node_calendar, Time(now), gpus) {
                prop_assert_eq!(Some(known.0), (now..60).find(has_room));
            }
        }
    }
}
