//! The supervisor as a program: `FOLDER`, or `keeper`.

fn main() -> std::process::ExitCode {
    let first = std::env::args_os().nth(1).unwrap_or_default();
    let clock = era_cloud::clock::MachineClock::system();
    let done = if first == "keeper" {
        era_cloud::shim::keep(clock).map_err(|error| error.to_string())
    } else {
        era_cloud::shim::run(first.as_ref(), &["keeper".into()], clock)
            .map_err(|error| error.to_string())
    };
    match done {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            use std::io::Write as _;
            let _ = writeln!(std::io::stderr(), "{error}");
            std::process::ExitCode::FAILURE
        }
    }
}
