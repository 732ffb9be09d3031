//! Parquet: the rows and columns of the CSV (`csv.rs`), typed. An unknown value is null; a parameter is a number if all
//! its values are, otherwise the text that follows `-p`.

use crate::{entry, over_time};
use ::parquet::basic::{LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::Result;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::{Type, TypePtr};
use std::io::{self, Write};
use std::sync::Arc;
use weir_plan::Value;
use weir_sim::{NodeResult, Results, ScenarioResult};
use weir_stats::Estimate;

/// The values of a column, row by row.
enum Values {
    Text(Vec<Option<String>>),
    Whole(Vec<Option<i64>>),
    Real(Vec<Option<f64>>),
}

struct Column {
    name: String,
    values: Values,
}

pub(crate) fn write(results: &Results, out: &mut dyn Write) -> io::Result<()> {
    let bytes = file(&columns(results)).map_err(io::Error::other)?;
    out.write_all(&bytes)
}

fn file(columns: &[Column]) -> Result<Vec<u8>> {
    let fields = columns.iter().map(Column::field).collect::<Result<Vec<TypePtr>>>()?;
    let schema = Arc::new(Type::group_type_builder("weir").with_fields(fields).build()?);
    let properties = Arc::new(WriterProperties::builder().set_created_by("weir".to_owned()).build());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties)?;
    let mut group = writer.next_row_group()?;
    for column in columns {
        match &column.values {
            Values::Text(rows) => {
                put::<ByteArrayType, _>(&mut group, rows, |text| ByteArray::from(text.as_str()))?;
            }
            Values::Whole(rows) => put::<Int64Type, _>(&mut group, rows, |n| *n)?,
            Values::Real(rows) => put::<DoubleType, _>(&mut group, rows, |x| *x)?,
        }
    }
    group.close()?;
    writer.into_inner()
}

/// Writes the next column: its values, and for each row whether it has one.
fn put<D: DataType, T>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    rows: &[Option<T>],
    value: impl Fn(&T) -> D::T,
) -> Result<()> {
    let values: Vec<D::T> = rows.iter().flatten().map(value).collect();
    let there: Vec<i16> = rows.iter().map(|row| i16::from(row.is_some())).collect();
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    column.typed::<D>().write_batch(&values, Some(&there), None)?;
    column.close()
}

impl Column {
    fn field(&self) -> Result<TypePtr> {
        let (physical, logical) = match self.values {
            Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Values::Whole(_) => (Physical::INT64, None),
            Values::Real(_) => (Physical::DOUBLE, None),
        };
        let field = Type::primitive_type_builder(&self.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()?;
        Ok(Arc::new(field))
    }
}

/// A row of the table.
struct Row<'a> {
    of: &'a ScenarioResult,
    /// The node that it is about, or the member.
    node: Option<&'a NodeResult>,
    name: Option<String>,
    metric: String,
    part_s: Option<f64>,
    value: Estimate,
}

fn rows(results: &Results) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for of in &results.scenarios {
        let own = entry::metrics(of).into_iter();
        rows.extend(own.map(|(metric, value)| Row {
            of,
            node: None,
            name: None,
            metric,
            part_s: None,
            value,
        }));
        rows.extend(over_time::rows(of).into_iter().map(|row| {
            let over_time::Row { node: name, metric, part_s, value } = row;
            let name = name.filter(|name| !name.is_empty());
            Row { of, node: None, name, metric, part_s, value }
        }));
        for n in &of.nodes {
            rows.extend(entry::node_metrics(n).into_iter().map(|(metric, value)| Row {
                of,
                node: Some(n),
                name: Some(n.name.clone()),
                metric,
                part_s: None,
                value,
            }));
        }
    }
    rows
}

fn columns(results: &Results) -> Vec<Column> {
    let rows = rows(results);
    let text =
        |name: &str, all: Vec<Option<String>>| Column { name: name.to_owned(), values: Values::Text(all) };
    let whole =
        |name: &str, all: Vec<Option<i64>>| Column { name: name.to_owned(), values: Values::Whole(all) };
    let real =
        |name: &str, all: Vec<Option<f64>>| Column { name: name.to_owned(), values: Values::Real(all) };
    let finite = |x: Option<f64>| x.filter(|x| x.is_finite());
    let mut all = vec![text("scenario", rows.iter().map(|r| Some(r.of.name.clone())).collect())];
    for name in entry::params(results) {
        let of = rows.iter().map(|r| entry::param(r.of, name));
        all.push(Column { name: format!("param.{name}"), values: typed(&of.collect::<Vec<_>>()) });
    }
    all.extend([
        text("node", rows.iter().map(|r| r.name.clone()).collect()),
        text("place", rows.iter().map(|r| Some(r.node?.place.clone())).collect()),
        text("kind", rows.iter().map(|r| Some(r.node?.kind.clone())).collect()),
        whole("count", rows.iter().map(|r| i64::try_from(r.node?.count).ok()).collect()),
        text("metric", rows.iter().map(|r| Some(r.metric.clone())).collect()),
    ]);
    if results.scenarios.iter().any(|s| s.over_time.is_some()) {
        all.push(real("part_s", rows.iter().map(|r| r.part_s).collect()));
    }
    all.extend([
        real("value", rows.iter().map(|r| finite(r.value.value)).collect()),
        real("low", rows.iter().map(|r| finite(r.value.low)).collect()),
        real("high", rows.iter().map(|r| finite(r.value.high)).collect()),
        whole("replications", rows.iter().map(|r| Some(entry::replications(r.of, results).into())).collect()),
        // A seed may be too large for a signed number.
        text("seed", vec![Some(results.seed.to_string()); rows.len()]),
        text("plan", vec![Some(results.plan.clone()); rows.len()]),
        text("version", vec![Some(results.version.clone()); rows.len()]),
    ]);
    all
}

fn typed(values: &[Option<&Value>]) -> Values {
    let known = || values.iter().flatten();
    if known().all(|v| matches!(v, Value::Int(_))) {
        return Values::Whole(
            values.iter().map(|v| if let Some(Value::Int(n)) = v { Some(*n) } else { None }).collect(),
        );
    }
    if known().all(|v| matches!(v, Value::Int(_) | Value::Float(_))) {
        let number = |v: &Option<&Value>| match v {
            Some(Value::Int(n)) => Some(*n as f64),
            Some(Value::Float(x)) => Some(*x),
            _ => None,
        };
        return Values::Real(values.iter().map(number).collect());
    }
    Values::Text(values.iter().map(|v| v.map(entry::value)).collect())
}
