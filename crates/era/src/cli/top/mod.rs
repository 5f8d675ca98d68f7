//! `era top`: the cluster live, full screen. [`view`] is what is shown, [`draw`] how; this file
//! asks the server, listens to keys, and gives the terminal back whatever happens.

mod draw;
mod view;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use anyhow::bail;
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use era_api::client::Client;
use era_api::cluster::NodeFilter;
use era_api::job::JobFilter;

use super::connection::Common;
use super::exit::BadUsage;
use crate::clock::instant;
use view::{Picture, View};

/// Watch the cluster: nodes, GPUs, running and waiting jobs, prices
///
/// Keys: q leaves, Tab goes to the next list, the arrows move, p pauses, r asks again at once.
#[derive(Debug, clap::Args)]
pub(crate) struct Top {
    /// Seconds between two looks
    #[arg(short, long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    every: u64,
    #[command(flatten)]
    common: Common,
}

impl Top {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        use std::io::IsTerminal;
        if !std::io::stdout().is_terminal() {
            bail!(BadUsage("`era top` needs a terminal: `era nodes` and `era jobs` do not".into()));
        }
        let client = self.common.client()?;
        // Asked once before the screen is taken, so that a refusal is told as any other.
        let first = ask(&client)?;
        let mut view = View::new(client.url(), self.common.look());
        view.take(Ok(first));
        let (wanted, pictures) = watcher(client);
        // Restores the terminal also on a panic.
        let mut terminal = ratatui::try_init()?;
        let end = watch(&mut terminal, &mut view, self.every, &wanted, &pictures);
        ratatui::try_restore()?;
        end
    }
}

/// A thread that asks the server each time it is told to, so that keys never wait for it.
fn watcher(client: Client) -> (Sender<()>, Receiver<Result<Picture, String>>) {
    let (wanted, asked) = channel::<()>();
    let (sender, pictures) = channel();
    std::thread::spawn(move || {
        for () in asked {
            let picture = ask(&client).map_err(|error| crate::cli::told(&error));
            if sender.send(picture).is_err() {
                return;
            }
        }
    });
    (wanted, pictures)
}

fn ask(client: &Client) -> anyhow::Result<Picture> {
    let jobs = |state: &str| {
        let filter =
            JobFilter { state: Some(state.to_owned()), limit: Some(200), ..JobFilter::default() };
        client.jobs(&filter)
    };
    Ok(Picture {
        nodes: client.nodes(&NodeFilter::default())?,
        running: jobs("running,starting,stopping")?,
        waiting: jobs("waiting,promised")?,
        market: client.market()?,
        utilisation: client.utilisation(&era_api::client::TimeRange::default())?,
    })
}

fn watch(
    terminal: &mut ratatui::DefaultTerminal,
    view: &mut View,
    every_s: u64,
    wanted: &Sender<()>,
    pictures: &Receiver<Result<Picture, String>>,
) -> anyhow::Result<()> {
    let every = Duration::from_secs(every_s);
    let mut due = instant() + every;
    let mut asking = false;
    loop {
        terminal.draw(|frame| draw::draw(frame, view))?;
        if !asking && !view.paused && instant() >= due {
            // The other end is gone only once this one is.
            let _ = wanted.send(());
            asking = true;
        }
        if event::poll(Duration::from_millis(100))? {
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    if !pressed(view, key) {
                        return Ok(());
                    }
                    if key.code == KeyCode::Char('r') {
                        due = instant();
                    }
                }
                _ => {}
            }
        }
        while let Ok(picture) = pictures.try_recv() {
            view.take(picture);
            asking = false;
            due = instant() + every;
        }
    }
}

/// What a key does; `false` leaves.
fn pressed(view: &mut View, key: KeyEvent) -> bool {
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => return false,
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return false,
        KeyCode::Char('p' | ' ') => view.paused = !view.paused,
        KeyCode::Tab | KeyCode::Right => view.next_list(),
        KeyCode::BackTab | KeyCode::Left => view.previous_list(),
        KeyCode::Down | KeyCode::Char('j') => view.scroll(1),
        KeyCode::Up | KeyCode::Char('k') => view.scroll(-1),
        KeyCode::PageDown => view.scroll(10),
        KeyCode::PageUp => view.scroll(-10),
        KeyCode::Home => view.scroll(i32::MIN),
        _ => {}
    }
    true
}

#[cfg(test)]
mod tests;
