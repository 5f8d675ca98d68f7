//! Who waits, and in which order.
//!
//! An administrator writes a [`formula`] over what is known about a waiting job; its value, a
//! [`fixed`]-point number, is the job's priority. Where a job could run is not known here.

pub mod fixed;
pub mod formula;
