//! The codec from outside: bytes in, bytes out.

mod case;
mod escape;
mod way;

mod golden;
mod whole;
