//! The listen session: one server session that LISTENs and does nothing else.
//!
//! It is never in a transaction, never shared, and proven rather than assumed: after LISTEN a later
//! transaction must find the same backend pid and the channels in `pg_listening_channels()` (a
//! transaction pooler accepts LISTEN and is deaf), and a heartbeat with a deadline finds the peer that
//! keepalive does not. Every loss is an event with its SQLSTATE; coming back is capped, jittered, and
//! timed by phase. Notifications are read always and kept as counts per channel: they are hints.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::{Notify, broadcast, watch};
use tokio::time::{interval_at, sleep};

use super::conninfo::Conninfo;
use super::error::Error;
use super::retry::Backoff;
use super::session::{Purpose, Session};
use super::standstill::Standstill;
use crate::model::{Event, Listen, Loss, Phases, Sink, Wake};
use crate::text::{channel_problem, clean, quote_ident};

/// How to listen.
#[derive(Clone, Debug)]
pub struct ListenConfig {
    /// Where; through no transaction pooler.
    pub conninfo: Conninfo,
    /// Channels, exact bytes, 1–63 each. Empty: nothing is opened, polling only.
    pub channels: Vec<String>,
    /// Pause between heartbeats.
    pub heartbeat: Duration,
    /// How long a heartbeat may take.
    pub deadline: Duration,
}

impl ListenConfig {
    /// With the default heartbeat: every 7 s, 5 s to answer.
    ///
    /// # Errors
    /// A channel name that PostgreSQL would cut or refuse, with its byte count.
    pub fn new(conninfo: Conninfo, channels: Vec<String>) -> Result<Self, String> {
        for channel in &channels {
            if let Some(problem) = channel_problem(channel) {
                return Err(problem);
            }
        }
        Ok(Self { conninfo, channels, heartbeat: Duration::from_secs(7), deadline: Duration::from_secs(5) })
    }
}

/// Where the listen session stands.
#[derive(Clone, Debug)]
pub enum ListenState {
    /// Never been up.
    Starting,
    /// LISTEN is committed and proven.
    Up {
        /// Counts the sessions of this listener, from 1.
        generation: u64,
        /// Backend pid.
        pid: i32,
        /// When the session before was lost, if there was one.
        lost_at: Option<Instant>,
        /// How long it took, since `lost_at` or since the start.
        phases: Phases,
    },
    /// Lost, coming back.
    Down(Loss),
    /// Listening does not work here, or no channel is configured: polling only.
    Off,
}

/// How often the clocks are looked at, and the jump that means that the program did not run: stopped from
/// outside, or asleep. Nobody read the session meanwhile, and wake-ups may be lost.
const LOOK: Duration = Duration::from_secs(2);
const STOOD_STILL: Duration = Duration::from_secs(6);

/// A running listen session; dropping the last handle closes it.
pub struct Listener {
    state: watch::Receiver<ListenState>,
    wakes: broadcast::Sender<Wake>,
    rest: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

/// A listen session that lives less than this is followed by a pause: whoever ends them all at once, a
/// proxy or a limit, is not to be hammered.
const WORTH_IT: Duration = Duration::from_millis(500);

/// Wake-ups a slow subscriber may fall behind before it is told it lagged (which is a wake-up, too).
const WAKES: usize = 64;

impl Listener {
    /// Starts listening on a task of its own. Events go to `sink`.
    pub fn start(config: ListenConfig, sink: Arc<dyn Sink>) -> Self {
        let (tell, state) = watch::channel(ListenState::Starting);
        let (wakes, _) = broadcast::channel(WAKES);
        let (rest, wish) = watch::channel(false);
        let task = tokio::spawn(run(config, sink, tell, wakes.clone(), wish));
        Self { state, wakes, rest, task }
    }

    /// The state now and later.
    pub fn state(&self) -> watch::Receiver<ListenState> {
        self.state.clone()
    }

    /// Closes the session until [`Listener::go_on`], and waits until it is closed: a listener that is
    /// about to stop reading would fill the server's notification queue for everybody.
    pub async fn rest(&self) {
        self.rest.send_replace(true);
        let mut state = self.state.clone();
        let _ = state.wait_for(|s| !matches!(s, ListenState::Up { .. })).await;
    }

    /// Listens again, as after a loss: whoever waits for its state sees another generation, and scans.
    pub fn go_on(&self) {
        self.rest.send_replace(false);
    }

    /// Wake-ups from now on. A lagging receiver should take the lag itself as a wake-up.
    pub fn wakes(&self) -> broadcast::Receiver<Wake> {
        self.wakes.subscribe()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Counts per channel since the last look: bounded by the number of channels.
#[derive(Default)]
struct Inbox {
    counts: Mutex<BTreeMap<String, u64>>,
    arrived: Notify,
}

impl Inbox {
    fn add(&self, channel: &str) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        match counts.get_mut(channel) {
            Some(n) => *n += 1,
            None => {
                counts.insert(channel.to_owned(), 1);
            }
        }
        drop(counts);
        self.arrived.notify_one();
    }

    fn take(&self) -> BTreeMap<String, u64> {
        std::mem::take(&mut *self.counts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn run(
    config: ListenConfig,
    sink: Arc<dyn Sink>,
    tell: watch::Sender<ListenState>,
    wakes: broadcast::Sender<Wake>,
    mut wish: watch::Receiver<bool>,
) {
    if config.channels.is_empty() {
        tell.send_replace(ListenState::Off);
        sink.emit(Event::Listen(Listen::Off));
        return;
    }
    let mut generation = 0;
    let mut backoff = Backoff::new();
    let mut brief = Backoff::new();
    let mut since = Instant::now();
    let mut lost_at = None;
    loop {
        if wish.wait_for(|rest| !*rest).await.is_err() {
            return;
        }
        let inbox = Arc::new(Inbox::default());
        let opened = tokio::select! {
            biased;
            _ = wish.wait_for(|rest| *rest) => continue,
            opened = open(&config, inbox.clone(), since) => opened,
        };
        match opened {
            Ok(Opened::Proven(session, phases)) => {
                generation += 1;
                backoff = Backoff::new();
                let up = Instant::now();
                let pid = session.pid();
                sink.emit(Event::Listen(Listen::Up {
                    pid,
                    channels: config.channels.iter().map(|c| clean(c)).collect(),
                    phases,
                    again: generation > 1,
                }));
                tell.send_replace(ListenState::Up { generation, pid, lost_at, phases });
                let loss = tokio::select! {
                    biased;
                    loss = listen(&config, &session, &inbox, sink.as_ref(), &wakes) => loss,
                    _ = wish.wait_for(|rest| *rest) => {
                        Loss { sqlstate: None, message: "closed while the program is stopped".to_owned() }
                    }
                };
                // Closed before it is told: then nobody stops with a session that is still there.
                session.close().await;
                since = Instant::now();
                lost_at = Some(since);
                tell.send_replace(ListenState::Down(loss.clone()));
                sink.emit(Event::Listen(Listen::Down { loss, up_ms: millis(up.elapsed()) }));
                // The first attempt to come back is made at once, unless sessions end as soon as they begin.
                if up.elapsed() >= WORTH_IT {
                    brief = Backoff::new();
                } else {
                    sleep(brief.failed()).await;
                }
            }
            Ok(Opened::Deaf(why)) => {
                tell.send_replace(ListenState::Off);
                sink.emit(Event::Listen(Listen::Deaf { why }));
                pause(&mut wish, backoff.failed().max(config.heartbeat)).await;
            }
            Err(error) => {
                let loss = error.loss();
                let pause = backoff.failed();
                if generation > 0 || backoff.attempts() == 1 {
                    tell.send_replace(ListenState::Down(loss.clone()));
                }
                sink.emit(Event::Listen(Listen::Retry {
                    attempt: backoff.attempts(),
                    after_ms: millis(pause),
                    loss,
                }));
                self::pause(&mut wish, pause).await;
            }
        }
    }
}

/// Waits, but not through a time of rest: what comes after it begins at once.
async fn pause(wish: &mut watch::Receiver<bool>, time: Duration) {
    tokio::select! {
        _ = wish.wait_for(|rest| *rest) => {}
        () = sleep(time) => {}
    }
}

enum Opened {
    Proven(Session, Phases),
    Deaf(String),
}

/// Connects, LISTENs in a transaction of its own that is committed, and proves it in a later one.
async fn open(config: &ListenConfig, inbox: Arc<Inbox>, since: Instant) -> Result<Opened, Error> {
    let on_notify = Box::new(move |channel: &str| inbox.add(channel));
    let session = Session::connect_with(&config.conninfo, Purpose::Listen, on_notify).await?;
    let connected_ms = millis(since.elapsed());
    for channel in &config.channels {
        // Quoted exactly: unquoted, the name would fold to lower case and never meet its producers.
        session.batch(&format!("listen {}", quote_ident(channel)), config.deadline).await?;
    }
    match prove(config, &session).await? {
        None => {
            let phases = Phases { connected_ms, listening_ms: millis(since.elapsed()) };
            Ok(Opened::Proven(session, phases))
        }
        Some(why) => Ok(Opened::Deaf(why)),
    }
}

/// Also the heartbeat: still this backend, still listening on every channel. `None` is a pass.
async fn prove(config: &ListenConfig, session: &Session) -> Result<Option<String>, Error> {
    let row = session
        .one(
            "select pg_backend_pid(), array(select c from pg_listening_channels() as c)",
            &[],
            config.deadline,
        )
        .await?;
    let (pid, channels): (i32, Vec<String>) = (row.get(0), row.get(1));
    if pid != session.pid() {
        return Ok(Some(format!(
            "the backend changed from {} to {pid}: a pooler without session mode; polling only",
            session.pid()
        )));
    }
    let missing = config.channels.iter().find(|c| !channels.contains(c));
    Ok(missing
        .map(|c| format!("not listening on {}: a pooler without session mode; polling only", clean(c))))
}

/// Reads until the session is lost, and says why it was.
async fn listen(
    config: &ListenConfig,
    session: &Session,
    inbox: &Inbox,
    sink: &dyn Sink,
    wakes: &broadcast::Sender<Wake>,
) -> Loss {
    let start = tokio::time::Instant::now() + config.heartbeat;
    let mut beat = interval_at(start, config.heartbeat);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut look = interval_at(tokio::time::Instant::now() + LOOK, LOOK);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut watch = Standstill::new(Instant::now(), SystemTime::now());
    loop {
        tokio::select! {
            biased;
            loss = session.wait_ended() => return loss,
            _ = look.tick() => {
                if let Some(gap) = watch.look(Instant::now(), SystemTime::now(), STOOD_STILL) {
                    let message = format!("this program stood still for {:.0} s", gap.as_secs_f64());
                    return Loss { sqlstate: None, message };
                }
            }
            () = inbox.arrived.notified() => pass_on(inbox, sink, wakes),
            _ = beat.tick() => {
                // The heartbeat runs beside the reading, so that wake-ups are not held up by it.
                let answer = prove(config, session);
                tokio::pin!(answer);
                loop {
                    tokio::select! {
                        biased;
                        () = inbox.arrived.notified() => pass_on(inbox, sink, wakes),
                        answer = &mut answer => match answer {
                            Ok(None) => break,
                            Ok(Some(why)) => return Loss { sqlstate: None, message: why },
                            Err(Error::Deadline(after)) => {
                                return Loss {
                                    sqlstate: None,
                                    message: format!("heartbeat unanswered for {:.0} s", after.as_secs_f64()),
                                };
                            }
                            Err(e) => return e.loss(),
                        },
                    }
                }
            }
        }
    }
}

/// Hands the counted wake-ups to subscribers (no subscriber is fine: the dashboard may run without a
/// worker) and to the sink.
fn pass_on(inbox: &Inbox, sink: &dyn Sink, wakes: &broadcast::Sender<Wake>) {
    for (channel, count) in inbox.take() {
        let shown = clean(&channel);
        let _ = wakes.send(Wake { channel, count });
        sink.emit(Event::Wake(Wake { channel: shown, count }));
    }
}

fn millis(d: Duration) -> u64 {
    u64::try_from(d.as_millis()).unwrap_or(u64::MAX)
}
