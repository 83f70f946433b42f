//! A listen session of the program with everything it says.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pgwake::model::{Event, Listen, Loss, Phases, Wake};
use pgwake::pg::{ListenConfig, ListenState, Listener};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use super::DEADLINE;
use super::ledger::conninfo;

/// Every event, and a bell for the next one.
#[derive(Default)]
pub struct Told {
    events: Mutex<Vec<Event>>,
    bell: Notify,
}

impl Told {
    /// The listen events so far.
    pub fn listens(&self) -> Vec<Listen> {
        let events = self.events.lock().unwrap();
        events
            .iter()
            .filter_map(|e| if let Event::Listen(l) = e { Some(l.clone()) } else { None })
            .collect()
    }

    /// The wake-ups so far.
    pub fn wakes(&self) -> Vec<Wake> {
        let events = self.events.lock().unwrap();
        events.iter().filter_map(|e| if let Event::Wake(w) = e { Some(w.clone()) } else { None }).collect()
    }

    /// Losses so far.
    pub fn downs(&self) -> Vec<Loss> {
        self.listens()
            .into_iter()
            .filter_map(|l| if let Listen::Down { loss, .. } = l { Some(loss) } else { None })
            .collect()
    }

    /// Waits for a state of all that was told.
    pub async fn until<T>(&self, what: &str, mut probe: impl FnMut(&Self) -> Option<T>) -> T {
        let wait = async {
            loop {
                let next = self.bell.notified();
                if let Some(found) = probe(self) {
                    return found;
                }
                next.await;
            }
        };
        timeout(DEADLINE, wait).await.unwrap_or_else(|_| panic!("{what}: {:?}", self.listens()))
    }
}

/// A running listener.
pub struct Listening {
    pub listener: Listener,
    pub told: Arc<Told>,
    state: watch::Receiver<ListenState>,
}

/// What a listener is when it is up.
#[derive(Clone, Copy, Debug)]
pub struct Up {
    pub generation: u64,
    pub pid: i32,
    pub again: bool,
    pub phases: Phases,
}

/// The configuration for channels, in key=value form of the connection.
pub fn config(text: &str, channels: &[&str]) -> ListenConfig {
    let channels = channels.iter().map(|c| (*c).to_owned()).collect();
    ListenConfig::new(conninfo(text), channels).expect("channels")
}

impl Listening {
    /// Starts, without waiting.
    pub fn start(config: ListenConfig) -> Self {
        let told = Arc::new(Told::default());
        let sink = told.clone();
        let listener = Listener::start(
            config,
            Arc::new(move |event: Event| {
                sink.events.lock().unwrap().push(event);
                sink.bell.notify_one();
            }),
        );
        let state = listener.state();
        Self { listener, told, state }
    }

    /// Starts and waits until it is up.
    pub async fn up(config: ListenConfig) -> (Self, Up) {
        let mut this = Self::start(config);
        let up = this.generation(1).await;
        (this, up)
    }

    /// The state at this moment.
    pub fn now(&self) -> ListenState {
        self.state.borrow().clone()
    }

    /// Waits for that session of the listener.
    pub async fn generation(&mut self, n: u64) -> Up {
        let is = |s: &ListenState| matches!(s, ListenState::Up { generation, .. } if *generation >= n);
        let state = timeout(DEADLINE, self.state.wait_for(is)).await;
        let state =
            state.unwrap_or_else(|_| panic!("session {n}: {:?}", self.told.listens())).unwrap().clone();
        let ListenState::Up { generation, pid, lost_at, phases } = state else { unreachable!() };
        Up { generation, pid, again: lost_at.is_some(), phases }
    }

    /// Waits for a state that is not up.
    pub async fn state(&mut self, what: &str, is: impl FnMut(&ListenState) -> bool) -> ListenState {
        timeout(DEADLINE, self.state.wait_for(is))
            .await
            .unwrap_or_else(|_| panic!("{what}"))
            .unwrap()
            .clone()
    }
}

/// A heartbeat quick enough for a test.
pub fn quick(mut config: ListenConfig) -> ListenConfig {
    config.heartbeat = Duration::from_millis(100);
    config.deadline = Duration::from_secs(2);
    config
}
