//! `weir serve` between real clients and servers: `examples/edge.star` with curl, h2load, nghttp and a browser, gRPC
//! and WebSocket in Python. What is not installed is passed over, and said so.

use crate::shared::certificates::Authority;
use crate::shared::serve::{Weir, free_port, tell};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Whether a program is there and does this without a complaint.
fn runs(program: &str, args: &[&str]) -> bool {
    let ran = Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
    ran.is_ok_and(|status| status.success())
}

/// Whether a program is there.
fn has(program: &str) -> bool {
    let there = runs(program, &["--version"]);
    if !there {
        tell(&format!("{program} is not installed: passed over"));
    }
    there
}

/// The Python that has a module: the first on the path, or the system's own.
fn python(module: &str) -> Option<&'static str> {
    let import = format!("import {module}");
    let mut both = ["python3", "/usr/bin/python3"].into_iter();
    let found = both.find(|python| runs(python, &["-c", &import]));
    if found.is_none() {
        tell(&format!("no Python has {module}: passed over"));
    }
    found
}

/// What a program prints; it must succeed.
fn prints(program: &str, args: &[&str]) -> String {
    let done = Command::new(program).args(args).output().expect("it runs");
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{program} {args:?}: {out}{err}");
    out.into_owned()
}

/// The example on ports that are free, and these ports.
fn edge() -> (Weir, String, String) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let text = std::fs::read_to_string(format!("{folder}/edge.star")).expect("an example");
    let port = || free_port().port().to_string();
    let (secure, clear) = (port(), port());
    let certificates = format!("\"{folder}/certs/");
    let text = text.replace("\"certs/", &certificates).replace("8443", &secure).replace("8080", &clear);
    (Weir::listening(&text, 2), secure, clear)
}

/// curl by HTTP/2 for the example's names, several at once; what it prints for each.
fn curl(ports: [&str; 2], args: &[&str]) -> Vec<String> {
    let mut all = vec!["-sSk", "--http2", "-Z", "--max-time", "60"];
    let names = ports.iter().flat_map(|port| ["shop", "api"].map(|name| (name, port)));
    let resolve: Vec<String> = names.map(|(n, port)| format!("{n}.localhost:{port}:127.0.0.1")).collect();
    resolve.iter().for_each(|one| all.extend(["--resolve", one]));
    all.extend(args);
    prints("curl", &all).lines().map(str::to_owned).collect()
}

#[test]
fn the_edge_of_one_page_serves_curl() {
    if !has("curl") {
        return;
    }
    let (_weir, secure, clear) = edge();
    let ask = |args: &[&str]| curl([&secure, &clear], args);
    let shop = format!("https://shop.localhost:{secure}/");
    let told = ask(&[
        "-L",
        "-w",
        "%{http_code} %{http_version} %{num_redirects}\n",
        &format!("http://shop.localhost:{clear}/"),
    ]);
    assert_eq!(told[1], "200 2 1", "{told:?}");
    // A canary: once in twenty.
    let pages = ask(&[&format!("{shop}?[1-400]")]);
    let next = pages.iter().filter(|page| *page == "shop-next").count();
    assert!(pages.len() == 400 && (1..80).contains(&next), "{next} of {}", pages.len());
    assert!(pages.iter().all(|page| page.starts_with("shop-")));
    // Orders come in floods: forty and twenty more a second pass.
    let orders = format!("https://api.localhost:{secure}/orders?[1-200]");
    let codes = ask(&["-X", "POST", "-o", "/dev/null", "-w", "%{http_code}\n", &orders]);
    let count = |code: &str| codes.iter().filter(|c| *c == code).count();
    assert!(count("200") >= 40 && count("429") > 0 && count("200") + count("429") == 200, "{codes:?}");
    assert_eq!(
        ask(&["-o", "/dev/null", "-w", "%{http_code}\n", "-H", "Host: other.localhost", &shop]),
        ["421"]
    );
}

#[test]
fn the_edge_of_one_page_serves_nghttp2_and_a_browser() {
    let (_weir, secure, _) = edge();
    let (url, at) = (format!("https://shop.localhost:{secure}/"), format!("127.0.0.1:{secure}"));
    if has("h2load") {
        let said = prints("h2load", &["-n", "400", "-c", "4", "-m", "20", "--connect-to", &at, &url]);
        assert!(said.contains("400 succeeded, 0 failed") && said.contains("400 2xx"), "{said}");
    }
    if has("nghttp") {
        let said = prints(
            "nghttp",
            &["-v", "-y", &format!("https://127.0.0.1:{secure}/"), "-H:authority: shop.localhost"],
        );
        assert!(said.contains(":status: 200"), "{said}");
    }
    if has("chromium") {
        let profile = std::env::temp_dir().join(format!("weir-browser-{}", std::process::id()));
        let folder = format!("--user-data-dir={}", profile.display());
        let mut args =
            vec!["--headless", "--no-sandbox", "--disable-gpu", "--ignore-certificate-errors", &folder];
        args.extend([
            "--host-resolver-rules=MAP *.localhost 127.0.0.1",
            "--timeout=20000",
            "--dump-dom",
            &url,
        ]);
        let page = prints("chromium", &args);
        let _ = std::fs::remove_dir_all(profile);
        assert!(page.contains("shop-"), "{page}");
    }
}

/// A Python program that goes on until this is dropped, and the words of its first line.
struct Server(Child, Vec<String>);

impl Server {
    fn new(python: &str, args: &[&str]) -> Server {
        let mut child = Command::new(python).args(args).stdout(Stdio::piped()).spawn().expect("it runs");
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        out.read_line(&mut line).expect("it says where it listens");
        Server(child, line.split_whitespace().map(str::to_owned).collect())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

fn script(name: &str) -> String {
    format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn grpc_passes_in_cleartext_and_by_tls() {
    let Some(python) = python("grpc") else { return };
    let (authority, script) = (Authority::new("grpc"), script("grpc_calls.py"));
    let pair = authority.files(&["a.test"]);
    let server = Server::new(python, &[&script, "serve", &pair.cert, &pair.key]);
    let (clear, secure) = (&server.1[0], &server.1[1]);
    let ca = &authority.file;
    let weir = Weir::new(&format!(
        "listen(\"127.0.0.1:0\", server(\"one\", addr = \"127.0.0.1:{clear}\", protocol = \"h2\"), name = \"clear\")\n\
         listen(\"127.0.0.1:0\", server(\"two\", addr = \"127.0.0.1:{secure}\", tls = tls.client(ca = \"{ca}\", \
         name = \"a.test\")), name = \"secure\", tls = tls.server(\"{}\", \"{}\"))\n",
        pair.cert, pair.key
    ));
    assert_eq!(prints(python, &[&script, "ask", weir.addr("clear")]), "ok\n");
    assert_eq!(prints(python, &[&script, "ask", weir.addr("secure"), ca]), "ok\n");
}

#[test]
fn websockets_pass_by_tls() {
    let Some(python) = python("websockets") else { return };
    let (authority, script) = (Authority::new("websocket"), script("websocket.py"));
    let server = Server::new(python, &[&script, "serve"]);
    let weir = Weir::new(&format!(
        "listen(\"127.0.0.1:0\", server(\"one\", addr = \"127.0.0.1:{}\"), name = \"web\", tls = tls.server({}))\n",
        server.1[0],
        authority.words(&["a.test"])
    ));
    let uri = format!("wss://a.test:{}/", weir.addr("web").rsplit(':').next().expect("a port"));
    assert_eq!(prints(python, &[&script, "ask", &uri, &authority.file]), "ok\n");
}
