//! Files of TLS that are read again while they are in use, part by part: a certificate with its key, or a bundle
//! of authorities. A part that cannot be used holds up no other, and the former one stays in its place.

use super::{CannotUse, CertificateFiles};

/// A part whose files were read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// The part in words: `certificate "x.pem"`.
    pub part: String,
    /// The paths of its files.
    pub files: Vec<String>,
    /// Whether it differs from the former one, so that new connections use it; or why it cannot be used.
    pub result: Result<bool, CannotUse>,
}

impl Renewal {
    /// Whether new connections use another one than before.
    pub fn has_changed(&self) -> bool {
        self.result == Ok(true)
    }

    /// Notes for all that differs that it cannot be used after all.
    pub(super) fn fail(all: &mut [Renewal], why: &CannotUse) {
        for one in all.iter_mut().filter(|one| one.has_changed()) {
            one.result = Err(why.clone());
        }
    }
}

/// A part by its name and files.
pub(super) struct Part {
    words: String,
    files: Vec<String>,
}

impl Part {
    /// A certificate with its key.
    pub(super) fn certificate(files: &CertificateFiles) -> Part {
        let words = format!("certificate \"{}\"", files.cert);
        Part { words, files: files.paths().map(str::to_owned).into() }
    }

    /// A bundle of authorities.
    pub(super) fn authorities(path: &str) -> Part {
        Part { words: format!("bundle of authorities \"{path}\""), files: vec![path.to_owned()] }
    }

    /// Takes what its files hold now, and notes what that means. Returns what is used from now on.
    pub(super) fn renew<T>(
        self,
        before: T,
        now: Result<T, CannotUse>,
        is_same: impl FnOnce(&T, &T) -> bool,
        renewals: &mut Vec<Renewal>,
    ) -> T {
        let (used, result) = match now {
            Ok(now) if is_same(&before, &now) => (before, Ok(false)),
            Ok(now) => (now, Ok(true)),
            Err(why) => (before, Err(why)),
        };
        renewals.push(Renewal { part: self.words, files: self.files, result });
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::tls::{Client, ClientFiles, OwnListener, Server, ServerFiles};
    use std::path::{Path, PathBuf};

    /// Files of a test's own, removed at the end.
    struct Folder(PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("weir-renewal-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&path).expect("a folder");
            Folder(path)
        }

        fn write(&self, name: &str, text: &str) -> String {
            let path = self.0.join(name);
            std::fs::write(&path, text).expect("a file");
            path.to_str().expect("a path").to_owned()
        }
    }

    /// A new certificate and its key, as PEM.
    fn issue() -> (String, String) {
        let signed = rcgen::generate_simple_self_signed(["a.test".to_owned()]).expect("a certificate");
        (signed.cert.pem(), signed.signing_key.serialize_pem())
    }

    fn files(folder: &Folder, name: &str) -> CertificateFiles {
        let (cert, key) = issue();
        CertificateFiles {
            cert: folder.write(&format!("{name}.pem"), &cert),
            key: folder.write(&format!("{name}.key"), &key),
        }
    }

    /// By the last part of their names: whether each part differs, or begins of why not.
    fn short(renewals: &[Renewal]) -> Vec<(String, Result<bool, String>)> {
        let name = |path: &str| Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned());
        let what = |one: &Renewal| {
            let result = one.result.clone().map_err(|why| why.0.split('"').next().unwrap_or("").to_owned());
            (name(&one.files[0]).unwrap_or_default(), result)
        };
        renewals.iter().map(what).collect()
    }

    fn entry(name: &str, result: Result<bool, &str>) -> (String, Result<bool, String>) {
        (name.to_owned(), result.map_err(str::to_owned))
    }

    #[test]
    fn each_part_of_a_listener_is_renewed_by_itself() {
        let folder = Folder::new("server");
        let (a, b) = (files(&folder, "a"), files(&folder, "b"));
        let ca = folder.write("ca.pem", &issue().0);
        let certificates = vec![a.clone(), b.clone()];
        let (client_ca, requires_13) = (Some(ca.clone()), false);
        let all = ServerFiles { certificates, client_ca, requires_certificate: true, requires_13 };
        let server = Server::read(&all, &["h2", "http/1.1"]).expect("they can be used");
        assert_eq!(server.paths().count(), 5);
        let own = OwnListener::new(&server).expect("TLS can be set up");
        let renew = |is_due: &dyn Fn(&str) -> bool| short(&server.renew(is_due, Some(&own)));
        let first = server.shown();
        assert_eq!(renew(&|_| true).iter().filter(|(_, result)| *result == Ok(false)).count(), 3);
        // The key comes before its certificate, and another pair is whole.
        let (cert, key) = issue();
        folder.write("a.key", &key);
        files(&folder, "b");
        let is_of_pairs = |path: &str| !path.ends_with("ca.pem");
        assert_eq!(renew(&is_of_pairs), [entry("a.pem", Err("the key ")), entry("b.pem", Ok(true))]);
        let second = server.shown();
        assert_eq!((second[0] == first[0], second[1] == first[1]), (true, false));
        folder.write("a.pem", &cert);
        assert_eq!(renew(&|path| path == a.cert), [entry("a.pem", Ok(true))]);
        assert_ne!(server.shown()[0], first[0]);
        folder.write("ca.pem", "nothing");
        let refused = [entry("ca.pem", Err("the bundle of authorities "))];
        assert_eq!(renew(&|path| path == ca), refused);
        folder.write("ca.pem", &issue().0);
        assert_eq!(renew(&|path| path == ca), [entry("ca.pem", Ok(true))]);
        assert_eq!(server.renew(|path| path == b.key, None)[0].result, Ok(false));
    }

    #[test]
    fn each_part_of_a_client_is_renewed_by_itself() {
        let folder = Folder::new("client");
        let certificate = Some(files(&folder, "own"));
        let ca = Some(folder.write("ca.pem", &issue().0));
        let client = Client::read(&ClientFiles { ca, name: None, certificate }).expect("they can be used");
        assert_eq!(client.paths().count(), 3);
        let renew = || short(&client.renew(|_| true));
        assert_eq!(renew(), [entry("ca.pem", Ok(false)), entry("own.pem", Ok(false))]);
        let (cert, key) = issue();
        folder.write("own.pem", &cert);
        folder.write("ca.pem", &issue().0);
        assert_eq!(renew(), [entry("ca.pem", Ok(true)), entry("own.pem", Err("the key "))]);
        folder.write("own.key", &key);
        assert_eq!(renew(), [entry("ca.pem", Ok(false)), entry("own.pem", Ok(true))]);
        assert!(client.renew(|_| false).is_empty());
        assert!(Client::unverified().expect("no files").renew(|_| true).is_empty());
    }
}
