//! A table of cells with headings, as text in columns or as HTML.

/// Which side of its column a cell keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Names.
    Left,
    /// Numbers.
    Right,
}

/// Between two columns.
const GAP: usize = 2;

/// Headings and rows of cells.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    headings: Vec<(String, Side)>,
    rows: Vec<Vec<String>>,
    /// How many columns after the first also say what a row is about.
    further_keys: usize,
}

impl Table {
    pub(crate) fn new() -> Table {
        Table { headings: Vec::new(), rows: Vec::new(), further_keys: 0 }
    }

    pub(crate) fn column(&mut self, heading: &str, side: Side) {
        self.headings.push((heading.to_owned(), side));
    }

    /// Adds a column that says what a row is of, as the first one does.
    pub(crate) fn key_column(&mut self, heading: &str, side: Side) {
        self.column(heading, side);
        self.further_keys += 1;
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

    /// As lines of text, each ended, none wider than `width` where that can be: the first column is cut if that is enough,
    /// else columns that find no room follow in tables of their own, each with the columns that say what a row is of.
    pub(crate) fn text(&self, width: usize) -> String {
        self.aligned().text_as_is(width)
    }

    /// With figures one above the other: points under points, intervals under intervals.
    fn aligned(&self) -> Table {
        let mut t = self.clone();
        for (i, _) in self.headings.iter().enumerate().filter(|(_, (_, side))| *side == Side::Right) {
            let column: Vec<&str> = self.rows.iter().map(|row| &row[i][..]).collect();
            for (row, cell) in t.rows.iter_mut().zip(aligned(&column)) {
                row[i] = cell;
            }
        }
        t
    }

    fn text_as_is(&self, width: usize) -> String {
        const NARROWEST: usize = 24;
        let mut widths = self.widths();
        let over = span(&widths).saturating_sub(width);
        if let Some(first) = widths.first_mut() {
            let enough = *first >= NARROWEST + over;
            *first = if enough { *first - over } else { (*first).min((width / 2).max(NARROWEST)) };
        }
        let parts = parts(&widths, 1 + self.further_keys, width);
        let parts: Vec<String> = parts.iter().map(|p| self.lines(p, &widths)).collect();
        parts.join("\n")
    }

    /// Whether its text is wider than that without anything cut.
    pub(crate) fn is_wider_than(&self, width: usize) -> bool {
        span(&self.aligned().widths()) > width
    }

    /// Rows as columns.
    pub(crate) fn transposed(&self) -> Table {
        let mut t = Table::new();
        for (i, (heading, side)) in self.headings.iter().take(1).enumerate() {
            t.column(heading, *side);
            self.rows.iter().for_each(|row| t.column(&row[i], Side::Right));
        }
        for (i, (heading, _)) in self.headings.iter().enumerate().skip(1) {
            t.row(
                std::iter::once(heading.clone()).chain(self.rows.iter().map(|row| row[i].clone())).collect(),
            );
        }
        t
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.headings.iter().map(|(h, _)| h.chars().count()).collect();
        for row in &self.rows {
            for (w, cell) in widths.iter_mut().zip(row) {
                *w = (*w).max(cell.chars().count());
            }
        }
        widths
    }

    /// Some of the columns as lines.
    fn lines(&self, columns: &[usize], widths: &[usize]) -> String {
        let mut out = String::new();
        let headings: Vec<String> = self.headings.iter().map(|(h, _)| h.clone()).collect();
        for row in std::iter::once(&headings).chain(&self.rows) {
            let mut line = String::new();
            for &i in columns {
                let cell = shortened(&row[i], widths[i]);
                let pad = " ".repeat(widths[i] - cell.chars().count());
                if i > 0 {
                    line.push_str(&" ".repeat(GAP));
                }
                match self.headings[i].1 {
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

/// A figure in its parts: what is before its point, the point with what follows, interval and unit.
fn figure(cell: &str) -> Option<(&str, &str, &str)> {
    let is_behind = |at: &usize| {
        let rest = &cell[at + 1..];
        rest.starts_with(['±', '(', '%']) || rest.starts_with(|c: char| c.is_alphabetic())
    };
    let end = cell.match_indices(' ').map(|(at, _)| at).find(is_behind).unwrap_or(cell.len());
    let (number, behind) = cell.split_at(end);
    let (whole, fraction) = number.split_at(number.find('.').unwrap_or(number.len()));
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit() || c == ' ');
    let is_number =
        digits(whole.trim_start_matches(['+', '-', '–'])) && digits(fraction.trim_start_matches('.'));
    (is_number && !fraction.starts_with("..")).then_some((whole, fraction, behind))
}

/// Cells of a column whose figures have intervals or units, one above the other. What has neither may be longer behind
/// its point, up to where intervals end.
fn aligned(column: &[&str]) -> Vec<String> {
    let figures: Vec<_> = column.iter().map(|cell| figure(cell)).collect();
    if figures.iter().flatten().all(|(.., behind)| behind.is_empty()) {
        return column.iter().map(|cell| (*cell).to_owned()).collect();
    }
    let length = |text: &str| text.chars().count();
    let with_more = figures.iter().flatten().filter(|(.., behind)| !behind.is_empty());
    let fraction = with_more.map(|(_, fraction, _)| length(fraction)).max().unwrap_or(0);
    let right_of_point = |(_, of_one, behind): &(&str, &str, &str)| match behind.is_empty() {
        true => (*of_one).to_owned(),
        false => format!("{of_one}{}{behind}", " ".repeat(fraction - length(of_one))),
    };
    let most = figures.iter().flatten().map(|parts| length(&right_of_point(parts))).max().unwrap_or(0);
    let cell = |(cell, parts): (&&str, &Option<(&str, &str, &str)>)| match parts {
        Some(parts) => {
            let right = right_of_point(parts);
            format!("{}{right}{}", parts.0, " ".repeat(most - length(&right)))
        }
        None => (*cell).to_owned(),
    };
    column.iter().zip(&figures).map(cell).collect()
}

/// The total width of columns of these widths.
fn span(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// The groups of columns: the first ones with as many of the others as have room, then they with the next ones.
fn parts(widths: &[usize], keys: usize, width: usize) -> Vec<Vec<usize>> {
    let keys: Vec<usize> = (0..keys.min(widths.len())).collect();
    let first = keys.iter().map(|&i| widths[i] + GAP).sum::<usize>().saturating_sub(GAP);
    let mut parts = vec![keys.clone()];
    let mut used = first;
    for (i, w) in widths.iter().enumerate().skip(keys.len()) {
        let alone = parts.last().is_some_and(|p| p.len() == keys.len());
        if used + GAP + w > width && !alone {
            parts.push(keys.clone());
            used = first;
        }
        used += GAP + w;
        if let Some(part) = parts.last_mut() {
            part.push(i);
        }
    }
    parts
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
        let text = table().without_empty_columns("–").text(29);
        assert_eq!(
            text,
            "site                        n\na <very> lo…me of a site    1\nb                         100\n"
        );
    }

    #[test]
    fn figures_of_a_column_stand_one_above_the_other() {
        let cells = ["1 732 ±12", "141.73 ±0.12", "20", "–", "240..567 ms", "100 %"];
        let want =
            ["1 732    ±12  ", "141.73 ±0.12", "20         ", "–         ", "240..567 ms", "100    %    "];
        assert_eq!(aligned(&cells), want);
        assert_eq!(aligned(&["1", "0.25"]), ["1", "0.25"]);
        assert_eq!(aligned(&["0.003248", "19.8 ±0.18"]), ["0.003248 ", "19.8 ±0.18"]);
    }

    #[test]
    fn columns_without_room_follow_in_a_table_of_their_own() {
        let mut t = Table::new();
        for heading in ["site", "requests", "failed", "busy"] {
            t.column(heading, if heading == "site" { Side::Left } else { Side::Right });
        }
        t.row(vec!["app".into(), "100".into(), "7".into(), "0.5".into()]);
        assert_eq!(t.text(22), "site  requests  failed\napp        100       7\n\nsite  busy\napp    0.5\n");
        // A column that fits nowhere is alone.
        assert!(t.text(3).lines().all(|l| l.starts_with("site") || l.starts_with("app") || l.is_empty()));
    }

    #[test]
    fn html_is_escaped() {
        assert!(table().html().contains("a &lt;very&gt; long"));
        assert_eq!(escaped("<&\"'>"), "&lt;&amp;&quot;&#39;&gt;");
    }
}
