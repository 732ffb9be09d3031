//! The cookies of sticky balancers: a sender returns the cookie that it was given last.

use std::cell::RefCell;
use std::collections::HashMap;
use weir_plan::{Point, Scenario, Spec};
use weir_workload::reachable;

/// The cookies of all senders of a run.
#[derive(Debug, Default)]
pub(crate) struct Cookies {
    /// The names that balancers give their cookies.
    names: Vec<String>,
    /// By sender and name, the value.
    kept: RefCell<HashMap<String, Vec<Option<String>>>>,
}

impl Cookies {
    /// Empty, for the balancers that the scenario's requests can meet.
    pub fn new(point: &Point, scenario: &Scenario) -> Cookies {
        let mut names: Vec<String> = Vec::new();
        for (node, met) in point.nodes.iter().zip(reachable(point, &[scenario.root])) {
            if let Spec::Lb(lb) = &point.specs[node.spec as usize]
                && let Some(name) = lb.sticky.as_ref().filter(|name| met && !names.contains(name))
            {
                names.push(name.clone());
            }
        }
        Cookies { names, kept: RefCell::default() }
    }

    /// Whether answers to this sender are examined for cookies.
    pub fn are_kept(&self, sender: Option<&str>) -> bool {
        !self.names.is_empty() && sender.is_some()
    }

    /// The cookies of a sender, as a part of a Cookie field.
    pub fn field(&self, sender: Option<&str>) -> Option<String> {
        if self.names.is_empty() {
            return None;
        }
        let kept = self.kept.borrow();
        let values = self.names.iter().zip(kept.get(sender?)?);
        let pairs = values.filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
        let pairs: Vec<String> = pairs.collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }

    /// Stores a cookie of a sender, from the value of a Set-Cookie field (RFC 6265 §4.1.1), of which name and value
    /// matter.
    pub fn give(&self, sender: Option<&str>, field: &[u8]) {
        let Some((sender, field)) = sender.zip(std::str::from_utf8(field).ok()) else { return };
        let pair = field.split(';').next().unwrap_or_default();
        let Some((name, value)) = pair.split_once('=') else { return };
        let Some(index) = self.names.iter().position(|known| known == name.trim()) else { return };
        let mut kept = self.kept.borrow_mut();
        let values = kept.entry(sender.to_owned()).or_insert_with(|| vec![None; self.names.len()]);
        values[index] = Some(value.trim().to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_topology::{Request, evaluate};

    #[test]
    fn senders_bring_along_what_they_were_given_last() {
        let text = "a = lb.random([server(\"x\")], sticky = \"to\")\n\
                    b = lb.random([lb.random([server(\"y\")], sticky = \"to\")], sticky = \"via\")\n\
                    scenario(\"s\", b, traffic.poisson(rate = 1), requests = 1)\n\
                    scenario(\"none\", server(\"z\"), traffic.poisson(rate = 1), requests = 1)\n\
                    scenario(\"a\", a, traffic.poisson(rate = 1), requests = 1)\n";
        let request = Request { name: "a.star".into(), source: text.into(), ..Request::default() };
        let plan = evaluate(&request).expect("a plan").plan;
        let point = &plan.points[0];
        let cookies_of = |name: &str| {
            let scenario = point.scenarios.iter().find(|s| s.name == name).expect("it is there");
            Cookies::new(point, scenario)
        };
        let cookies = cookies_of("s");
        cookies.give(Some("u"), b"to=1; Path=/; HttpOnly");
        cookies.give(Some("u"), b"other=2");
        cookies.give(None, b"to=3");
        cookies.give(Some("v"), b"via = 4");
        cookies.give(Some("u"), b"to=5");
        cookies.give(Some("u"), b"nothing");
        assert_eq!(cookies.field(Some("u")).as_deref(), Some("to=5"));
        assert_eq!(cookies.field(Some("v")).as_deref(), Some("via=4"));
        cookies.give(Some("v"), b"to=6");
        let both = cookies.field(Some("v")).expect("two");
        assert!(both == "to=6; via=4" || both == "via=4; to=6", "{both}");
        assert_eq!((cookies.field(Some("w")), cookies.field(None)), (None, None));
        assert!(
            cookies.are_kept(Some("u")) && !cookies.are_kept(None) && !cookies_of("none").are_kept(Some("u"))
        );
        assert_eq!(cookies_of("a").names, ["to"]);
    }
}
