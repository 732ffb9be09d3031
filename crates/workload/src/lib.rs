//! Which requests a scenario sends, and when: the same for the simulator, in virtual time, and for the generator that
//! sends them for real. Sans-I/O: it may use `plan`, `policy`, `model` and `stats`, and knows neither `sim` nor `load`.
#![forbid(unsafe_code)]

mod drawn;
mod kinds;
pub mod parts;
mod places;
mod requests;
mod sending;

pub use drawn::{DRAWN, RequestDraws, RunRequest};
pub use kinds::mix;
pub use places::{Places, numbers, place_key, reachable, reached_from};
pub use requests::{Request, Requests};
pub use sending::{Load, Window, load_unless};
