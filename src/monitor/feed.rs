//! The bounded way from the world to whoever looks.
//!
//! The network side calls [`Feed::emit`] and never waits: of samples only the newest per ledger is
//! kept, wake-ups on one channel fold into one, and of everything else the oldest is dropped when the
//! reader is too slow (mere news first), which is counted and shown. The reader awaits [`Feed::next`].

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::model::{Event, Sink, Wake, WorkerEvent};

/// Events kept for a slow reader.
const KEEP: usize = 1024;

/// See the module.
#[derive(Default)]
pub struct Feed {
    // A std mutex: held for a push or a pop, never across an await.
    queue: Mutex<Queue>,
    // Woken at every emit; one reader waits.
    ready: Notify,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<Event>,
    dropped: u64,
}

impl Feed {
    /// An empty feed.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next event. Cancel-safe: an event is taken out only when it is returned.
    pub async fn next(&self) -> Event {
        loop {
            if let Some(event) = self.try_next() {
                return event;
            }
            self.ready.notified().await;
        }
    }

    /// The next event if one is there.
    pub fn try_next(&self) -> Option<Event> {
        self.lock().events.pop_front()
    }

    /// Events dropped because the reader was too slow.
    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        // A panic elsewhere cannot leave the queue half changed: every change is one push or pop.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts a plain line into the event log.
pub fn note(sink: &dyn Sink, text: &str) {
    sink.emit(Event::Note(crate::model::Note { warn: false, text: crate::text::clean(text) }));
}

/// Whether an event only tells something: one that also changes a state is dropped last, or the screen
/// would show the old state for ever.
fn is_news(event: &Event) -> bool {
    match event {
        Event::Wake(_) | Event::Note(_) => true,
        Event::Worker(worker) => !matches!(
            worker,
            WorkerEvent::Started { .. } | WorkerEvent::Stopped { .. } | WorkerEvent::Budget { .. }
        ),
        _ => false,
    }
}

impl Sink for Feed {
    fn emit(&self, event: Event) {
        {
            let mut q = self.lock();
            match &event {
                Event::Sample(new) => {
                    q.events.retain(|e| !matches!(e, Event::Sample(old) if old.ledger == new.ledger));
                    q.events.push_back(event);
                }
                Event::Backlog(new) => {
                    q.events.retain(|e| !matches!(e, Event::Backlog(old) if old.ledger == new.ledger));
                    q.events.push_back(event);
                }
                Event::Wake(new) => {
                    if let Some(Event::Wake(last)) = q.events.back_mut()
                        && last.channel == new.channel
                    {
                        *last = Wake { channel: last.channel.clone(), count: last.count + new.count };
                    } else {
                        q.events.push_back(event);
                    }
                }
                _ => q.events.push_back(event),
            }
            while q.events.len() > KEEP {
                let oldest = q.events.iter().position(is_news).unwrap_or(0);
                q.events.remove(oldest);
                q.dropped += 1;
            }
        }
        self.ready.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Note, Sample};

    fn sample(ledger: &str, pass: u64) -> Event {
        let mut s = Sample::empty(ledger, chrono::DateTime::UNIX_EPOCH);
        s.pass = pass;
        Event::Sample(Box::new(s))
    }

    #[test]
    fn only_the_newest_sample_of_a_ledger_waits() {
        let feed = Feed::new();
        feed.emit(sample("jobs", 1));
        feed.emit(sample("outbox", 1));
        feed.emit(sample("jobs", 2));
        assert_eq!(feed.try_next(), Some(sample("outbox", 1)));
        assert_eq!(feed.try_next(), Some(sample("jobs", 2)));
        assert_eq!(feed.try_next(), None);
    }

    #[test]
    fn wakeups_fold_and_a_slow_reader_loses_the_oldest_with_a_count() {
        let feed = Feed::new();
        let wake = |n| Event::Wake(Wake { channel: "c".into(), count: n });
        feed.emit(wake(1));
        feed.emit(wake(2));
        assert_eq!(feed.try_next(), Some(wake(3)));
        for i in 0..KEEP + 5 {
            feed.emit(Event::Note(Note { warn: false, text: i.to_string() }));
        }
        assert_eq!(feed.dropped(), 5);
        assert_eq!(feed.try_next(), Some(Event::Note(Note { warn: false, text: "5".into() })));
    }
}
