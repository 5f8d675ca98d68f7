//! `era retry`: submits an ended job again, once its price is agreed to.

use era_api::Credits;
use era_api::client::Client;
use era_api::quote::QuoteAsk;

use super::connection::Common;
use super::exit::{BadUsage, ExitWith, INTERRUPTED};
use super::look::{self, Look, note, quote};
use super::{cost, prompt, submit};

/// Submit an ended job again, as a new job
///
/// The new job finds a copy of the other's checkpoints among its own, to go on from.
///
/// A job that had a promise shows what one costs now, and asks. A window that has passed begins
/// now, and is as long as it was.
#[derive(Debug, clap::Args)]
pub(crate) struct Retry {
    /// The ended job's number
    #[arg(value_name = "JOB")]
    id: u64,
    /// Take the price without asking; needed where nobody can be asked
    #[arg(short, long)]
    yes: bool,
    /// Leave its checkpoints behind, and begin anew
    #[arg(long)]
    fresh: bool,
    #[command(flatten)]
    common: Common,
}

impl Retry {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let (client, look) = (self.common.client()?, self.common.look());
        let most = self.agree(&client, &look)?;
        let submitted = client.retry(self.id, most, self.fresh)?;
        look::print(self.common.output, &submitted, |s| {
            submit::render(s, submit::standing(&client, s).as_ref(), &look)
        })
    }

    /// Shows what it costs now, and asks; the price of a promise.
    fn agree(&self, client: &Client, look: &Look) -> anyhow::Result<Option<Credits>> {
        let again = client.again(self.id)?;
        if !again.promise {
            cost::tell(client, &again.job);
            return Ok(None);
        }
        if !self.yes && !prompt::somebody_there() {
            let what = "nobody can be asked here whether to take the price: -y takes it";
            return Err(BadUsage(what.to_owned()).into());
        }
        let quoted = client.quote(&QuoteAsk::of(&again.job))?.quote;
        note(quote::line(&quoted, look).trim_end());
        if !self.yes && !prompt::yes("Take it?")? {
            return Err(ExitWith(INTERRUPTED).into());
        }
        Ok(Some(quoted.price))
    }
}
