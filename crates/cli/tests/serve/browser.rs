//! A headless Chromium, driven by the DevTools protocol over two pipes: messages end with a zero byte.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    profile: PathBuf,
    next: u64,
    session: Option<String>,
}

impl Browser {
    /// With this page; `None`: there is no Chromium here.
    pub(crate) fn open(url: &str) -> Option<Browser> {
        let profile = std::env::temp_dir().join(format!("weir-admin-browser-{}", std::process::id()));
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
        let mut browser = Browser { child, to, from: BufReader::new(from), profile, next: 1, session: None };
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
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}
