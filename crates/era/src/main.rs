//! The one binary of ERA.

mod bench;
mod seeded;

use clap::{Parser, Subcommand};

/// The scheduler that answers a bid with a price and a guaranteed slot
#[derive(Parser)]
#[command(name = "era", version, arg_required_else_help = true)]
struct Era {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure the core on seeded work
    #[command(subcommand)]
    Bench(bench::Bench),
}

fn main() -> anyhow::Result<()> {
    match Era::parse().command {
        Command::Bench(bench) => bench::run(&bench),
    }
}
