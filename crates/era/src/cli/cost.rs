//! What work for a queue can cost, in words. How much that is, the server says.

use era_api::Credits;
use era_api::client::Client;
use era_api::job::JobSpec;

use super::look::note;

/// Says what a job can cost at most, where the server tells it.
pub(crate) fn tell(client: &Client, job: &JobSpec) {
    if let Some(most) = client.check(job).ok().and_then(|checked| checked.at_most) {
        note(&in_words(most));
    }
}

/// The same as a sentence.
pub(crate) fn in_words(most: Credits) -> String {
    format!("It costs {most} credits at most; it pays for what it uses.")
}
