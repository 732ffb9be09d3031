//! The compression of fields from outside: blocks in, fields out, and back.

mod entry;
mod generate;
mod naive;
mod naive_encoder;

mod appendix_c;
mod generated;
mod rules;
