//! Names: a type is a noun, a predicate returns `bool`, a function has a verb. Declarations are read by `syn`.

use super::Source;
use syn::visit::{self, Visit};

/// Participles, pronouns and prepositions, which say nothing about what a type holds.
const NOT_NOUNS: &[&str] = &[
    "About",
    "Above",
    "After",
    "Again",
    "Against",
    "Agreed",
    "Alike",
    "Alone",
    "Around",
    "Aside",
    "Asked",
    "At",
    "Before",
    "Began",
    "Begun",
    "Behind",
    "Believed",
    "By",
    "Called",
    "Carried",
    "Chosen",
    "Counted",
    "Deed",
    "Dialled",
    "Done",
    "Drawn",
    "Each",
    "Ended",
    "Exchanged",
    "Expected",
    "Explained",
    "Failed",
    "Few",
    "Folded",
    "Found",
    "From",
    "Gathered",
    "Given",
    "Gone",
    "Heard",
    "Hearers",
    "Hedged",
    "Held",
    "Here",
    "How",
    "Inside",
    "Joined",
    "Kept",
    "Known",
    "Late",
    "Later",
    "Left",
    "Loaded",
    "Look",
    "Looks",
    "Made",
    "MadeOf",
    "Man",
    "Matched",
    "Met",
    "Named",
    "Needed",
    "Noted",
    "Observed",
    "Of",
    "OfLoop",
    "OfRun",
    "Opened",
    "Other",
    "Others",
    "Otherwise",
    "Out",
    "Outside",
    "Own",
    "Paired",
    "Past",
    "Picked",
    "Placed",
    "Played",
    "Prepared",
    "Ran",
    "Reached",
    "Real",
    "Recorded",
    "Refused",
    "Replayed",
    "Retired",
    "Returned",
    "Reused",
    "Rewritten",
    "Said",
    "Same",
    "Saved",
    "Seen",
    "Served",
    "Settled",
    "Shown",
    "SinceTold",
    "Slowed",
    "Stands",
    "Started",
    "Stay",
    "Taken",
    "Then",
    "To",
    "Told",
    "Traced",
    "Tried",
    "Under",
    "UnderWay",
    "Up",
    "Via",
    "Wanted",
    "Wants",
    "Went",
    "What",
    "When",
    "Whose",
    "Why",
    "Wish",
    "Within",
    "Woken",
    "Wrong",
];

/// Types and traits that every module has without importing them.
const PRELUDE: &[&str] = &[
    "Box", "Clone", "Copy", "Default", "Drop", "Eq", "Err", "Fn", "From", "Into", "Iterator", "None", "Ok",
    "Option", "Ord", "Result", "Send", "Some", "String", "Sync", "ToOwned", "ToString", "Vec",
];

/// How the name of a predicate begins.
const PREDICATE: &[&str] = &["is_", "has_", "was_", "can_", "may_"];

/// A predicate's answer may be wrapped in one of these.
const WRAPPERS: &[&str] = &["Option", "Poll", "Result"];

/// Prepositions: no verb, and unsearchable.
const NOT_VERBS: &[&str] = &["at", "by", "of", "to"];

/// Which of the rules a name breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rule {
    Type,
    Prelude,
    Predicate,
    Function,
    Parameter,
    Time,
}

impl Rule {
    /// All rules, in the order in which they are listed.
    pub(super) const ALL: &[Rule] =
        &[Rule::Type, Rule::Prelude, Rule::Predicate, Rule::Function, Rule::Parameter, Rule::Time];

    pub(super) fn describe(self) -> &'static str {
        match self {
            Rule::Type => "a type is a noun for what it holds",
            Rule::Prelude => "a type may not have the name of an item of the prelude",
            Rule::Predicate => "a name that begins with is_, has_, was_, can_ or may_ returns bool",
            Rule::Function => "a function is named by a verb (new, from_x, parse, get), not a preposition",
            Rule::Parameter => "its parameters are named one by one, or fields of a struct, not a tuple",
            Rule::Time => "a time in nanoseconds is called now_ns",
        }
    }
}

/// A name that breaks a rule.
#[derive(Debug)]
pub(super) struct Offence {
    pub(super) rule: Rule,
    pub(super) line: usize,
    pub(super) name: String,
}

/// The offences of a file, in its order, or why it cannot be parsed.
pub(super) fn find(file: &Source) -> Result<Vec<Offence>, String> {
    let tree = syn::parse_file(&file.text)
        .map_err(|e| format!("{}:{}: cannot be parsed: {e}", file.path, e.span().start().line))?;
    let mut reader = Reader { found: Vec::new() };
    reader.visit_file(&tree);
    Ok(reader.found)
}

struct Reader {
    found: Vec<Offence>,
}

impl Reader {
    fn push(&mut self, rule: Rule, ident: &syn::Ident) {
        self.found.push(Offence { rule, line: ident.span().start().line, name: ident.to_string() });
    }

    fn judge_type(&mut self, ident: &syn::Ident) {
        let is_in = |names: &[&str]| names.iter().any(|name| ident == name);
        if is_in(NOT_NOUNS) {
            self.push(Rule::Type, ident);
        }
        if is_in(PRELUDE) {
            self.push(Rule::Prelude, ident);
        }
    }

    fn judge_function(&mut self, attributes: &[syn::Attribute], signature: &syn::Signature) {
        let name = signature.ident.to_string();
        // The name of a test is a sentence.
        let is_test = attributes.iter().any(|a| a.path().is_ident("test"));
        if NOT_VERBS.contains(&name.as_str()) {
            self.push(Rule::Function, &signature.ident);
        }
        let is_predicate = PREDICATE.iter().any(|prefix| name.starts_with(prefix));
        if is_predicate && !is_test && !returns_bool(&signature.output) {
            self.push(Rule::Predicate, &signature.ident);
        }
        for input in &signature.inputs {
            let syn::FnArg::Typed(parameter) = input else { continue };
            match &*parameter.pat {
                syn::Pat::Tuple(_) => self.push(Rule::Parameter, &signature.ident),
                syn::Pat::Ident(name) if name.ident == "now" && is_u64(&parameter.ty) => {
                    self.push(Rule::Time, &signature.ident);
                }
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.judge_type(&item.ident);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.judge_type(&item.ident);
        visit::visit_item_enum(self, item);
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.judge_type(&item.ident);
        visit::visit_item_union(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.judge_type(&item.ident);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.judge_type(&item.ident);
        visit::visit_item_type(self, item);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.judge_function(&item.attrs, &item.sig);
        visit::visit_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.judge_function(&item.attrs, &item.sig);
        visit::visit_trait_item_fn(self, item);
    }

    /// Methods of a trait have the names that the trait gave them.
    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if item.trait_.is_none() {
            for inner in &item.items {
                if let syn::ImplItem::Fn(method) = inner {
                    self.judge_function(&method.attrs, &method.sig);
                }
            }
        }
        visit::visit_item_impl(self, item);
    }
}

fn is_u64(ty: &syn::Type) -> bool {
    matches!(ty, syn::Type::Path(path) if path.path.is_ident("u64"))
}

fn returns_bool(output: &syn::ReturnType) -> bool {
    match output {
        syn::ReturnType::Default => false,
        syn::ReturnType::Type(_, of) => is_bool(of),
    }
}

/// `bool`, `Option<bool>`, `Result<bool, E>` and so on.
fn is_bool(ty: &syn::Type) -> bool {
    let syn::Type::Path(path) = ty else { return false };
    let Some(last) = path.path.segments.last() else { return false };
    if last.ident == "bool" {
        return true;
    }
    let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else { return false };
    let first = arguments.args.first();
    WRAPPERS.iter().any(|wrapper| last.ident == wrapper)
        && matches!(first, Some(syn::GenericArgument::Type(inner)) if is_bool(inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(Rule, usize, String)> {
        let offences = find(&Source { path: "a.rs".into(), text: text.into() }).unwrap();
        offences.into_iter().map(|o| (o.rule, o.line, o.name)).collect()
    }

    #[test]
    fn types_that_are_not_nouns_are_found_wherever_they_are_declared() {
        let text = "struct Seen;\nmod m {\n enum Told { A }\n}\nfn f() {\n trait Asked {}\n}\ntype Via = u8;\nstruct SeenSet;";
        let names: Vec<_> = found(text).into_iter().map(|(_, line, name)| format!("{line} {name}")).collect();
        assert_eq!(names, ["1 Seen", "3 Told", "6 Asked", "8 Via"]);
        assert_eq!(found("use a::Seen; enum Kind { Seen, Told }"), []);
        let prelude = found("type Result<T> = T;\nenum From {}");
        let rules: Vec<_> = prelude.iter().map(|(rule, ..)| *rule).collect();
        assert_eq!(rules, [Rule::Prelude, Rule::Type, Rule::Prelude]);
    }

    #[test]
    fn predicates_return_bool_or_a_wrapped_bool() {
        for well in ["bool", "Option<bool>", "io::Result<bool>", "Poll<Result<bool, E>>"] {
            assert_eq!(found(&format!("fn is_a() -> {well} {{ b() }}")), [], "{well}");
        }
        for wrong in ["u8", "Option<u8>", "Vec<bool>", "(bool, bool)"] {
            let found = found(&format!("impl A {{\n fn may_b() -> {wrong} {{ b() }} }}"));
            assert_eq!(found, [(Rule::Predicate, 2, "may_b".into())], "{wrong}");
        }
        assert_eq!(found("#[test]\nfn is_a() {}\nfn island() {}\nimpl T for A { fn is_b() {} }"), []);
        assert_eq!(found("trait T { fn has_b(); }").len(), 1);
    }

    #[test]
    fn prepositions_are_not_verbs() {
        assert_eq!(
            found("impl A { fn of(x: u8) -> A { A } fn offset() {} }"),
            [(Rule::Function, 1, "of".into())]
        );
    }
}
