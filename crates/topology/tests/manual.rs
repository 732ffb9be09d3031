//! Every function and every argument is explained, every example runs, and every default is the documented one.

use std::path::PathBuf;
use std::sync::Once;
use weir_plan::{Diagnostic, Plan};
use weir_topology::manual::{FIGURES, Fallback, functions, kinds, near};
use weir_topology::{Request, evaluate};

/// The data file is written once.
static WRITTEN: Once = Once::new();

/// Evaluates a file beside which lie the data files that examples name.
fn plan(source: &str) -> Result<Plan, String> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let data = folder.join("requests.csv");
    WRITTEN.call_once(|| {
        std::fs::write(&data, "arrival_ms,method,path\n1,GET,/\n2,POST,/a\n").expect("it can be written");
    });
    let path: Option<PathBuf> = Some(folder.join("example.star"));
    let request = Request {
        name: "example.star".into(),
        path,
        source: source.as_bytes().to_vec(),
        ..Request::default()
    };
    let said = |all: Vec<Diagnostic>| all.iter().map(|d| d.to_string() + "\n").collect::<String>();
    evaluate(&request).map(|e| e.plan).map_err(said)
}

#[test]
fn every_function_and_every_argument_has_a_meaning() {
    for f in functions() {
        let name = f.name;
        let ends = |text: &str| text.ends_with('.') && text.chars().next().is_some_and(char::is_uppercase);
        assert!(ends(f.meaning), "{name}: {}", f.meaning);
        for text in [f.simulated, f.served, f.draws] {
            assert!(!text.is_empty() && !text.ends_with('.'), "{name}: {text}");
        }
        for a in &f.arguments {
            assert!(!a.takes.is_empty() && !a.meaning.is_empty(), "`{}` of {name}", a.name);
            assert!(!a.meaning.ends_with('.'), "`{}` of {name}: {}", a.name, a.meaning);
        }
    }
    for k in kinds() {
        assert!(k.meaning.ends_with('.') && !k.client.is_empty() && !k.again.is_empty(), "{}", k.name);
    }
    assert!(FIGURES.iter().all(|f| f.meaning.ends_with('.') && !f.unit.is_empty()));
}

#[test]
fn every_example_uses_its_function_and_evaluates() {
    for f in functions() {
        assert!(call(f.example, f.name).is_some(), "the example of {} does not call it", f.name);
        if let Err(why) = plan(f.example) {
            panic!("the example of {}:\n{why}", f.name);
        }
        let fits = f.example.lines().all(|line| line.len() <= 78);
        assert!(fits, "the example of {} has a line of more than 78 characters", f.name);
    }
}

/// Writing a default out makes the same plan as leaving it out.
#[test]
fn every_default_is_the_one_that_is_told() {
    let mut compared = 0;
    for f in functions() {
        let without = plan(f.example).expect("evaluated above").hash;
        for a in &f.arguments {
            let Fallback::Value(value) = a.otherwise else { continue };
            let (from, to) = call(f.example, f.name).expect("found above");
            let inside = f.example[from..to].trim_end().trim_end_matches(',');
            let comma = if inside.is_empty() { "" } else { ", " };
            let source =
                format!("{}{inside}{comma}{}={value}{}", &f.example[..from], a.name, &f.example[to..]);
            match plan(&source) {
                Ok(plan) => {
                    assert_eq!(plan.hash, without, "`{}={value}` of {} changes the plan", a.name, f.name);
                    compared += 1;
                }
                Err(why) => assert!(
                    why.contains("given twice") || why.contains("repeated"),
                    "`{}={value}` of {}:\n{why}",
                    a.name,
                    f.name
                ),
            }
        }
    }
    assert!(compared > 250, "{compared}");
}

/// The location of the arguments of the first call of a function.
fn call(source: &str, name: &str) -> Option<(usize, usize)> {
    let wanted = format!("{name}(");
    let starts = |at: &usize| {
        source[..*at].chars().next_back().is_none_or(|c| !(c.is_alphanumeric() || c == '_' || c == '.'))
    };
    let at = source.match_indices(&wanted).map(|(at, _)| at).find(starts)?;
    let from = at + wanted.len();
    let mut depth = 1;
    for (i, c) in source[from..].char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((from, from + i));
        }
    }
    None
}

#[test]
fn near_names_are_found_by_letters_by_member_and_by_part() {
    let names: Vec<&str> = functions().iter().map(|f| f.name).collect();
    assert_eq!(near("qeue", &names), ["queue"]);
    assert_eq!(near("p2x", &names)[0], "lb.p2c");
    assert!(near("hash", &names).contains(&"lb.ring_hash"));
    assert!(near("banana", &names).is_empty());
}
