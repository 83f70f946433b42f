//! Writes and reads event streams: one JSON line per event, behind a line that says what it is.
//!
//! A sample is written as its difference from the one before of the same ledger (see `delta`), which
//! makes a recording a tenth as large; every `WHOLE_EVERY`th is whole.
//!
//! A recording holds what the screen was told: samples, losses, wake-ups, actions. Payloads never reach
//! an event; should a statement of another session carry one, its literals are hidden here once more.

mod delta;

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use chrono::{DateTime, Utc};

use crate::model::{Event, Sample, Stamped};
use crate::text::without_literals;

/// Version of the format; a reader refuses a newer one.
const VERSION: u32 = 1;

/// A sample that needs no other stands this often among those of its ledger.
const WHOLE_EVERY: u32 = 300;

#[derive(Serialize, Deserialize)]
struct Head {
    pgwake_recording: u32,
    /// What was known before the first event, in the words of whoever records.
    #[serde(default)]
    about: Value,
}

/// A line that holds a sample.
#[derive(Serialize, Deserialize)]
struct SampleLine {
    mono_ms: u64,
    wall: DateTime<Utc>,
    ledger: String,
    taken_at: DateTime<Utc>,
    #[serde(flatten)]
    told: Told,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Told {
    /// The sample itself, its time folded.
    Sample(Value),
    /// What changed since the line before of the same ledger.
    Changed(Value),
}

/// Any line but the first.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Sample(SampleLine),
    Event(Stamped),
}

/// Writes a recording.
pub struct Writer<W: Write> {
    out: W,
    /// The last sample of each ledger, its time folded, and how many were told as changes since a whole one.
    last: BTreeMap<String, (Value, u32)>,
}

impl<W: Write> Writer<W> {
    /// Begins a recording; `about` is what was known before the first event.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn new(mut out: W, about: &impl Serialize) -> io::Result<Self> {
        let about = serde_json::to_value(about)?;
        serde_json::to_writer(&mut out, &Head { pgwake_recording: VERSION, about })?;
        out.write_all(b"\n")?;
        out.flush()?;
        Ok(Self { out, last: BTreeMap::new() })
    }

    /// Appends one event; whole lines only, so that a recording cut off anywhere is readable up to there.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn write(&mut self, event: &Stamped) -> io::Result<()> {
        let mut line = match &event.event {
            Event::Sample(sample) => serde_json::to_vec(&self.sample_line(event, sample)?)?,
            _ => serde_json::to_vec(event)?,
        };
        line.push(b'\n');
        self.out.write_all(&line)?;
        self.out.flush()
    }

    fn sample_line(&mut self, event: &Stamped, sample: &Sample) -> io::Result<SampleLine> {
        let mut value = serde_json::to_value(sample)?;
        hide_literals(&mut value);
        if let Some(time) = value.get("taken_at").and_then(Value::as_str).map(str::to_owned) {
            delta::fold_time(&mut value, &time);
        }
        let (told, age) = match self.last.get(&sample.ledger) {
            Some((before, age)) if *age < WHOLE_EVERY => {
                let same = || Value::Object(serde_json::Map::new());
                (Told::Changed(delta::diff(before, &value).unwrap_or_else(same)), age + 1)
            }
            _ => (Told::Sample(value.clone()), 0),
        };
        self.last.insert(sample.ledger.clone(), (value, age));
        let (mono_ms, wall) = (event.mono_ms, event.wall);
        Ok(SampleLine { mono_ms, wall, ledger: sample.ledger.clone(), taken_at: sample.taken_at, told })
    }
}

/// What was read of a recording.
#[derive(Debug, Default)]
pub struct Recording {
    /// What was known before the first event, as it was given to [`Writer::new`].
    pub about: Value,
    /// The events, in order.
    pub events: Vec<Stamped>,
    /// Where it broke off and why, if it did; what stands before it is whole.
    pub broken: Option<String>,
}

/// Why a file is no recording at all.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It does not begin like one.
    #[error("this is no recording of pgwake: its first line is not the head of one")]
    NotARecording,
    /// It was written by a newer program.
    #[error("this recording has format {0}; this program reads up to {VERSION}")]
    TooNew(u32),
}

/// Reads a recording as far as it is whole.
///
/// # Errors
/// The input cannot be read, or is no recording.
pub fn read(input: impl BufRead) -> Result<Recording, RecordError> {
    let mut lines = input.split(b'\n');
    let head = lines.next().transpose()?.unwrap_or_default();
    let head: Head = serde_json::from_slice(&head).map_err(|_| RecordError::NotARecording)?;
    if head.pgwake_recording > VERSION {
        return Err(RecordError::TooNew(head.pgwake_recording));
    }
    let mut out = Recording { about: head.about, ..Recording::default() };
    let mut samples = BTreeMap::new();
    for (i, line) in lines.enumerate() {
        let line = line?;
        if line.is_empty() {
            continue;
        }
        match event_of(&line, &mut samples) {
            Ok(event) => out.events.push(event),
            Err(e) => {
                out.broken = Some(format!("line {}: {e}", i + 2));
                break;
            }
        }
    }
    Ok(out)
}

/// Statements of other sessions lose their literals, whoever put them there.
fn hide_literals(sample: &mut Value) {
    let Some(sessions) = sample.pointer_mut("/sessions/value").and_then(Value::as_array_mut) else {
        return;
    };
    for query in sessions.iter_mut().filter_map(|s| s.get_mut("query")) {
        if let Value::String(sql) = query {
            *sql = without_literals(sql);
        }
    }
}

/// The event of a line, with the samples that were read before.
fn event_of(line: &[u8], samples: &mut BTreeMap<String, Value>) -> Result<Stamped, String> {
    let line = serde_json::from_slice(line).map_err(|e| reason(&e))?;
    let SampleLine { mono_ms, wall, ledger, taken_at, told } = match line {
        Line::Event(event) => return Ok(event),
        Line::Sample(line) => line,
    };
    let folded = match told {
        Told::Sample(whole) => whole,
        Told::Changed(change) => {
            let mut sample = samples.remove(&ledger).ok_or("a change without the sample before it")?;
            delta::patch(&mut sample, change).ok_or("a change that does not fit the sample before it")?;
            sample
        }
    };
    let mut value = folded.clone();
    samples.insert(ledger, folded);
    let time = serde_json::to_value(taken_at).map_err(|e| reason(&e))?;
    delta::unfold_time(&mut value, time.as_str().unwrap_or_default());
    let sample: Sample = serde_json::from_value(value).map_err(|e| reason(&e))?;
    Ok(Stamped { mono_ms, wall, event: Event::Sample(Box::new(sample)) })
}

/// What is wrong with a line, in words that say something.
fn reason(e: &serde_json::Error) -> String {
    if e.is_eof() {
        return "it was cut off in the middle".to_owned();
    }
    if e.is_syntax() { format!("it is damaged: {e}") } else { "it is no event".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Note, Reading, Trouble};

    fn recorded(n: u64) -> (Vec<Stamped>, Vec<u8>) {
        let events: Vec<Stamped> = (0..n)
            .map(|i| Stamped {
                mono_ms: i,
                wall: chrono::DateTime::UNIX_EPOCH,
                event: Event::Note(Note { warn: false, text: format!("event {i}") }),
            })
            .collect();
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, &"a test").unwrap();
        for event in &events {
            writer.write(event).unwrap();
        }
        (events, bytes)
    }

    #[test]
    fn what_is_written_is_read() {
        let (events, bytes) = recorded(3);
        let back = read(bytes.as_slice()).unwrap();
        assert_eq!(back.about, "a test");
        assert_eq!(back.events, events);
        assert_eq!(back.broken, None);
    }

    #[test]
    fn a_truncated_recording_gives_what_is_whole_and_says_where_it_broke() {
        let (events, bytes) = recorded(3);
        let back = read(&bytes[..bytes.len() - 10]).unwrap();
        assert_eq!(back.events, events[..2]);
        assert!(back.broken.unwrap().starts_with("line 4"));
    }

    #[test]
    fn samples_are_read_as_they_were_however_they_were_told() {
        let start = DateTime::UNIX_EPOCH;
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, &()).unwrap();
        let mut events = Vec::new();
        for i in 0..700_u32 {
            let at = start + chrono::TimeDelta::milliseconds(i64::from(i) * 1001);
            let mut sample = Sample::empty(["jobs", "outbox"][i as usize % 2], at);
            sample.pass = u64::from(i);
            sample.counts.ready = match i % 5 {
                0 => Reading::unknown(Trouble::TimedOut),
                1 => Reading::unknown(Trouble::Failed { sqlstate: None, text: "@".into() }),
                n => Reading::at_least(u64::from(n), at),
            };
            events.push(Stamped { mono_ms: i.into(), wall: at, event: Event::Sample(Box::new(sample)) });
        }
        for event in &events {
            writer.write(event).unwrap();
        }
        let whole =
            bytes.split(|b| *b == b'\n').filter(|l| l.windows(9).any(|w| w == b"\"sample\":")).count();
        assert_eq!(whole, 4, "two ledgers, each whole at first and once more");
        let back = read(bytes.as_slice()).unwrap();
        assert_eq!(back.broken, None);
        assert_eq!(back.events, events);
    }

    #[test]
    fn a_line_that_was_lost_or_changed_is_named() {
        let (_, bytes) = recorded(3);
        let text = String::from_utf8(bytes).unwrap();
        let broken = |text: &str| read(text.as_bytes()).unwrap().broken.unwrap();
        assert_eq!(
            broken(&text.replace("event 1\"", "event 1\"x")).split(": it is damaged").next(),
            Some("line 3")
        );
        assert_eq!(broken(&text.replace("Note", "Tune")), "line 2: it is no event");
        assert_eq!(broken(&text[..text.len() - 5]), "line 4: it was cut off in the middle");
        let orphan = r#"{"mono_ms":1,"wall":"1970-01-01T00:00:00Z","ledger":"jobs","taken_at":"1970-01-01T00:00:00Z","changed":{}}"#;
        assert_eq!(broken(&format!("{text}{orphan}\n")), "line 5: a change without the sample before it");
    }

    #[test]
    fn another_file_is_no_recording() {
        assert!(matches!(read(&b"hello"[..]), Err(RecordError::NotARecording)));
        assert!(matches!(read(&b"{\"pgwake_recording\":99}\n"[..]), Err(RecordError::TooNew(99))));
    }
}
