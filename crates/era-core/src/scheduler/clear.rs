//! Before a promise starts, whatever preemptible is in its way has to go: as little as possible,
//! and growth before anything else.

use std::collections::BTreeSet;

use super::Step;
use crate::calendar::{BookingHolder, NodeCalendar, Seat};
use crate::event::Event;
use crate::job::{Part, Plan, StopReason};
use crate::units::{HoldId, JobId, NodeId, Span, Time};

impl Step<'_> {
    /// Gives a part that is about to start other GPUs of the nodes that it has, where that lets
    /// preemptible work stay, or lets growth alone give way.
    pub(super) fn sit_beside(&mut self, id: JobId, index: usize) {
        let Some(job) = self.job(id) else { return };
        let part = &job.parts[index];
        let Some(mut plan) = part.plan().cloned() else { return };
        let attempt = part.attempt + 1;
        let holder = |rank: usize| BookingHolder::Job {
            job: id,
            part: index as u16,
            attempt,
            rank: rank as u32,
        };
        let mut nodes: Vec<NodeId> = plan.seats.iter().map(|s| s.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        for node in nodes {
            let ranks: Vec<usize> =
                (0..plan.seats.len()).filter(|r| plan.seats[*r].node == node).collect();
            let Some(node_calendar) = self.state.calendar.node(node) else { continue };
            let after = plan.from + Span(1);
            if node_calendar.within_capacity(&node_calendar.peak(plan.from, after, after)) {
                continue;
            }
            let mut without = NodeCalendar::clone(node_calendar);
            ranks.iter().for_each(|rank| drop(without.remove(holder(*rank))));
            let mut without_growth = without.clone();
            for booking in without.bookings().iter().filter(|b| self.is_growth(b.holder)) {
                without_growth.remove(booking.holder);
            }
            let found = [without, without_growth].into_iter().find_map(|trial| {
                let each = |rank: usize| part.each_of(&plan, rank as u32);
                let mut taken = trial.peak(plan.from, plan.to, after);
                let mut seats = Vec::new();
                for rank in &ranks {
                    let each = each(*rank);
                    if trial.count(&taken, &each, 1) == 0 {
                        return None;
                    }
                    let gpus = trial.choose_gpus(&taken, &each)?;
                    taken.add(&trial.take(&each, gpus));
                    seats.push(Seat { node, gpus });
                }
                Some(seats)
            });
            let Some(seats) = found else { continue };
            for (rank, to) in ranks.into_iter().zip(seats) {
                let from = std::mem::replace(&mut plan.seats[rank], to);
                if from == to {
                    continue;
                }
                let (part, rank) = (index as u16, rank as u32);
                self.events.push(Event::Moved { job: id, part, rank, from, to });
            }
        }
        if Some(&plan) != part.plan() {
            self.edit_part(id, index, |part| part.coming_mut().map(|(booked, _)| *booked = plan));
        }
    }

    /// Lets those stay who need not leave a node after all.
    pub(super) fn spare(&self, node: NodeId, at: Time, leaving: &mut Vec<BookingHolder>) {
        let Some(node_calendar) = self.state.calendar.node(node) else { return };
        let fits = |gone: &[BookingHolder]| {
            let mut trial = NodeCalendar::clone(node_calendar);
            gone.iter().for_each(|holder| drop(trial.remove(*holder)));
            let after = at + Span(1);
            trial.within_capacity(&trial.peak(at, after, after))
        };
        // Work comes before growth.
        let mut order = leaving.clone();
        order.sort_by_key(|holder| self.is_growth(*holder));
        for holder in order {
            let without: Vec<BookingHolder> =
                leaving.iter().copied().filter(|h| *h != holder).collect();
            if fits(&without) {
                *leaving = without;
            }
        }
    }

    /// Tells whatever preemptible is in the way of a promise to be gone when it starts.
    pub(super) fn clear_seats(&mut self, id: JobId, index: u16) {
        let index = usize::from(index);
        let Some(part) = self.part(id, index) else { return };
        let (Some((_, false)), booked) = (part.coming(), part.is_booked()) else { return };
        self.edit_part(id, index, |part| part.coming_mut().map(|(_, cleared)| *cleared = true));
        if booked {
            self.sit_beside(id, index);
        }
        if let Some((plan, _)) = self.part(id, index).and_then(Part::coming) {
            self.clear_plan(&plan.clone());
        }
    }

    /// The same for a hold: its capacity is set aside, and must be there when it is accepted.
    pub(super) fn clear_held(&mut self, id: HoldId, index: u16) {
        let Some(hold) = self.state.holds.get(&id) else { return };
        let Some((plan, _)) = hold.parts.get(usize::from(index)).cloned() else { return };
        self.state.edit_hold(id, |hold| hold.cleared.extend([index]));
        self.clear_plan(&plan);
    }

    fn clear_plan(&mut self, plan: &Plan) {
        let nodes: BTreeSet<NodeId> = plan.seats.iter().map(|s| s.node).collect();
        for node in nodes {
            self.clear_node(node, plan.from);
        }
    }

    /// Makes soft bookings on a node give way until what is booked at `at` fits: growth first,
    /// then the latest started.
    fn clear_node(&mut self, node: NodeId, at: Time) {
        let mut leaving: Vec<BookingHolder> = Vec::new();
        loop {
            let Some(node_calendar) = self.state.calendar.node(node) else { return };
            let mut trial = NodeCalendar::clone(node_calendar);
            for holder in &leaving {
                trial.remove(*holder);
            }
            let after = at + Span(1);
            if trial.within_capacity(&trial.peak(at, after, after)) {
                break;
            }
            let in_the_way = trial
                .bookings()
                .iter()
                .filter(|b| b.layer == crate::calendar::Layer::Soft && b.from <= at && at < b.to);
            let Some(victim) =
                in_the_way.max_by_key(|b| (self.is_growth(b.holder), b.from, b.holder))
            else {
                break;
            };
            leaving.push(victim.holder);
        }
        self.spare(node, at, &mut leaving);
        for holder in leaving {
            let BookingHolder::Job { job, part, rank, .. } = holder else { continue };
            if self.is_growth(holder) {
                self.stop_extras(job, usize::from(part), &[rank], at);
            } else if let Some(stop) = self.part(job, usize::from(part)).map(Part::stop) {
                // Whatever stops anyway is to be gone in time, too.
                if stop.is_none_or(|stop| stop.until > at) {
                    let why = stop.map_or(StopReason::Preempted, |stop| stop.why);
                    self.stop_part_until(job, usize::from(part), why, at);
                }
            }
        }
    }

    pub(super) fn is_growth(&self, holder: BookingHolder) -> bool {
        let BookingHolder::Job { job, part, rank, .. } = holder else { return false };
        let part = self.state.jobs.get(&job).and_then(|j| j.parts.get(usize::from(part)));
        part.is_some_and(|p| p.extras().iter().any(|e| e.rank == rank))
    }
}
