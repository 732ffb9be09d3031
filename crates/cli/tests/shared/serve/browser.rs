//! A headless Chromium, driven by the DevTools protocol over two pipes: messages end with a zero byte.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    profile: PathBuf,
    next: u64,
    session: Option<String>,
    /// What it has told without being asked, where it is watched.
    events: Vec<Value>,
}

impl Browser {
    /// With this page; `None`: there is no Chromium here.
    pub(crate) fn open(url: &str) -> Option<Browser> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let profile = std::env::temp_dir().join(format!("weir-browser-{}-{number}", std::process::id()));
        // It speaks on descriptors 3 and 4, which only a shell gives it.
        let script = "command -v chromium >/dev/null || exit 9; exec chromium --headless --no-sandbox --disable-gpu \
                      --remote-debugging-pipe --user-data-dir=\"$0\" 3<&0 4>&1 0</dev/null 1>/dev/null 2>&1";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .arg(&profile)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("there is a shell");
        let (to, from) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let mut browser = Browser {
            child,
            to,
            from: BufReader::new(from),
            profile,
            next: 1,
            session: None,
            events: Vec::new(),
        };
        let page = browser.call("Target.createTarget", json!({"url": url}))?;
        let attached = json!({"targetId": page["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", attached)?;
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        Some(browser)
    }

    /// The value of an expression on the page.
    #[track_caller]
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", asked).expect("the browser answers");
        answer["result"]["value"].clone()
    }

    /// With an empty page, and what it does from now on is watched.
    pub(crate) fn watching() -> Option<Browser> {
        let mut browser = Browser::open("about:blank")?;
        for domain in ["Runtime.enable", "Log.enable", "Network.enable", "Page.enable"] {
            browser.call(domain, json!({}))?;
        }
        Some(browser)
    }

    /// Goes to a page, and waits until it is there.
    pub(crate) fn go(&mut self, url: &str) {
        self.events.clear();
        self.call("Page.navigate", json!({"url": url})).expect("the browser answers");
        let loaded = format!("location.href === {} && document.readyState === 'complete'", Value::from(url));
        while self.value(&loaded) != true {
            std::thread::yield_now();
        }
    }

    /// The size and the colours of the screen; `media`: `screen` or `print`.
    pub(crate) fn screen(&mut self, width: u32, dark: bool, media: &str) {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size).expect("the browser answers");
        let scheme = json!({"name": "prefers-color-scheme", "value": if dark { "dark" } else { "light" }});
        let media = json!({"media": media, "features": [scheme]});
        self.call("Emulation.setEmulatedMedia", media).expect("the browser answers");
    }

    /// Whether scripts run on pages that are loaded from now on.
    pub(crate) fn scripts(&mut self, run: bool) {
        self.call("Emulation.setScriptExecutionDisabled", json!({"value": !run})).expect("it answers");
    }

    /// Moves the pointer to a place of what is seen, and presses there if asked to.
    pub(crate) fn point(&mut self, x: f64, y: f64, press: bool) {
        let kinds =
            if press { &["mouseMoved", "mousePressed", "mouseReleased"][..] } else { &["mouseMoved"] };
        for kind in kinds {
            let button = if *kind == "mouseMoved" { "none" } else { "left" };
            let event = json!({"type": kind, "x": x, "y": y, "button": button, "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event).expect("the browser answers");
        }
    }

    /// What went wrong on the page, and what it asked others for beside itself.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        // What it had to tell comes before an answer.
        self.value("1");
        let told = self.events.iter().filter_map(|event| {
            let params = &event["params"];
            match event["method"].as_str()? {
                "Runtime.exceptionThrown" => Some(params["exceptionDetails"].to_string()),
                "Runtime.consoleAPICalled" if params["type"] == "error" => Some(params["args"].to_string()),
                "Log.entryAdded" if params["entry"]["level"] == "error" => Some(params["entry"].to_string()),
                "Network.requestWillBeSent" if params["type"] != "Document" => {
                    Some(params["request"]["url"].to_string())
                }
                _ => None,
            }
        });
        told.collect()
    }

    fn call(&mut self, method: &str, params: Value) -> Option<Value> {
        let id = self.next;
        self.next += 1;
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = session.clone().into();
        }
        // It may not be there.
        self.to.write_all(format!("{message}\0").as_bytes()).ok()?;
        loop {
            let mut bytes = Vec::new();
            if self.from.read_until(0, &mut bytes).ok()? == 0 {
                return None;
            }
            let said: Value = serde_json::from_slice(bytes.strip_suffix(&[0])?).ok()?;
            if said["id"] == id {
                return Some(said["result"].clone());
            }
            if said["method"].is_string() {
                self.events.push(said);
            }
        }
    }
}

impl Drop for Browser {
    /// It ends by itself, with all its processes: one that is killed leaves some behind, which still write to the
    /// profile.
    fn drop(&mut self) {
        self.session = None;
        if self.call("Browser.close", json!({})).is_none() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}
