//! The codec from outside: bytes in, bytes out.

mod case;
mod entry;
mod escape;
mod generate;
mod way;

mod cuts;
mod generated;
mod golden;
mod http11;
mod hyper_requests;
mod hyper_responses;
mod smuggler;
mod whole;
