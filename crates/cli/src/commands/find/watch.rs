//! `weir find --watch`: everything once, then a line for each change, until Ctrl-C or the reader leaves.

use super::Find;
use super::answers::{Answers, Step};
use crate::args::{File, ReportFormat};
use crate::failure::Failure;
use crate::{input, output};
use std::sync::mpsc::Receiver;
use std::time::{SystemTime, UNIX_EPOCH};
use weir_discovery::News;

/// Prints what the sources have said so far, and then what changes.
pub(super) fn run(mut answers: Answers, news: &Receiver<News>, args: &Find) -> Result<(), Failure> {
    let file = args.file();
    answers.all_notes().iter().for_each(|note| input::tell(&file, note));
    let mut is_read = print_all(&answers, args.output)?;
    while is_read {
        let Ok(one) = news.recv() else {
            return Err(Failure::Fault("the thread that asks the sources has ended".to_owned()));
        };
        is_read = match one {
            News::Update(update) => match answers.take(update) {
                Some(step) => print_change(&answers, &step, &file, args.output)?,
                None => true,
            },
            News::Failure(_) => true,
            News::Unwatched(unwatched) => {
                input::tell(&file, &format!("warning: {unwatched}"));
                true
            }
        };
    }
    Ok(())
}

/// Prints everything. Returns whether there is still a reader.
fn print_all(answers: &Answers, form: ReportFormat) -> Result<bool, Failure> {
    let fleets = answers.listed(true);
    output::to_reader(|out| match form {
        ReportFormat::Text => weir_report::find_text(&fleets, out),
        ReportFormat::Json => weir_report::find_json_line(&fleets, out),
    })
}

/// Prints what an update has changed, if anything. Returns whether there is still a reader.
fn print_change(answers: &Answers, step: &Step, file: &File, form: ReportFormat) -> Result<bool, Failure> {
    answers.notes(step).iter().for_each(|note| input::tell(file, note));
    let Some(words) = answers.change(step) else { return Ok(true) };
    if form == ReportFormat::Json {
        return print_all(answers, form);
    }
    let time = clock(SystemTime::now());
    output::to_reader(|out| {
        answers.names(step.source).try_for_each(|name| writeln!(out, "{time} {name}: {words}"))
    })
}

/// The time of day in UTC: `12:00:01`.
fn clock(now: SystemTime) -> String {
    let s = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    format!("{:02}:{:02}:{:02}", s / 3600 % 24, s / 60 % 60, s % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_time_is_that_of_the_day() {
        let times = [0, 86_399, 86_400 + 43_201].map(|s| clock(UNIX_EPOCH + Duration::from_secs(s)));
        assert_eq!(times, ["00:00:00", "23:59:59", "12:00:01"]);
    }
}
