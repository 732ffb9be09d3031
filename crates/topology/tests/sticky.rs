//! `sticky_key=`: a file that is looked at, and whose path the plan keeps.

use std::path::PathBuf;
use weir_plan::{Diagnostic, sticky};
use weir_plan::{Plan, Spec};
use weir_topology::{Request, evaluate};

/// A separate folder, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("weir-{name}-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("sub")).expect("a folder");
        Folder(folder)
    }

    fn file(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.0.join(name), bytes).expect("a file");
    }

    fn path(&self, name: &str) -> Option<String> {
        self.0.join(name).to_str().map(str::to_owned)
    }

    fn evaluated(&self, source: &str) -> Result<Plan, Vec<Diagnostic>> {
        let path = Some(self.0.join("t.star"));
        let source = source.as_bytes().to_vec();
        evaluate(&Request { name: "t.star".into(), path, source, ..Request::default() }).map(|done| done.plan)
    }

    /// The plan of a balancer with these arguments.
    fn plan(&self, arguments: &str) -> Plan {
        self.evaluated(&format!("lb.random([server()], {arguments})\n")).expect(arguments)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn key(plan: &Plan) -> Option<String> {
    let of = |spec: &Spec| if let Spec::Lb(lb) = spec { lb.sticky_key.clone() } else { None };
    plan.points[0].specs.iter().find_map(of)
}

#[test]
fn the_plan_keeps_the_path_and_hashes_that_there_is_one() {
    let folder = Folder::new("sticky-kept");
    folder.file("good.key", &[7; 16]);
    folder.file("sub/other.key", &[7; 32]);
    let loaded = "def kept(): return lb.random([server()], sticky=\"a\", sticky_key=\"other.key\")\n";
    folder.file("sub/other.star", loaded.as_bytes());
    let plain = folder.plan("sticky=\"a\"");
    assert_eq!(key(&plain), None);
    let text = |plan: &Plan| String::from_utf8(plan.to_json()).expect("UTF-8");
    assert!(!text(&plain).contains("sticky_key"), "a default is not written");
    let keyed = folder.plan("sticky=\"a\", sticky_key=\"good.key\"");
    assert_eq!(key(&keyed), folder.path("good.key"));
    let other = folder.plan("sticky=\"a\", sticky_key=\"sub/other.key\"");
    assert!(keyed.hash != plain.hash && keyed.hash == other.hash, "paths are no part of it");
    let loaded = folder.evaluated("load(\"sub/other.star\", \"kept\")\nkept()\n").expect("loads");
    assert_eq!(key(&loaded), folder.path("sub/other.key"), "beside the file that names it");
    assert_eq!(Plan::from_json(&keyed.to_json()).expect("reads"), keyed);
    let alone = text(&keyed).replace("\"sticky\":\"a\"", "\"sticky\":null");
    let why = Plan::from_json(alone.as_bytes()).expect_err("no cookie").to_string();
    assert!(why.contains("sticky_key"), "{why}");
}

/// A file may go or change between two readings; all balancers that name it are at one place here.
#[test]
fn keys_are_read_whenever_they_are_asked_for() {
    let folder = Folder::new("sticky-read");
    folder.file("a.key", &[7; 16]);
    let source = "a = lb.random([server()], sticky=\"a\")\n\
                  x = pool(2, lambda: lb.random([a], sticky=\"x\", sticky_key=\"a.key\"))\nlb.random(x)\n";
    let plan = folder.evaluated(source).expect("a plan");
    let read = || sticky::keys(&plan.points[0]).map(|keys| keys.into_values().collect::<Vec<_>>());
    let seven = sticky::of_file(&[7; 16]).expect("long enough");
    assert_eq!(read(), Ok(vec![sticky::of_name("a"), seven, seven]));
    folder.file("a.key", &[8; 16]);
    let eight = sticky::of_file(&[8; 16]).expect("long enough");
    assert_eq!(read(), Ok(vec![sticky::of_name("a"), eight, eight]));
    folder.file("a.key", &[8; 3]);
    let said = read().expect_err("too short");
    assert_eq!(said.len(), 1, "once: {said:?}");
    let said = said[0].to_string();
    assert!(
        said.contains("has 3 bytes") && said.contains("t.star:2:21") && said.contains("= help"),
        "{said}"
    );
}

#[test]
fn a_file_that_is_no_key_is_an_error_with_its_place() {
    let folder = Folder::new("sticky-wrong");
    folder.file("short.key", &[7; 15]);
    folder.file("long.key", &[7; 65_537]);
    for (name, says) in [
        ("short.key", "has 15 bytes, but a key needs at least 16"),
        ("long.key", "is larger than 64 KiB"),
        ("sub", "is not a regular file"),
        ("no.key", "cannot be read: there is no such file"),
    ] {
        let source = format!("x = 1\nlb.random([server()], sticky=\"a\", sticky_key=\"{name}\")\n");
        let said = folder.evaluated(&source).expect_err(name)[0].to_string();
        for part in [says, name, "t.star:2:1", "/dev/urandom"] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
