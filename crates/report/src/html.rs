//! One self-contained HTML page with the tables of the text: no script, no font, no request to anywhere.

use crate::table::escaped;
use crate::{comparison, entry, signature, sites, text};
use std::io::{self, Write};
use weir_sim::Results;

pub(crate) const STYLE: &str = "\
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --warn: #b7791f; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 2.25rem 0 .25rem; }
p { margin: .2rem 0; } .note, footer { opacity: .7; font-size: .87rem; } footer { margin: 2.5rem 0; }
.warning { border-left: 4px solid var(--warn); background: var(--soft); padding: .4rem .8rem; margin: .5rem 0; }
.wide { overflow-x: auto; margin: .75rem 0; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .75rem .25rem 0; text-align: left; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { font-weight: 600; } .n { text-align: right; padding: .25rem 0 .25rem .9rem; }
tbody tr:hover { background: var(--soft); }
";

pub(crate) fn write(results: &Results, out: &mut dyn Write) -> io::Result<()> {
    let file = escaped(&results.file);
    let swept = entry::swept(results);
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{file} · weir</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{file}</h1>"
    )?;
    if results.interrupted {
        writeln!(out, "<p class=\"warning\">Interrupted: what follows is what was finished.</p>")?;
    }
    for (warning, labels) in entry::warnings(results) {
        writeln!(
            out,
            "<p class=\"warning\">{} <span class=\"note\">{}</span></p>",
            escaped(warning),
            escaped(&entry::listed(&labels))
        )?;
    }
    writeln!(out, "<p class=\"note\">Latency of all requests in ms, ± half of the 95 % interval.</p>")?;
    writeln!(out, "<div class=\"wide\">\n{}</div>", comparison::table(results).html())?;
    for s in &results.scenarios {
        writeln!(out, "<h2>{}</h2>", escaped(&entry::label(s, &swept)))?;
        for line in text::summary(s, results) {
            writeln!(out, "<p>{}</p>", escaped(&line))?;
        }
        writeln!(out, "<div class=\"wide\">\n{}</div>", text::latency(s).html())?;
        if !s.nodes.is_empty() {
            writeln!(out, "<div class=\"wide\">\n{}</div>", sites::table(s).html())?;
        }
    }
    writeln!(out, "<p class=\"note\">{}</p>", escaped(&sites::LEGEND.join(" · ")))?;
    writeln!(out, "<footer>{}</footer>\n</body>\n</html>", escaped(&signature(results)))
}
