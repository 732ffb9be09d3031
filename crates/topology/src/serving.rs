//! stub
#![allow(missing_docs)]
use crate::plan::Point;
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role { Proxy, Model, LeftOut, BuiltIn, Inside }
pub struct Serving { pub roles: Vec<Role>, pub notes: Vec<String> }
pub fn serving(_p: &Point) -> Serving { Serving { roles: vec![], notes: vec![] } }
