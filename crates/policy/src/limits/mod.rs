//! Which requests are admitted: rate limits.

pub mod rate;
