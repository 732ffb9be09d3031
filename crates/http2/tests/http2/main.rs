//! The codec from outside: a connection of one role, and a peer that is bytes, or a connection of the other role.

mod end;
mod wire;

mod connection;
mod cuts;
mod floods;
mod goaway;
mod malformed_answers;
mod malformed_requests;
mod priorities;
mod random_peer;
mod requests;
mod settings;
mod states;
mod talks;
mod windows;
