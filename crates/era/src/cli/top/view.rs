//! What `era top` shows: the newest picture of the cluster, and where its reader looks.

use era_api::cluster::{NodeView, Utilisation};
use era_api::job::JobSummary;
use era_api::market::MarketView;
use era_api::page::Page;

use crate::cli::look::Look;
use crate::clock::timestamp;

/// The cluster at one moment.
#[derive(Clone, Debug)]
pub(super) struct Picture {
    pub(super) nodes: Vec<NodeView>,
    pub(super) running: Page<JobSummary>,
    pub(super) waiting: Page<JobSummary>,
    pub(super) market: MarketView,
    pub(super) utilisation: Utilisation,
}

/// The lists, in the order of Tab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    Nodes,
    Running,
    Waiting,
}

const LISTS: [List; 3] = [List::Nodes, List::Running, List::Waiting];

/// What is shown, and what the reader did.
#[derive(Debug)]
pub(super) struct View {
    pub(super) url: String,
    pub(super) look: Look,
    pub(super) picture: Option<Picture>,
    /// What went wrong the last time; the picture is then an older one.
    pub(super) trouble: Option<String>,
    pub(super) paused: bool,
    pub(super) list: List,
    /// The first line that is shown, for each list.
    first: [usize; 3],
}

impl View {
    pub(super) fn new(url: &str, look: Look) -> View {
        View {
            url: url.to_owned(),
            look,
            picture: None,
            trouble: None,
            paused: false,
            list: List::Nodes,
            first: [0; 3],
        }
    }

    /// Takes what the server answered.
    pub(super) fn take(&mut self, picture: Result<Picture, String>) {
        match picture {
            Ok(picture) => {
                self.picture = Some(picture);
                self.trouble = None;
                self.look.now = timestamp().to_zoned(self.look.now.time_zone().clone());
            }
            Err(trouble) => self.trouble = Some(trouble),
        }
        self.scroll(0);
    }

    fn at(list: List) -> usize {
        LISTS.iter().position(|other| *other == list).unwrap_or(0)
    }

    pub(super) fn next_list(&mut self) {
        self.list = LISTS[(Self::at(self.list) + 1) % LISTS.len()];
    }

    pub(super) fn previous_list(&mut self) {
        self.list = LISTS[(Self::at(self.list) + LISTS.len() - 1) % LISTS.len()];
    }

    fn lines(&self, list: List) -> usize {
        self.picture.as_ref().map_or(0, |picture| match list {
            List::Nodes => picture.nodes.len(),
            List::Running => picture.running.items.len(),
            List::Waiting => picture.waiting.items.len(),
        })
    }

    /// Moves within the list, never past its ends.
    pub(super) fn scroll(&mut self, by: i32) {
        for list in LISTS {
            let last = self.lines(list).saturating_sub(1);
            let at = &mut self.first[Self::at(list)];
            let moved = if list == self.list { by } else { 0 };
            let to = (*at as i64).saturating_add(i64::from(moved)).clamp(0, last as i64);
            *at = usize::try_from(to).unwrap_or(0);
        }
    }

    /// The first line of a list that is shown.
    pub(super) fn first(&self, list: List) -> usize {
        self.first[Self::at(list)]
    }
}
