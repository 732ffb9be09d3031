//! A table of cells with headings, as text in columns or as HTML.

/// Which side of its column a cell keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Names.
    Left,
    /// Numbers.
    Right,
}

/// Headings and rows of cells.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    headings: Vec<(String, Side)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new() -> Table {
        Table { headings: Vec::new(), rows: Vec::new() }
    }

    pub(crate) fn column(&mut self, heading: &str, side: Side) {
        self.headings.push((heading.to_owned(), side));
    }

    /// Adds a row; it has a cell for every column.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.headings.len());
        self.rows.push(cells);
    }

    /// The same without columns in which no row says anything.
    pub(crate) fn without_empty_columns(mut self, empty: &str) -> Table {
        let says: Vec<bool> =
            (0..self.headings.len()).map(|c| self.rows.iter().any(|r| r[c] != empty)).collect();
        let keep = |i: &mut usize| {
            *i += 1;
            says[*i - 1]
        };
        let mut i = 0;
        self.headings.retain(|_| keep(&mut i));
        for row in &mut self.rows {
            let mut i = 0;
            row.retain(|_| keep(&mut i));
        }
        self
    }

    /// As lines of text, each ended; the first column is cut where the whole would be wider than `width`.
    pub(crate) fn text(&self, width: usize) -> String {
        const GAP: usize = 2;
        const NARROWEST: usize = 16;
        let mut widths: Vec<usize> = self.headings.iter().map(|(h, _)| h.chars().count()).collect();
        for row in &self.rows {
            for (w, cell) in widths.iter_mut().zip(row) {
                *w = (*w).max(cell.chars().count());
            }
        }
        let total = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        if let Some(first) = widths.first_mut() {
            *first = first.saturating_sub(total.saturating_sub(width)).max(NARROWEST.min(*first));
        }
        let mut out = String::new();
        let headings: Vec<String> = self.headings.iter().map(|(h, _)| h.clone()).collect();
        for row in std::iter::once(&headings).chain(&self.rows) {
            let mut line = String::new();
            for (i, (cell, (_, side))) in row.iter().zip(&self.headings).enumerate() {
                let cell = shortened(cell, widths[i]);
                let pad = " ".repeat(widths[i] - cell.chars().count());
                if i > 0 {
                    line.push_str(&" ".repeat(GAP));
                }
                match side {
                    Side::Left => line.extend([cell.as_str(), pad.as_str()]),
                    Side::Right => line.extend([pad.as_str(), cell.as_str()]),
                }
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }

    /// As an HTML table.
    pub(crate) fn html(&self) -> String {
        let class = |side: Side| if side == Side::Right { " class=\"n\"" } else { "" };
        let mut out = String::from("<table>\n<thead><tr>");
        for (h, side) in &self.headings {
            out.push_str(&format!("<th{}>{}</th>", class(*side), escaped(h)));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            for (cell, (_, side)) in row.iter().zip(&self.headings) {
                out.push_str(&format!("<td{}>{}</td>", class(*side), escaped(cell)));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody>\n</table>\n");
        out
    }
}

/// At most `width` characters: the middle of what is longer gives way to `…`, since names differ at their ends.
fn shortened(s: &str, width: usize) -> String {
    let n = s.chars().count();
    if n <= width {
        return s.to_owned();
    }
    let head = width.saturating_sub(1) / 2;
    let tail = width.saturating_sub(1) - head;
    s.chars().take(head).chain(['…']).chain(s.chars().skip(n - tail)).collect()
}

/// Safe between tags and in attributes.
pub fn escaped(s: &str) -> String {
    let mut out = String::with_capacity(s.len());
    for c in s.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut t = Table::new();
        t.column("site", Side::Left);
        t.column("n", Side::Right);
        t.column("no", Side::Right);
        t.row(vec!["a <very> long name of a site".into(), "1".into(), "–".into()]);
        t.row(vec!["b".into(), "100".into(), "–".into()]);
        t
    }

    #[test]
    fn columns_are_aligned_and_empty_ones_left_out() {
        let text = table().without_empty_columns("–").text(100);
        assert_eq!(
            text,
            "site                            n\na <very> long name of a site    1\nb                             100\n"
        );
    }

    #[test]
    fn the_first_column_gives_way() {
        let text = table().without_empty_columns("–").text(21);
        assert_eq!(text, "site                n\na <very…f a site    1\nb                 100\n");
    }

    #[test]
    fn html_is_escaped() {
        assert!(table().html().contains("a &lt;very&gt; long"));
        assert_eq!(escaped("<&\"'>"), "&lt;&amp;&quot;&#39;&gt;");
    }
}
