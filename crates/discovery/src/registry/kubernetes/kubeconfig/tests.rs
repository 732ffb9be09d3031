//! Kubeconfigs as they are written, by hand and by machines, and what is refused in them.

use super::*;
use crate::file::folder::Folder;

/// A kubeconfig whose cluster and user have these fields.
fn config(cluster: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\npreferences: {{}}\ncurrent-context: dev\n\
         contexts:\n- name: other\n  context: {{cluster: none, user: none}}\n\
         - name: dev\n  context: {{cluster: here, user: me, namespace: shop}}\n\
         clusters:\n- name: here\n  cluster:\n    server: https://api.example.com:6443/\n{cluster}\
         users:\n- name: me\n  user:\n    unread: 1\n{user}"
    )
}

fn read_text(text: &str) -> Result<Access, String> {
    parse(text, Path::new("/home/me/.kube/config"), KubeconfigSource::Home)
        .map_err(|defect| defect.to_string())
}

/// Reads the file that an argument names.
fn read_argument(path: &Path) -> Result<Access, Defect> {
    read(path, KubeconfigSource::Argument)
}

fn refusal(text: &str) -> String {
    match read_text(text) {
        Ok(access) => panic!("{access:?}"),
        Err(word) => word,
    }
}

#[test]
fn the_current_context_has_server_namespace_and_token() {
    let access = read_text(&config("", "    token: t-1\n")).expect("access");
    assert_eq!(access.url, "https://api.example.com:6443");
    assert_eq!(access.namespace, "shop");
    assert!(matches!(&access.credentials, Some(Credentials::Token(token)) if token == "t-1"));
    assert!(matches!(&access.trust, Trust::Files(files) if *files == ClientFiles::default()));
    let both = config("", "    token: t-1\n    tokenFile: tokens/a\n");
    let access = read_text(&both).expect("access");
    let path = Path::new("/home/me/.kube/tokens/a");
    assert!(matches!(&access.credentials, Some(Credentials::Bearer(file)) if file == path));
}

#[test]
fn files_are_relative_to_the_kubeconfig_and_data_counts_first() {
    let cluster = "    certificate-authority: ca.pem\n    tls-server-name: kubernetes\n";
    let user = "    client-certificate: /etc/me.pem\n    client-key: me.key\n";
    let access = read_text(&config(cluster, user)).expect("access");
    let certificate =
        CertificateFiles { cert: "/etc/me.pem".to_owned(), key: "/home/me/.kube/me.key".to_owned() };
    let files = ClientFiles {
        ca: Some("/home/me/.kube/ca.pem".to_owned()),
        name: Some("kubernetes".to_owned()),
        certificate: Some(certificate),
    };
    assert!(matches!(&access.trust, Trust::Files(given) if *given == files));
    let cluster = "    certificate-authority: ca.pem\n    certificate-authority-data: UEVN\n";
    let user = "    client-certificate-data: UEVN\n    client-key-data: |\n      UE\n      VN\n";
    let access = read_text(&config(cluster, user)).expect("access");
    let Trust::Given(given) = access.trust else { panic!("files") };
    let named =
        |field: &str| NamedPem { name: format!("/home/me/.kube/config: {field}"), pem: b"PEM".to_vec() };
    assert_eq!(given.authorities, Some(named("certificate-authority-data")));
    assert_eq!(given.certificate, Some((named("client-certificate-data"), named("client-key-data"))));
}

#[test]
fn data_beside_files_is_read_with_them() {
    let folder = Folder::new("kubeconfig");
    folder.write("me.key", "KEY");
    let user = "    client-certificate-data: UEVN\n    client-key: me.key\n";
    folder.write("config", config("", user));
    let access = read_argument(&folder.path("config")).expect("access");
    let Trust::Given(given) = access.trust else { panic!("files") };
    let named = |name: String, pem: &str| NamedPem { name, pem: pem.as_bytes().to_vec() };
    let field = format!("{}: client-certificate-data", folder.path("config").display());
    let file = folder.path("me.key").display().to_string();
    assert_eq!(given.certificate, Some((named(field, "PEM"), named(file, "KEY"))));
    let user = "    client-certificate-data: UEVN\n    client-key: gone.key\n";
    folder.write("config", config("", user));
    let defect = read_argument(&folder.path("config")).expect_err("a missing key");
    assert!(defect.to_string().contains("gone.key"), "{defect}");
}

#[test]
fn what_weir_cannot_do_is_refused_with_what_to_do() {
    let cases = [
        ("    insecure-skip-tls-verify: true\n", "", "certificate-authority"),
        ("    proxy-url: http://proxy\n", "", "proxy-url"),
        ("    certificate-authority-data: \"%%\"\n", "", "not base64"),
        ("", "    exec: {command: aws, args: [eks]}\n", "no commands; write the token of a service"),
        ("", "    auth-provider: {name: gcp}\n", "auth-provider"),
        ("", "    username: a\n    password: b\n", "password"),
        ("", "    as: admin\n", "in the name of another"),
        ("", "    client-certificate: a\n", "client-key"),
    ];
    for (cluster, user, expected) in cases {
        let word = refusal(&config(cluster, user));
        assert!(word.contains(expected) && word.contains("/home/me/.kube/config"), "{word}");
    }
    assert!(read_text(&config("    insecure-skip-tls-verify: false\n", "    exec: null\n")).is_ok());
}

#[test]
fn missing_entries_and_other_texts_are_sentences() {
    let whole = config("", "");
    let cases = [
        ("current-context: dev", "current-context: \"\"", "has no current-context"),
        ("current-context: dev", "current-context: prod", "no context \"prod\""),
        ("cluster: here", "cluster: there", "no cluster \"there\""),
        ("user: me", "user: you", "no user \"you\""),
        ("cluster: here", "namespace: here", "is no kubeconfig in YAML"),
        ("server: https", "server: ftp", "no address of a registry"),
        ("server: https://", "server: https://me:secret@", "no address of a registry"),
        ("    server: https://api.example.com:6443/\n", "    unread: 1\n", "without a server"),
    ];
    for (from, to, expected) in cases {
        let word = refusal(&whole.replacen(from, to, 1));
        assert!(word.contains(expected) && !word.contains("secret"), "{word}");
        let begins = "the kubeconfig /home/me/.kube/config (~/.kube/config) ";
        assert!(word.starts_with(begins), "{word}");
    }
    for text in ["contexts: 1", "a: [", "token: \"secret", "- secret", "\u{0}"] {
        let word = refusal(text);
        assert!(word.contains("kubeconfig") && !word.contains("secret"), "{word}");
    }
}

#[test]
fn a_user_and_a_namespace_may_be_missing_and_json_is_yaml() {
    let text = r#"{"current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:8001"}}], "users": null}"#;
    let access = read_text(text).expect("access");
    assert_eq!((access.namespace.as_str(), access.credentials.is_none()), ("default", true));
}

#[test]
fn files_that_are_none_are_not_opened() {
    let folder = Folder::new("kubeconfig-files");
    assert!(read_argument(&folder.path("")).expect_err("a folder").to_string().contains("no regular file"));
    assert!(read_argument(&folder.path("gone")).is_err());
    folder.write("large", vec![b' '; (MOST_BYTES + 1) as usize]);
    assert!(read_argument(&folder.path("large")).expect_err("large").to_string().contains("more than 1 MiB"));
}

#[test]
fn each_message_says_which_file_it_is_about_and_what_names_it() {
    let path = Path::new("/nowhere/config");
    for (source, name) in [
        (KubeconfigSource::Argument, "the kubeconfig /nowhere/config (of `kubeconfig=`)"),
        (KubeconfigSource::Variable, "the kubeconfig /nowhere/config (of the variable KUBECONFIG)"),
        (KubeconfigSource::Home, "the kubeconfig /nowhere/config (~/.kube/config)"),
    ] {
        let gone = read(path, source).expect_err("no file").to_string();
        assert!(gone.starts_with(&format!("{name} cannot be used: there is no such file; ")), "{gone}");
        let wrong = parse("a: [", path, source).expect_err("no YAML").to_string();
        assert!(wrong.starts_with(&format!("{name} is no kubeconfig in YAML")), "{wrong}");
        for empty in ["", " \n"] {
            let word = parse(empty, path, source).expect_err("no YAML").to_string();
            assert_eq!(word, format!("{name} is empty; write a kubeconfig into it, or name another one"));
        }
        let right = parse(&config("", ""), path, source).expect("access");
        assert_eq!(right.origin, name);
    }
}
