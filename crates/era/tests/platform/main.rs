//! The platform as a user meets it: the real server on a free port, the real command line.

mod harness;
mod story;
