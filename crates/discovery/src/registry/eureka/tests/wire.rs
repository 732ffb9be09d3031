//! Tests of the JSON.

use super::super::wire::{Applications, Instance, Port, Status, read};
use super::{application, instance, registry};
use crate::fault::FaultKind;
use weir_plan::EurekaHost;

fn whole(text: &str) -> Applications<'_> {
    read(text, "http://a/eureka").expect(text)
}

/// Each application with the ids of its instances.
fn ids(text: &str) -> Vec<String> {
    let whole = whole(text);
    let of = |instances: &[Instance<'_>]| {
        instances.iter().map(|instance| instance.id()).collect::<Vec<_>>().join(",")
    };
    whole.applications().iter().map(|one| format!("{}:{}", one.name(), of(one.instances()))).collect()
}

#[test]
fn what_a_server_writes_is_read() {
    let gone = instance("i-2", "10.0.0.2", "DOWN", "DELETED");
    let instances = [instance("i-1", "10.0.0.1", "UP", "ADDED"), gone];
    let text = registry("DOWN_1_UP_1_", &[application("API", &instances), application("Web", &[])]);
    let whole = whole(&text);
    assert_eq!(whole.hash().as_deref(), Some("DOWN_1_UP_1_"));
    assert_eq!(ids(&text), ["api:i-1,i-2", "web:"]);
    let instances = whole.applications().first().expect("an application").instances();
    let one = instances.first().expect("an instance");
    assert_eq!((one.status(), one.is_deleted()), (Ok(Status::Up), false));
    assert_eq!([one.host(EurekaHost::Ip), one.host(EurekaHost::Name)], ["10.0.0.1", "i-1.local"]);
    assert_eq!(one.port(false), Port { number: Some(80), is_enabled: true });
    assert_eq!(one.port(true), Port { number: Some(443), is_enabled: false });
    let two = instances.get(1).expect("another one");
    assert_eq!((two.status(), two.is_deleted()), (Ok(Status::Down), true));
}

#[test]
fn lists_may_be_single_objects_null_empty_or_missing() {
    let of = |applications: &str| {
        ids(&format!(r#"{{"applications":{{"apps__hashcode":"","application":{applications}}}}}"#))
    };
    assert_eq!(of(r#"{"name":"A","instance":{"instanceId":"i"}}"#), ["a:i"]);
    assert_eq!(of(r#"[{"name":"A","instance":[{"instanceId":"i"},{"hostName":"h"}]}]"#), ["a:i,h"]);
    assert_eq!(of(r#"[{"name":"A","instance":null},{"name":"B"},{"instance":""}]"#), ["a:", "b:", ":"]);
    for none in ["[]", "null", "\"\""] {
        assert_eq!(of(none), [""; 0]);
    }
    assert_eq!(ids(r#"{"applications":{"apps__hashcode":""}}"#), [""; 0]);
    assert_eq!(ids(r#"{"applications":{"application":[]},"more":[[1]]}"#), [""; 0]);
}

#[test]
fn an_instance_is_read_field_by_field() {
    let text = |fields: &str| format!(r#"{{"applications":{{"application":{{"instance":{{{fields}}}}}}}}}"#);
    let port = |port: &str| {
        let text = text(&format!(r#""port":{port}"#));
        let whole = whole(&text);
        let Port { number, is_enabled } = whole.applications()[0].instances()[0].port(false);
        (number, is_enabled)
    };
    assert_eq!(port(r#"{"$":80,"@enabled":"true"}"#), (Some(80), true));
    assert_eq!(port(r#"{"$":"80","@enabled":false,"more":1}"#), (Some(80), false));
    assert_eq!(port(r#"{"@enabled":"FALSE","$":70000}"#), (Some(70_000), false));
    assert_eq!(port(r#"{"$":80}"#), (Some(80), true));
    for (text, number) in [("80", 80), ("\"80\"", 80), ("-1", -1)] {
        assert_eq!(port(text), (Some(number), true));
    }
    for none in ["null", "\"\"", "[80]", "true", "8.5", "{}", "1e99", "99999999999999999999"] {
        assert_eq!(port(none), (None, true), "{none}");
    }
    let status = |fields: &str| {
        let text = text(fields);
        let whole = whole(&text);
        whole.applications()[0].instances()[0].status()
    };
    assert_eq!(status(r#""status":"up","overriddenstatus":{"a":1}"#), Ok(Status::Up));
    let overridden = r#""status":"OUT_OF_SERVICE","overriddenStatus":"OUT_OF_SERVICE""#;
    assert_eq!(status(overridden), Ok(Status::OutOfService));
    assert_eq!(status(r#""status":"ASLEEP""#), Err("ASLEEP".to_owned()));
    assert_eq!([status(r#""status":7"#), status("")], [Err(String::new()), Err(String::new())]);
    // The address counts where there is no name.
    let text = text(r#""instanceId":7,"hostName":"","ipAddr":"::1""#);
    let whole = whole(&text);
    let one = &whole.applications()[0].instances()[0];
    assert_eq!([one.id(), one.host(EurekaHost::Ip), one.host(EurekaHost::Name)], ["::1", "::1", ""]);
}

#[test]
fn what_is_no_registry_is_said_in_short() {
    use FaultKind::{Cut, Shape, Syntax};
    let deep = "[".repeat(10_000);
    let nested = format!("{}1{}", r#"{"applications":"#.repeat(10_000), "}".repeat(10_000));
    let inside = format!(r#"{{"applications":{{"application":{deep}"#);
    let long = format!(r#"{{"applications":{{"application":"{}"}}}}"#, "x".repeat(100_000));
    for (text, kind) in [
        ("", Cut),
        ("{", Cut),
        (r#"{"applications":{"application":[{"name":"A""#, Cut),
        ("<html>", Syntax),
        ("{} {}", Shape),
        ("[]", Shape),
        ("7", Shape),
        (r#"{"applications":null}"#, Shape),
        (r#"{"applications":[]}"#, Shape),
        (r#"{"applications":{}}"#, Shape),
        (r#"{"applications":{"application":[null]}}"#, Shape),
        (r#"{"applications":{"application":[{"instance":[7]}]}}"#, Shape),
        (deep.as_str(), Shape),
        (nested.as_str(), Shape),
        (inside.as_str(), Shape),
        (long.as_str(), Shape),
    ] {
        let defect = read(text, "http://a/eureka").expect_err(text);
        assert_eq!(defect.kind, kind, "{defect}");
        assert!(defect.to_string().starts_with("what http://a/eureka answers is no registry of Eureka: "));
        assert!(defect.to_string().len() < 400, "{defect}");
    }
    // What is not read may be as deep as it likes.
    let metadata = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let text = format!(r#"{{"applications":{{"application":{{"name":"A","more":{metadata}}}}}}}"#);
    assert_eq!(ids(&text), ["a:"]);
}
