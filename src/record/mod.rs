//! Writes and reads event streams: one JSON line per event, behind a line that says what it is.
//!
//! A recording holds what the screen was told: samples, losses, wake-ups, actions. Payloads never reach
//! an event, so they are never in it.

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::Stamped;

/// Version of the format; a reader refuses a newer one.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Head {
    pgwake_recording: u32,
    /// What was known before the first event, in the words of whoever records.
    #[serde(default)]
    about: Value,
}

/// Writes a recording.
pub struct Writer<W: Write> {
    out: W,
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
        Ok(Self { out })
    }

    /// Appends one event; whole lines only, so that a recording cut off anywhere is readable up to there.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn write(&mut self, event: &Stamped) -> io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        self.out.write_all(&line)?;
        self.out.flush()
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
    for (i, line) in lines.enumerate() {
        let line = line?;
        if line.is_empty() {
            continue;
        }
        match serde_json::from_slice(&line) {
            Ok(event) => out.events.push(event),
            Err(e) => {
                out.broken = Some(format!("line {}: {e}", i + 2));
                break;
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Event, Note};

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
    fn another_file_is_no_recording() {
        assert!(matches!(read(&b"hello"[..]), Err(RecordError::NotARecording)));
        assert!(matches!(read(&b"{\"pgwake_recording\":99}\n"[..]), Err(RecordError::TooNew(99))));
    }
}
