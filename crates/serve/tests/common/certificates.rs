//! Certificates for tests, in files of a folder of their own.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, date_time_ymd,
};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use weir_plan::CertificateFiles;

/// The authority that signs.
pub struct Authority {
    /// The file of its certificate.
    pub file: String,
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Authority {
    /// One with a folder.
    pub fn new(name: &str) -> Authority {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        static SWEPT: Once = Once::new();
        SWEPT.call_once(sweep);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("weir-tls-{}-{number}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name = called(&format!("authority {name}"));
        let pem = params.self_signed(&key).expect("a certificate").pem();
        let file = folder.join("ca.pem");
        std::fs::write(&file, &pem).expect("a file");
        let file = file.to_str().expect("a path").to_owned();
        Authority { file, folder, issuer: Issuer::new(params, key) }
    }

    /// A certificate for these names, and its key, as PEM.
    pub fn issue(&self, names: &[&str], expired: bool) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.distinguished_name = called("a leaf");
        if expired {
            (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
        }
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    }

    /// The same in files.
    pub fn files(&self, names: &[&str]) -> CertificateFiles {
        self.files_of(names[0], &self.issue(names, false))
    }

    /// Puts a certificate and its key into files of this name.
    pub fn files_of(&self, name: &str, pair: &(String, String)) -> CertificateFiles {
        let (cert, key) = pair;
        let write = |end: &str, text: &str| {
            let path = self.folder.join(format!("{name}.{end}"));
            std::fs::write(&path, text).expect("a file");
            path.to_str().expect("a path").to_owned()
        };
        CertificateFiles { cert: write("pem", cert), key: write("key", key) }
    }

    /// The pair as the language has it.
    pub fn words(&self, names: &[&str]) -> String {
        let CertificateFiles { cert, key } = self.files(names);
        format!("\"{cert}\", \"{key}\"")
    }
}

/// Removes what is left of processes that are gone: what a test has for as long as it runs is never dropped.
fn sweep() {
    for folder in std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let name = folder.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix("weir-tls-").and_then(|rest| rest.split('-').next());
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            let _ = std::fs::remove_dir_all(folder.path());
        }
    }
}

/// OpenSSL takes a certificate with its signer's name for one that has signed itself.
fn called(name: &str) -> DistinguishedName {
    let mut called = DistinguishedName::new();
    called.push(DnType::CommonName, name);
    called
}
