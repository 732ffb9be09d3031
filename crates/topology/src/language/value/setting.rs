//! Values of calls that are neither nodes nor numbers: health checks, ejection, budgets, keys, conditions, requests.

use allocative::Allocative;
use starlark::values::{
    NoSerialize, ProvidesStaticType, StarlarkPagablePanic, StarlarkValue, starlark_value,
};
use std::fmt;
use weir_model::process::Life;
use weir_plan::diagnostic::Location;
use weir_plan::{
    Change, HealthCheck, Http, KeySource, Keys, RequestShape, RouteCondition, Scope, TlsClient, TlsServer,
};
use weir_policy::config::{Budget, Eject, Outlier, SlowStart, Subset};

macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident($of:ty), $kind:tt;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, ProvidesStaticType, NoSerialize, Allocative, StarlarkPagablePanic)]
            pub(crate) struct $name(#[allocative(skip)] pub(crate) $of);

            starlark::starlark_simple_value!($name);

            impl fmt::Display for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str(concat!("<", $kind, ">"))
                }
            }

            #[starlark_value(type = $kind)]
            impl<'v> StarlarkValue<'v> for $name {}
        )*
    };
}

settings! {
    /// `http(...)`.
    HttpValue(Http), "http_settings";
    /// `tls.server(...)`.
    TlsServerValue(TlsServer), "tls_server";
    /// `tls.client(...)`.
    TlsClientValue(TlsClient), "tls_client";
    /// `health.http(...)`, `health.tcp(...)`.
    HealthValue(HealthCheck), "health_check";
    /// `eject(...)`.
    EjectValue(Eject), "ejection";
    /// `outlier(...)`.
    OutlierValue(Outlier), "outlier_detection";
    /// `slow_start(...)`.
    SlowStartValue(SlowStart), "slow_start";
    /// `subset.loops(...)` and its like.
    SubsetValue(Subset), "subset";
    /// `lagged(...)`.
    ScopeValue(Scope), "scope";
    /// `change.join(...)` and its like; with its place.
    ChangeValue((Change, Option<Location>)), "change";
    /// `life(...)`.
    LifeValue(Life), "life";
    /// `budget(...)`.
    BudgetValue(Budget), "budget";
    /// `key.header(...)` and its like.
    KeyValue(KeySource), "key";
    /// `keys.uniform(...)`, `keys.zipf(...)`.
    KeysValue(Keys), "key_distribution";
    /// `when(...)`.
    WhenValue(RouteCondition), "condition";
    /// `request(...)`; its weight is the mix's to say.
    RequestValue(RequestShape), "request";
}
