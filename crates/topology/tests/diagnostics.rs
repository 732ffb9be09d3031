//! Every message that a wrong file can bring, frozen in `diagnostics.txt`: name, source, what is said.
//!
//! `UPDATE=1 cargo test -p weir-topology --test diagnostics` rewrites that file; read the difference.

use weir_testkit::{assert_frozen, is_updating};
use weir_topology::{Request, evaluate};

fn says(source: &str) -> String {
    let request =
        Request { name: "t.star".to_owned(), source: source.as_bytes().to_vec(), ..Request::default() };
    let findings = match evaluate(&request) {
        Ok(done) => done.warnings,
        Err(findings) => findings,
    };
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n\n")
}

#[test]
fn messages_are_as_frozen() {
    let mut frozen = String::new();
    let mut wrong = Vec::new();
    for case in
        include_str!("diagnostics.txt").split("### ").filter(|c| !c.is_empty()).collect::<Vec<_>>().chunks(2)
    {
        let [head, said] = case else { panic!("a case without its message: {case:?}") };
        let (name, source) = head.split_once('\n').expect("a name and a source");
        let said = said.strip_prefix("says\n").expect("`### says`").trim_end();
        let now = says(source);
        frozen.push_str(&format!("### {name}\n{source}### says\n{now}\n\n"));
        if now != said {
            wrong.push(format!("== {name}\n-- was\n{said}\n-- is\n{now}"));
        }
    }
    assert!(is_updating() || wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert_frozen(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/diagnostics.txt"), &frozen);
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let request = Request {
        name: "t.star".to_owned(),
        source: b"a = 1\nb = \"\xff\"\n".to_vec(),
        ..Request::default()
    };
    let said = evaluate(&request).expect_err("refused");
    assert_eq!(
        said[0].to_string(),
        "error: the file is not UTF-8: byte 11 (line 2) belongs to no character\n --> t.star\n  = help: save it as UTF-8"
    );
}

#[test]
fn a_file_without_scenarios_is_no_error_here() {
    assert_eq!(says(""), "");
    assert_eq!(says("x = server()\n"), "");
}
