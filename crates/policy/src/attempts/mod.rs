//! How often a request is tried: retries, hedges, and the budgets that they are charged to.

pub mod budget;
pub mod hedge;
pub mod retry;
