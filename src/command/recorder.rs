//! `--record FILE`: the events of a session, written on a thread of their own.
//!
//! The file is new and readable by its owner only: it tells who holds what on somebody's database. Every
//! event is written out as a whole line at once, so a program that is killed leaves all that it had shown.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use super::Failure;
use super::screen::Recorder;
use crate::app::Setup;
use crate::model::{Event, Note, Sink, Stamped};
use crate::record::Writer;

/// Events that may wait for a slow disk.
const WAITING: usize = 1024;

/// Takes events for a recording and never waits. Dropping it writes what still waits.
struct Tape {
    to: Option<SyncSender<Stamped>>,
    thread: Option<JoinHandle<()>>,
    sink: Arc<dyn Sink>,
    /// Events that a slow disk had no room for since the last that went through.
    lost: u64,
}

impl Tape {
    fn begin(path: &Path, setup: &Setup, sink: Arc<dyn Sink>) -> Result<Self, Failure> {
        let failed = |why: String| Failure::failed(format!("--record {}: {why}", path.display()));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let file = file.map_err(|e| match e.kind() {
            ErrorKind::AlreadyExists => {
                failed("it exists already; a recording is never overwritten".into())
            }
            _ => failed(e.to_string()),
        })?;
        Self::on(file, path.display().to_string(), setup, sink).map_err(|e| failed(e.to_string()))
    }

    fn on(file: File, name: String, setup: &Setup, sink: Arc<dyn Sink>) -> io::Result<Self> {
        let setup = setup.clone();
        let (to, from) = sync_channel(WAITING);
        let told = sink.clone();
        let thread = std::thread::Builder::new().name("recorder".to_owned()).spawn(move || {
            if let Err(e) = write(file, &setup, &from) {
                warn(&*told, format!("the recording in {name} ended: {e}"));
            }
        })?;
        Ok(Self { to: Some(to), thread: Some(thread), sink, lost: 0 })
    }

    /// Takes one event.
    fn take(&mut self, event: Stamped) {
        let Some(to) = &self.to else { return };
        match to.try_send(event) {
            Ok(()) if self.lost > 0 => {
                let text = format!("the disk was too slow: the recording lacks {} events", self.lost);
                self.lost = 0;
                warn(&*self.sink, text);
            }
            Ok(()) => {}
            Err(TrySendError::Full(_)) => self.lost += 1,
            // the writer has ended and has said why
            Err(TrySendError::Disconnected(_)) => self.to = None,
        }
    }
}

/// Begins a recording in a new file. What goes wrong later is told to `sink`: a full disk ends the
/// recording, not the screen.
pub(super) fn begin(path: &Path, setup: &Setup, sink: Arc<dyn Sink>) -> Result<Recorder, Failure> {
    let mut tape = Tape::begin(path, setup, sink)?;
    Ok(Box::new(move |event| tape.take(event)))
}

impl Drop for Tape {
    fn drop(&mut self) {
        drop(self.to.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write(file: File, setup: &Setup, from: &Receiver<Stamped>) -> io::Result<()> {
    let mut writer = Writer::new(BufWriter::new(file), setup)?;
    from.iter().try_for_each(|event| writer.write(&event))
}

fn warn(sink: &dyn Sink, text: String) {
    sink.emit(Event::Note(Note { warn: true, text }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record;

    fn event(text: &str) -> Stamped {
        let note = Event::Note(Note { warn: false, text: text.to_owned() });
        Stamped { mono_ms: 0, wall: chrono::DateTime::UNIX_EPOCH, event: note }
    }

    #[test]
    fn a_recording_is_new_private_and_complete_once_it_is_let_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let sink: Arc<dyn Sink> = Arc::new(|_: Event| {});
        let mut take = begin(&path, &Setup::new("here"), sink.clone()).unwrap();
        for i in 0..100 {
            take(event(&i.to_string()));
        }
        drop(take);
        let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&path).unwrap());
        assert_eq!(mode & 0o777, 0o600);
        let read = record::read(io::BufReader::new(File::open(&path).unwrap())).unwrap();
        assert_eq!((read.events.len(), read.about["target"].as_str()), (100, Some("here")));
        let again = begin(&path, &Setup::new("here"), sink).err().unwrap();
        assert!(again.line.contains("never overwritten"), "{}", again.line);
        let more = record::read(io::BufReader::new(File::open(&path).unwrap())).unwrap();
        assert_eq!(more.events.len(), 100);
    }

    #[test]
    fn a_full_disk_ends_the_recording_and_is_told() {
        let (told, heard) = std::sync::mpsc::channel();
        let sink: Arc<dyn Sink> = Arc::new(move |event: Event| {
            let _ = told.send(event);
        });
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut tape = Tape::on(full, "/dev/full".to_owned(), &Setup::default(), sink).unwrap();
        tape.take(event("x"));
        let Event::Note(note) = heard.recv().unwrap() else { panic!() };
        assert!(note.warn && note.text.starts_with("the recording in /dev/full ended: "), "{}", note.text);
    }
}
