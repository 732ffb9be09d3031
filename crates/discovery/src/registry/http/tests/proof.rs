//! How a client proves itself: tokens and passwords in files, which are read anew at each connection.

use super::super::{Client, Credentials, trust};
use super::{ask, client, run};
use crate::fault::FaultKind;
use crate::file::folder::Folder;
use crate::registry::fake::{BOUND, Fake, Reply};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A client with these credentials.
fn client_with(fake: &Fake, credentials: Credentials) -> Client {
    client(&fake.url, trust(None), Some(credentials))
}

/// A registry that answers with the fields of the question.
fn echo() -> Fake {
    Fake::start(|question| Reply::Json(question.fields.clone()))
}

#[test]
fn each_kind_has_its_field() {
    let folder = Folder::new("http-kinds");
    folder.write("password", "user:pass\n");
    folder.write("token", "  token-1\r\n\n");
    let (password, token) = (folder.path("password"), folder.path("token"));
    let fake = echo();
    for (credentials, field) in [
        (Credentials::Basic(password), "authorization: Basic dXNlcjpwYXNz\n"),
        (Credentials::Bearer(token.clone()), "authorization: Bearer token-1\n"),
        (Credentials::Token("token-2".to_owned()), "authorization: Bearer token-2\n"),
        (Credentials::Consul(token), "x-consul-token: token-1\n"),
    ] {
        let answer = run(async { client_with(&fake, credentials).get("/", BOUND).await });
        let answer = answer.expect("an answer");
        assert!(answer.json().expect("fields").contains(field), "{answer:?}");
    }
    let answer = ask(&fake, BOUND).expect("an answer");
    let fields = answer.json().expect("fields");
    assert!(!fields.contains("authorization") && !fields.contains("token"), "{fields}");
    for field in ["host: 127.0.0.1:", "accept: application/json\n", "user-agent: weir\n"] {
        assert!(fields.contains(field), "{fields}");
    }
}

#[test]
fn a_file_that_holds_no_secret_is_a_fault_and_no_question() {
    let folder = Folder::new("http-secrets");
    let large = "a".repeat((64 << 10) + 1);
    let files: [(&str, &[u8]); 6] = [
        ("empty", b""),
        ("blank", b" \n\n"),
        ("large", large.as_bytes()),
        ("lines", b"user:hush-1\nuser:hush-2\n"),
        ("control", b"hush-1\0hush-2"),
        ("latin-1", b"t\xf6ken"),
    ];
    files.iter().for_each(|(name, bytes)| folder.write(name, bytes));
    let count = Arc::new(AtomicUsize::new(0));
    let questions = count.clone();
    let fake = Fake::start(move |_| {
        questions.fetch_add(1, Ordering::SeqCst);
        Reply::Json("[]".to_owned())
    });
    // The folder itself, and a file that is missing, too.
    let names = files.iter().map(|(name, _)| *name).chain(["", "missing"]);
    for path in names.map(|name| folder.path(name)) {
        let kinds = [
            (Credentials::Basic(path.clone()), "write `user:password` into it"),
            (Credentials::Bearer(path.clone()), "write the token into it"),
            (Credentials::Consul(path.clone()), "write the token into it"),
        ];
        for (kind, remedy) in kinds {
            let answer = run(async { client_with(&fake, kind).get("/", BOUND).await });
            let defect = answer.expect_err("no secret");
            let text = defect.to_string();
            assert_eq!(defect.kind, FaultKind::Settings, "{text}");
            assert!(text.contains(&format!("the file {} cannot be used", path.display())), "{text}");
            assert!(text.ends_with(remedy), "{text}");
            assert!(!text.contains("hush"), "{text}");
        }
    }
    assert_eq!(count.load(Ordering::SeqCst), 0);
}

#[test]
fn a_token_that_no_field_may_have_is_a_fault() {
    let credentials = Credentials::Token("one\ntwo".to_owned());
    let answer = run(async { client_with(&echo(), credentials).get("/", BOUND).await });
    let defect = answer.expect_err("no field");
    assert_eq!(defect.kind, FaultKind::Settings, "{defect}");
    assert!(defect.to_string().contains("a character that no HTTP field may have"), "{defect}");
}

/// A registry that lets weir in by this token, and refuses others with this status.
fn guard(status: u16, token: &'static str) -> Fake {
    Fake::start(move |question| {
        let is_right = question.fields.contains(&format!("authorization: Bearer {token}\n"));
        // The former one is good for this path alone.
        if is_right || question.target == "/first" {
            return Reply::Json("[]".to_owned());
        }
        Reply::Other(status, Vec::new(), String::new())
    })
}

#[test]
fn a_token_that_is_replaced_counts_after_a_refusal() {
    for status in [401, 403] {
        let folder = Folder::new(&format!("http-replaced-{status}"));
        folder.write("token", "one");
        let fake = guard(status, "two");
        run(async {
            let mut client = client_with(&fake, Credentials::Bearer(folder.path("token")));
            assert!(client.get("/first", BOUND).await.expect("an answer").json().is_ok());
            // The connection is kept, and proves itself as before.
            folder.write("token", "two");
            assert!(client.get("/first", BOUND).await.expect("an answer").json().is_ok());
            let answer = client.get("/second", BOUND).await.expect("an answer");
            let defect = answer.json().expect_err("a token that has expired");
            assert_eq!(defect.kind, FaultKind::Forbidden, "{defect}");
            for _ in 0..2 {
                assert!(client.get("/second", BOUND).await.expect("an answer").json().is_ok());
            }
        });
    }
}

#[test]
fn a_token_is_read_at_each_connection() {
    let folder = Folder::new("http-anew");
    let fake = echo();
    run(async {
        let mut client = client_with(&fake, Credentials::Bearer(folder.path("token")));
        client.get("/", BOUND).await.expect_err("no file yet");
        for token in ["one", "two"] {
            folder.write("token", token);
            // A watch has a connection of its own.
            let mut lines = client.watch("/", BOUND).await.expect("an answer").expect("lines");
            let mut has_token = false;
            while let Some(line) = lines.next(BOUND).await.expect("a line or the end") {
                has_token |= line == format!("authorization: Bearer {token}").as_bytes();
            }
            assert!(has_token, "{token}");
        }
        client.get("/", BOUND).await.expect("an answer");
        // A connection that is kept needs no file.
        std::fs::remove_file(folder.path("token")).expect("a file");
        let answer = client.get("/", BOUND).await.expect("an answer");
        assert!(answer.json().expect("fields").contains("Bearer two\n"), "{answer:?}");
    });
}
