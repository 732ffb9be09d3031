//! The admin interface of a served topology: what it does is read over HTTP, and changed by those who may.
//!
//! It has a thread of its own and knows what is served only by [`Served`], whose answers may take a second and are waited for on threads
//! beside it. So a slow reader, half a request or a hundred connections cost clients of the proxy nothing.
#![forbid(unsafe_code)]

mod access;
mod answer;
pub mod client;
mod events;
mod limits;
mod page;
mod post;
mod route;
mod served;
mod server;
mod stalls;
mod start;
mod topology;
mod watcher;

pub use served::Served;
pub use start::{Admin, Bound, CannotStart, Options};
