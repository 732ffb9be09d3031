//! The admin interface of a served topology: read over HTTP, and changed by authorised requests.
//!
//! It has a thread of its own and knows the topology only by [`Served`], whose answers may take a second and are
//! waited for on other threads. So a slow reader, half a request or a hundred connections cost clients of the proxy
//! nothing. Only this crate uses hyper.
#![forbid(unsafe_code)]

mod access;
mod age;
mod answer;
pub mod client;
mod connections;
mod events;
mod limits;
mod page;
mod places;
mod post;
mod route;
mod served;
mod server;
mod stalls;
mod start;
mod topology;
mod watcher;

pub use served::Service;
pub use start::{Admin, Bound, CannotStart, Options};
