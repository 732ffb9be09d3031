//! `weir find` as a process: lists in files, and a script that answers as Consul's documentation says.

use crate::shared::common::{Scratch, weir};
use crate::shared::serve::{Origin, PATIENCE, Weir, closed_port, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

const API: &str = "api = find.file(\"api.json\", lambda: server(\"app\"))\n\
                   listen(\"127.0.0.1:0\", lb.random(api), name = \"web\")\n";

const TWO: &str = "api = find.file(\"api.json\", lambda: server(\"app\"))\n\
                   gone = find.file(\"gone.json\", lambda: server(\"app\"))\n\
                   listen(\"127.0.0.1:0\", lb.random([api, gone]), name = \"web\")\n";

/// A folder with this topology as `a.star`, and this list as `api.json`.
fn folder(topology: &str, list: &str) -> Scratch {
    let scratch = Scratch::new("find");
    scratch.file("a.star", topology);
    scratch.file("api.json", list);
    scratch
}

/// `weir find a.star` with these arguments in a folder.
fn command(scratch: &Scratch, args: &[&str]) -> Command {
    let mut command = weir();
    command.args(["find", "a.star"]).args(args).current_dir(scratch.path(""));
    command
}

/// What it ended with: exit code, standard output, standard error.
fn find(scratch: &Scratch, args: &[&str]) -> (Option<i32>, String, String) {
    let output = command(scratch, args).output().expect("the binary starts");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// It was wrong usage: this was said, and nothing was printed.
#[track_caller]
fn refuses(scratch: &Scratch, args: &[&str], says: &[&str]) {
    let (code, out, err) = find(scratch, args);
    assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
    for say in says {
        assert!(err.contains(say), "`{say}` is not in: {err}");
    }
}

fn document(text: &str) -> Value {
    let document: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(document["schema"], "weir.find/1");
    document
}

/// A member as a document has it.
fn member(addr: &str, id: Option<&str>, weight: f64, state: &str) -> Value {
    json!({"addr": addr, "id": id, "weight": weight, "state": state})
}

/// The addresses of a fleet's members in a document.
fn addresses(document: &Value, fleet: usize) -> Vec<&str> {
    let members = document["fleets"][fleet]["members"].as_array().expect("a list");
    let mut addresses: Vec<&str> = members.iter().filter_map(|member| member["addr"].as_str()).collect();
    addresses.sort_unstable();
    addresses
}

#[test]
fn the_members_of_a_file_have_state_weight_and_id() {
    let list = r#"["10.0.0.1:80", {"addr": "10.0.0.2:8080", "weight": 2, "id": "b"},
                   {"addr": "10.0.0.3:80", "state": "drain"}]"#;
    let scratch = folder(API, list);
    let (code, out, err) = find(&scratch, &["--quiet"]);
    let wanted = "\
api (file api.json): 3 members
  10.0.0.1:80    up     weight 1
  10.0.0.2:8080  up     weight 2  b
  10.0.0.3:80    drain  weight 1
";
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), wanted, ""));
    let (code, out, _) = find(&scratch, &["api", "--output", "json"]);
    assert_eq!(code, Some(0));
    let members = [
        member("10.0.0.1:80", None, 1.0, "up"),
        member("10.0.0.2:8080", Some("b"), 2.0, "up"),
        member("10.0.0.3:80", None, 1.0, "drain"),
    ];
    let fleet = json!({"fleet": "api", "source": "file api.json", "members": members, "error": null});
    assert_eq!(document(&out), json!({"schema": "weir.find/1", "fleets": [fleet]}));
}

/// Another source's list is printed all the same.
#[test]
fn a_source_without_a_list_is_exit_code_3() {
    let scratch = folder(TWO, r#"["10.0.0.1:80"]"#);
    let (code, out, err) = find(&scratch, &[]);
    assert_eq!(code, Some(3), "{err}");
    assert!(out.starts_with("api (file api.json): 1 member\n  10.0.0.1:80  up  weight 1\n"), "{out}");
    assert!(out.contains("\ngone (file gone.json): no list: ") && out.contains("no such file"), "{out}");
    assert!(err.contains("error: no list of members for gone\n"), "{err}");
    let (code, out, _) = find(&scratch, &["gone", "--output", "json"]);
    assert_eq!(code, Some(3));
    let document = document(&out);
    assert_eq!((document["fleets"].as_array().map(Vec::len), addresses(&document, 0)), (Some(1), vec![]));
    assert!(document["fleets"][0]["error"].as_str().is_some_and(|why| why.contains("no such file")));
}

#[test]
fn entries_that_do_not_count_are_lines_on_standard_error() {
    let scratch = folder(API, r#"["10.0.0.1:80", "10.0.0.2"]"#);
    let (code, out, err) = find(&scratch, &[]);
    assert_eq!((code, out.lines().count()), (Some(0), 2), "{err}");
    assert!(err.contains("warning: api (file api.json): an entry is left out: "), "{err}");
    assert!(err.contains("10.0.0.2"), "{err}");
    assert_eq!(find(&scratch, &["--quiet"]).2, "");
}

#[test]
fn what_cannot_be_asked_is_said_with_a_remedy() {
    let scratch = folder(TWO, "[]");
    refuses(&scratch, &["aip"], &["no fleet `aip`", "did you mean `api`?", "It has api, gone"]);
    refuses(&scratch, &["quite-another"], &["no fleet `quite-another`", "It has api, gone"]);
    scratch.file("a.star", "listen(\"127.0.0.1:0\", server(\"app\"), name = \"web\")\n");
    refuses(&scratch, &[], &["a.star has no fleet", "weir help find"]);
    let sized = API.replacen("(\"app\"))", "(\"app\"), size = n)", 1);
    scratch.file("a.star", format!("n = param(\"n\", 1, sweep = [1, 2])\n{sized}"));
    refuses(&scratch, &[], &["n is swept", "-p n="]);
    assert_eq!(find(&scratch, &["-p", "n=2"]).0, Some(0));
}

/// An instance of a service, as `/v1/health/service` lists it.
fn instance(id: &str, addr: &str) -> Value {
    json!({
        "Node": {"ID": "n-1", "Node": "n", "Address": "10.0.0.9", "Datacenter": "dc1"},
        "Service": {
            "ID": id, "Service": "web", "Tags": [], "Address": addr, "Port": 80,
            "Weights": {"Passing": 1, "Warning": 1},
        },
        "Checks": [{"CheckID": "c", "Status": "passing"}],
    })
}

fn answer(index: u64, instances: &[Value]) -> Vec<u8> {
    let body = json!(instances).to_string();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Consul-Index: {index}\r\n\
         X-Consul-Knownleader: true\r\nX-Consul-Lastcontact: 0\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A stand-in for Consul that knows the service `web` with one instance. Each blocking query is answered by
/// what comes next.
fn consul(next: Receiver<Vec<u8>>) -> Origin {
    let next = Mutex::new(next);
    Origin::new(move |peer| {
        loop {
            let request = peer.request()?;
            let target = request.target();
            if target.contains("index=7") || target.contains("index=8") {
                let Ok(bytes) = next.lock().expect("no panic").recv_timeout(PATIENCE) else {
                    return peer.wait_for_end();
                };
                peer.send(bytes)?;
            } else if target.starts_with("/v1/health/service/web") {
                peer.send(answer(7, &[instance("web-1", "10.0.0.1")]))?;
            } else {
                peer.send(answer(7, &[]))?;
            }
        }
    })
}

/// A fleet of each of these services.
fn services(addr: &str, names: &[&str]) -> String {
    let fleet = |name: &&str| {
        format!("{name} = find.consul(\"http://{addr}\", \"{name}\", lambda: server(\"app\"))\n")
    };
    let fleets: String = names.iter().map(fleet).collect();
    format!("{fleets}listen(\"127.0.0.1:0\", lb.random([{}]), name = \"front\")\n", names.join(", "))
}

#[test]
fn a_registry_is_asked_and_a_service_that_it_does_not_know_is_an_empty_list() {
    let (_next, answers) = channel();
    let consul = consul(answers);
    let scratch = folder(&services(consul.addr(), &["web", "ghost"]), "[]");
    let (code, out, err) = find(&scratch, &[]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.starts_with("web (consul web): 1 member\n  10.0.0.1:80  up  weight 1"), "{out}");
    assert!(out.ends_with("\nghost (consul ghost): 0 members\n"), "{out}");
    let wanted = "warning: ghost (consul ghost): the list is empty: Consul knows no service `ghost`";
    assert!(err.contains(wanted), "{err}");
    // Nothing listens there.
    scratch.file("a.star", services(&closed_port().to_string(), &["web"]));
    let (code, out, err) = find(&scratch, &[]);
    assert_eq!(code, Some(3), "{err}");
    assert!(out.starts_with("web (consul web): no list: "), "{out}");
}

/// `weir find a.star --watch` with these arguments.
fn watch(scratch: Scratch, args: &[&str]) -> Weir {
    let mut command = command(&scratch, &["--watch"]);
    command.args(args);
    Weir::begin(command, scratch)
}

#[track_caller]
fn line(weir: &Weir) -> String {
    weir.line(PATIENCE).unwrap_or_else(|| panic!("nothing comes: {}", weir.err()))
}

/// The next line without its time, which is a time.
#[track_caller]
fn change(weir: &Weir) -> String {
    let line = line(weir);
    let (time, rest) = line.split_once(' ').expect("a time");
    let parts: Vec<u32> = time.split(':').map(|part| part.parse().expect("a number")).collect();
    assert!(matches!(parts[..], [0..24, 0..60, 0..60]), "{line}");
    rest.to_owned()
}

/// Moves another list over `api.json`.
fn replace(scratch: &Scratch, list: &str) {
    scratch.file("new", list);
    fs::rename(scratch.path("new"), scratch.path("api.json")).expect("a file");
}

#[test]
fn a_watch_prints_everything_and_then_each_change() {
    let mut weir = watch(folder(API, r#"["10.0.0.1:80", "10.0.0.2:80"]"#), &[]);
    assert_eq!(line(&weir), "api (file api.json): 2 members");
    assert_eq!(line(&weir), "  10.0.0.1:80  up  weight 1");
    assert_eq!(line(&weir), "  10.0.0.2:80  up  weight 1");
    replace(&weir.scratch, r#"[{"addr": "10.0.0.2:80", "state": "drain"}, "10.0.0.3:80"]"#);
    assert_eq!(change(&weir), "api: + 10.0.0.3:80  - 10.0.0.1:80  ~ 10.0.0.2:80 drain");
    fs::remove_file(weir.scratch.path("api.json")).expect("it is there");
    let gone = change(&weir);
    assert!(gone.starts_with("api: no list: "), "{gone}");
    replace(&weir.scratch, r#"["10.0.0.3:80"]"#);
    assert_eq!(change(&weir), "api: - 10.0.0.2:80");
    weir.signal(Signal::INT);
    assert_eq!(weir.ends(), Some(130), "{}", weir.err());
}

#[test]
fn a_watch_in_json_is_a_document_a_line() {
    let (next, answers) = channel();
    let consul = consul(answers);
    let weir = watch(folder(&services(consul.addr(), &["web"]), "[]"), &["--output", "json"]);
    assert_eq!(addresses(&document(&line(&weir)), 0), ["10.0.0.1:80"]);
    let two = [instance("web-1", "10.0.0.1"), instance("web-2", "10.0.0.2")];
    next.send(answer(8, &two)).expect("it waits");
    assert_eq!(addresses(&document(&line(&weir)), 0), ["10.0.0.1:80", "10.0.0.2:80"]);
    next.send(answer(8, &two[1..])).expect("it waits");
    assert_eq!(addresses(&document(&line(&weir)), 0), ["10.0.0.2:80"]);
}

#[test]
fn a_watch_ends_when_its_reader_has_left() {
    let scratch = folder(API, r#"["10.0.0.1:80"]"#);
    let mut command = command(&scratch, &["--watch"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the binary starts");
    let out = child.stdout.take().expect("piped");
    let (tell, first) = channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(out).read_line(&mut line);
        // The pipe is closed by now.
        let _ = tell.send(line);
    });
    let line = first.recv_timeout(PATIENCE);
    replace(&scratch, r#"["10.0.0.2:80"]"#);
    let has_ended = until(|| child.try_wait().is_ok_and(|ended| ended.is_some()));
    let _ = child.kill();
    let code = child.wait().expect("it can be waited for").code();
    assert_eq!(line.as_deref(), Ok("api (file api.json): 1 member\n"));
    assert_eq!((has_ended, code), (true, Some(0)));
}
