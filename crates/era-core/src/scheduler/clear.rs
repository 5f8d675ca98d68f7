//! Before a promise starts, whatever preemptible is in its way has to go: as little as possible,
//! and growth before anything else.

use super::Step;
use crate::calendar::{Holder, Lane, Layer, Seat};
use crate::job::Part;
use crate::output::Event;
use crate::units::{JobId, NodeId, Span, Time};

impl Step<'_> {
    /// Gives a part that is about to start other GPUs of the nodes that it has, where that lets
    /// preemptible work stay, or lets growth alone give way.
    pub(super) fn sit_beside(&mut self, id: JobId, index: usize) {
        let Some(mut job) = self.job(id) else { return };
        let part = &job.parts[index];
        let Some(mut plan) = part.plan.clone() else { return };
        let attempt = part.attempt + 1;
        let holder =
            |rank: usize| Holder::Job { job: id, part: index as u16, attempt, rank: rank as u32 };
        let mut nodes: Vec<NodeId> = plan.seats.iter().map(|s| s.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        for node in nodes {
            let ranks: Vec<usize> =
                (0..plan.seats.len()).filter(|r| plan.seats[*r].node == node).collect();
            let Some(lane) = self.state.calendar.lane(node) else { continue };
            let after = plan.from + Span(1);
            if lane.within_capacity(&lane.peak(plan.from, after, after)) {
                continue;
            }
            let mut without = Lane::clone(lane);
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
                self.state.calendar.unbook(holder(rank), node);
                let each = part.each_of(&plan, rank as u32);
                self.state.calendar.book(holder(rank), to, &each, Layer::Firm, plan.from, plan.to);
                let (part, rank) = (index as u16, rank as u32);
                self.events.push(Event::Moved { job: id, part, rank, from, to });
            }
        }
        let part: &mut Part = &mut job.parts[index];
        part.plan = Some(plan);
        self.state.put_job(job);
    }

    /// Lets those stay who need not leave a node after all.
    pub(super) fn spare(&self, node: NodeId, at: Time, leaving: &mut Vec<Holder>) {
        let Some(lane) = self.state.calendar.lane(node) else { return };
        let fits = |gone: &[Holder]| {
            let mut trial = Lane::clone(lane);
            gone.iter().for_each(|holder| drop(trial.remove(*holder)));
            let after = at + Span(1);
            trial.within_capacity(&trial.peak(at, after, after))
        };
        // Work comes before growth.
        let mut order = leaving.clone();
        order.sort_by_key(|holder| self.is_growth(*holder));
        for holder in order {
            let without: Vec<Holder> = leaving.iter().copied().filter(|h| *h != holder).collect();
            if fits(&without) {
                *leaving = without;
            }
        }
    }
}
