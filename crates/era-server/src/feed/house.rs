//! News that are not in the journal: accounts, data sets and the laboratory. They are told to
//! whoever listens at that moment, and kept for nobody: they only say that a look is worth while.

use era_core::units::{GroupId, UserId};
use era_store::tables::Seen;

/// What changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum House {
    /// A data set or its files. Everybody hears that, and not which.
    Data,
    /// An account, its tokens, its money or its limits, or a group's.
    Account(Option<UserId>, Option<GroupId>),
    /// A run of the laboratory, which is for administrators.
    Lab,
}

impl House {
    /// Whether somebody who may see so much hears of it.
    pub fn is_for(self, seen: Seen) -> bool {
        match self {
            House::Data => true,
            House::Account(account, team) => seen.allows(account, team),
            House::Lab => seen == Seen::All,
        }
    }

    /// As it is told.
    pub fn event(self) -> era_api::event::Event {
        let (kind, sentence) = match self {
            House::Data => ("data_changed", "Data sets changed."),
            House::Account(..) => ("account_changed", "Accounts or groups changed."),
            House::Lab => ("lab_changed", "The laboratory got on."),
        };
        era_api::event::Event {
            id: String::new(),
            at: era_api::Timestamp::now(),
            event: kind.to_owned(),
            job: None,
            user: None,
            sentence: sentence.to_owned(),
            parameters: era_api::Parameters::new(),
        }
    }
}
