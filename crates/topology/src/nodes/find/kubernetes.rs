//! `find.kubernetes(service, f, namespace=None, port=None, kubeconfig=None, ...)`: a fleet whose members are the
//! endpoints of a service in Kubernetes.

use super::{F, MORE, SERVED, SIMULATED, make, read_path, read_port, read_word};
use crate::language::call::{Call, Outcome};
use crate::nodes::{Description, Function, Group, examples, may, need};
use weir_plan::source_ranges::{kubernetes_name, kubernetes_port};
use weir_plan::{KubernetesPort, KubernetesSource, SourceKind};

pub(in crate::nodes) static FUNCTIONS: [Function; 1] = [Function {
    name: "find.kubernetes",
    about: Description {
        group: Group::Serve,
        meaning: "Targets that are the endpoints of a service in Kubernetes: pods, by their own addresses.",
        simulated: SIMULATED,
        served: SERVED,
        draws: "nothing",
        example: examples::FIND_KUBERNETES,
    },
    args: &[
        need("service", "a string", "the service"),
        F,
        may(
            "namespace",
            "a string",
            "None",
            "its namespace; `None`: that of weir's pod, or of the kubeconfig's context, else `default`",
        ),
        may(
            "port",
            "1 to 65535, a name, or None",
            "None",
            "which port of the pods, where they have several; `None`: the only one",
        ),
        may(
            "kubeconfig",
            "a path",
            "None",
            "relative to the file that names it; `None`: the service account of weir's pod, else that of \
                KUBECONFIG, else ~/.kube/config",
        ),
    ],
    more: &MORE,
    make: find_kubernetes,
}];

/// How it is written.
const USUAL: &str = "find.kubernetes(\"shop\", lambda: server(\"app\"))";

fn find_kubernetes<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let service = read_word(call, "service", kubernetes_name);
    let namespace = call.word("namespace", kubernetes_name);
    let port = read_number_or_name(call);
    let kubeconfig = read_path(call, "kubeconfig");
    let of = |service| SourceKind::Kubernetes(KubernetesSource { service, namespace, port, kubeconfig });
    make(call, service.map(of), USUAL)
}

/// The port, by its number or its name.
fn read_number_or_name(call: &mut Call<'_, '_, '_, '_>) -> Option<KubernetesPort> {
    let value = call.value_or_none("port")?;
    match value.get_type() {
        "int" => read_port(call).map(KubernetesPort::Number),
        "string" => call.word("port", kubernetes_port).map(KubernetesPort::Name),
        _ => {
            call.unfit_but("port", "a number or a name", value, "write `port=8080` or `port=\"http\"`");
            None
        }
    }
}
