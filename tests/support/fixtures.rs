//! States of the screen, built from nothing but events, as the world would send them.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use pgwake::app::{App, Msg, Setup, update};
use pgwake::config::keys::Key;
use pgwake::model::*;
use pgwake::text::clean;

/// The moment at which every fixture is drawn, seconds since the start.
pub const END: u64 = 300;

pub fn now_at(seconds: f64) -> Now {
    let wall = DateTime::parse_from_rfc3339("2026-03-01T21:26:07Z").unwrap().to_utc();
    Now {
        mono: Duration::from_secs_f64(seconds),
        wall: wall + TimeDelta::milliseconds((seconds * 1e3) as i64),
    }
}

pub fn end() -> Now {
    now_at(END as f64 + 0.3)
}

/// A server's clock that is not the client's.
fn server_time(seconds: u64) -> DateTime<Utc> {
    now_at(seconds as f64).wall + TimeDelta::seconds(7)
}

pub fn send(app: &mut App, seconds: f64, event: Event) {
    update(app, Msg::Event(Box::new(event)), now_at(seconds));
}

pub fn press(app: &mut App, key: Key) -> Vec<Intent> {
    update(app, Msg::Key(key), end())
}

pub fn setup() -> Setup {
    let mut setup = Setup::new("shop@db-1:5432/orders");
    setup.label = Some("PROD".into());
    setup.bar = Some("red".into());
    setup
}

pub fn server() -> Server {
    let ledger = |name: &str, channel: &str| LedgerFacts {
        name: name.into(),
        relation: format!("pgwake.{name}"),
        channel: Some(channel.into()),
        fencing: Fencing::Token,
        scratch: false,
        release_sql: "UPDATE pgwake.jobs SET status = 'ready', locked_by = NULL, locked_until = NULL, \
                      lease_token = NULL\nWHERE id = $1 AND status = 'running' AND lease_token = $2 AND \
                      locked_until = $3"
            .into(),
    };
    Server {
        address: "shop@db-1:5432/orders".into(),
        version: "15.18".into(),
        version_num: 150_018,
        role: Role::Primary,
        read_only: None,
        pid: 4100,
        ledgers: vec![ledger("jobs", "pgwake_work"), ledger("outbox", "pgwake_outbox")],
    }
}

pub fn connected(setup: Setup) -> App {
    let mut app = App::new(setup);
    send(&mut app, 0.1, Event::Link(Link::Up(Box::new(server()))));
    let listen = Listen::Up {
        pid: 4101,
        channels: vec!["pgwake_work".into()],
        phases: Phases { connected_ms: 12, listening_ms: 21 },
        again: false,
    };
    send(&mut app, 0.2, Event::Listen(listen));
    app
}

/// A sample in which everything is read and nothing is there.
pub fn quiet(second: u64) -> Sample {
    let at = server_time(second);
    let mut s = Sample::empty("jobs", at);
    s.pass = second;
    let zero = || Reading::exact(0u64, at);
    s.counts =
        Counts { ready: zero(), scheduled: zero(), running: zero(), expired: zero(), failed: zero() };
    s.next_scheduled = Reading::exact(None, at);
    s.vitals = Vitals {
        oldest_ready: Reading::exact(None, at),
        queue_usage: Reading::exact(0.0, at),
        claim_success: Reading::exact(None, at),
        claim_p99_ms: Reading::exact(None, at),
        recovery_p95: Reading::exact(None, at),
        reconnects: Reading::exact(0, at),
        fallback_share: Reading::exact(None, at),
    };
    s.flow = Flow {
        arrived: Reading::exact(0.0, at),
        done: Reading::exact(0.0, at),
        failed: Reading::exact(0.0, at),
    };
    s.leases = Reading::exact(Vec::new(), at);
    s.holders = Reading::exact(Vec::new(), at);
    s.workers = Reading::exact(Vec::new(), at);
    s.sessions = Reading::exact(Vec::new(), at);
    s.notify_lock = Reading::exact(NotifyLock::default(), at);
    s.connections = Reading::exact((14, 100), at);
    s.cost = Cost { pass_ms: 2.1, interval_ms: 1000, effective_ms: 1000 };
    s
}

pub fn worker_row(name: &str, second: u64, seen_ago: i64) -> WorkerRow {
    let at = server_time(second);
    WorkerRow {
        name: name.into(),
        ledger: "jobs".into(),
        host: "app-1".into(),
        pid: 812,
        version: "0.1.0".into(),
        started_at: at - TimeDelta::hours(2),
        seen_at: at - TimeDelta::seconds(seen_ago),
        counters: Counters::default(),
        reconnects: 0,
        recovery: Percentiles::default(),
        wake_latency: Percentiles::default(),
        claim: Percentiles::default(),
        budget: BudgetState::Open,
    }
}

pub fn lease(second: u64, id: u64, holder: &str, held_s: i64, left_s: i64) -> Lease {
    let at = server_time(second);
    Lease {
        id: id.to_string(),
        token: format!("0b1c{id:04x}-7d1e-4c55-9a66-0a3b5e5f7a10"),
        holder: holder.into(),
        job_type: ["mail.send", "invoice.render", "search.index"][id as usize % 3].into(),
        expires: Some(at + TimeDelta::seconds(left_s)),
        attempts: Some(1 + id as i64 % 3),
        max_attempts: Some(5),
        seen_since: at - TimeDelta::seconds(held_s),
        held_exact: held_s < 250,
    }
}

/// Sets leases, and holders, running and expired after them. Heartbeats are seconds ago.
pub fn hold(s: &mut Sample, mut leases: Vec<Lease>, beats: &[(&str, Option<i64>, Option<i32>)]) {
    let at = s.taken_at;
    leases.sort_by_key(|l| l.expires);
    let mut holders: Vec<Holder> = Vec::new();
    for l in &leases {
        if !holders.iter().any(|h| h.name == l.holder) {
            let beat = beats.iter().find(|(n, _, _)| *n == l.holder);
            holders.push(Holder {
                name: l.holder.clone(),
                held: 0,
                expired: 0,
                oldest_since: None,
                next_expiry: None,
                heartbeat: beat.and_then(|b| b.1).map(|ago| at - TimeDelta::seconds(ago)),
                backend: beat.and_then(|b| b.2),
            });
        }
        let h = holders.iter_mut().find(|h| h.name == l.holder).unwrap();
        h.held += 1;
        h.expired += u64::from(l.is_expired(at));
        h.oldest_since = h.oldest_since.into_iter().chain([l.seen_since]).min();
        h.next_expiry = h.next_expiry.into_iter().chain(l.expires).min();
    }
    s.counts.running = Reading::exact(leases.len() as u64, at);
    s.counts.expired = Reading::exact(leases.iter().filter(|l| l.is_expired(at)).count() as u64, at);
    s.leases = Reading::exact(leases, at);
    s.holders = Reading::exact(holders, at);
}

/// Connected to a ledger without a single job.
pub fn empty() -> App {
    let mut app = connected(setup());
    for t in 1..=END {
        send(&mut app, t as f64, Event::Sample(Box::new(quiet(t))));
    }
    app
}

/// A little work, done as it comes.
pub fn calm() -> App {
    let mut app = connected(setup());
    for t in 1..=END {
        send(&mut app, t as f64, Event::Sample(Box::new(flowing(t, 3.0, 3.0, 0))));
        if t % 20 == 0 {
            send(&mut app, t as f64, Event::Wake(Wake { channel: "pgwake_work".into(), count: 3 }));
        }
    }
    app
}

pub fn flowing(t: u64, arrived: f64, done: f64, ready: u64) -> Sample {
    let mut s = quiet(t);
    let at = s.taken_at;
    s.counts.ready = Reading::exact(ready, at);
    s.counts.scheduled = Reading::at_least(10_000, at);
    s.counts.failed = Reading::exact(37, at);
    s.next_scheduled = Reading::exact(Some(12.0), at);
    s.vitals.oldest_ready = Reading::exact((ready > 0).then_some(0.4 + (t % 7) as f64 / 10.0), at);
    s.vitals.queue_usage = Reading::exact(0.000012, at);
    s.vitals.claim_success = Reading::exact(Some(0.982), at);
    s.vitals.claim_p99_ms = Reading::exact(Some(2.4), at);
    s.vitals.recovery_p95 = Reading::exact(Some(0.8), at);
    s.vitals.reconnects = Reading::exact(2, at);
    s.vitals.fallback_share = Reading::exact(Some(0.0), at);
    s.flow.arrived = Reading::exact(arrived, at);
    s.flow.done = Reading::exact(done, at);
    s.workers =
        Reading::exact(vec![worker_row("mail-worker-3", t, 2), worker_row("mail-worker-4", t, 1)], at);
    let leases = vec![lease(t, 4711, "mail-worker-3", 1, 119), lease(t, 4712, "mail-worker-4", 0, 119)];
    hold(&mut s, leases, &[("mail-worker-3", Some(2), Some(4242)), ("mail-worker-4", Some(1), Some(4243))]);
    s
}

/// Hundreds of jobs a second, two expired leases of a dead holder, a reconnect behind it.
pub fn busy() -> App {
    let mut app = connected(setup());
    for t in 1..=END {
        let wave =
            |t: u64, at: f64| 380.0 + 170.0 * (t as f64 / 37.0 + at).sin() + 40.0 * (t as f64 / 5.0).sin();
        // half a minute without an answer, in the middle
        if (120..150).contains(&t) {
            continue;
        }
        let mut s = flowing(t, wave(t, 0.0), wave(t, -0.3) + 25.0, 1_204);
        s.flow.failed = Reading::exact(1.2, s.taken_at);
        let mut leases = Vec::new();
        for i in 0..8 {
            leases.push(lease(t, 4720 + i, "mail-worker-3", 1 + i as i64 % 4, 118 - i as i64));
        }
        for i in 0..4 {
            leases.push(lease(t, 4740 + i, "mail-worker-4", i as i64 % 2, 64 + 10 * i as i64));
        }
        if t > 170 {
            let gone = t as i64 - 168;
            for i in 0..2 {
                leases.push(lease(t, 4700 + i, "mail-worker-7", gone + 120, -gone));
            }
        }
        let beats = [
            ("mail-worker-3", Some(2), Some(4242)),
            ("mail-worker-4", Some(1), Some(4243)),
            ("mail-worker-7", Some(t as i64 - 40), None),
        ];
        hold(&mut s, leases, &beats);
        send(&mut app, t as f64, Event::Sample(Box::new(s)));
        send(&mut app, t as f64, Event::Wake(Wake { channel: "pgwake_work".into(), count: 40 }));
        if t == 280 {
            let loss = Loss {
                sqlstate: Some("57P01".into()),
                message: "terminating connection due to administrator command".into(),
            };
            send(&mut app, 280.2, Event::Listen(Listen::Down { loss, up_ms: 7_980_000 }));
            let phases = Phases { connected_ms: 600, listening_ms: 700 };
            let up = Listen::Up { pid: 4188, channels: vec!["pgwake_work".into()], phases, again: true };
            send(&mut app, 280.9, Event::Listen(up));
            let back = Recovery { phases, scanned_ms: 800, jobs: 3 };
            send(&mut app, 281.0, Event::Worker(WorkerEvent::Recovered(back)));
            let drained =
                WorkerEvent::Drained { ledger: "jobs".into(), reason: ScanReason::Notify, jobs: 1000 };
            send(&mut app, 290.0, Event::Worker(drained));
        }
    }
    app
}

/// Work piles up: jobs are held, and none is finished.
pub fn stuck() -> App {
    let mut app = connected(setup());
    for t in 1..=END {
        let done = if t < 200 { 40.0 } else { 0.0 };
        let ready = if t < 200 { 3 } else { 3 + (t - 200) * 40 };
        let mut s = flowing(t, 40.0, done, ready);
        let at = s.taken_at;
        let waiting = t.saturating_sub(200);
        s.vitals.oldest_ready = Reading::exact(Some(0.2 + waiting as f64), at);
        s.vitals.claim_success = Reading::unknown(Trouble::NoPrivilege);
        s.vitals.queue_usage = Reading::exact(0.127, at);
        if t > 285 {
            let kept = Reading::at_least(10_000, server_time(285));
            s.counts.scheduled = Reading::unknown(Trouble::TimedOut).or_last(&kept);
        }
        s.counts.failed = Reading::unknown(Trouble::NoPrivilege);
        let mut leases: Vec<Lease> =
            (0..10).map(|i| lease(t, 900 + i, "invoice-worker-1", waiting as i64, 20 + i as i64)).collect();
        leases.push(Lease { expires: None, ..lease(t, 990, "by-hand", 4_000, 0) });
        hold(&mut s, leases, &[("invoice-worker-1", Some(3), Some(512))]);
        s.cost = Cost { pass_ms: 180.0, interval_ms: 1000, effective_ms: 3600 };
        send(&mut app, t as f64, Event::Sample(Box::new(s)));
    }
    app
}

/// The server went away half a minute ago.
pub fn lost() -> App {
    let mut app = connected(setup());
    for t in 1..=END - 30 {
        let s = flowing(t, 30.0 + (t % 9) as f64, 31.0 + (t % 7) as f64, 120);
        send(&mut app, t as f64, Event::Sample(Box::new(s)));
    }
    let loss = |text: &str| Loss { sqlstate: None, message: text.into() };
    let closed = Loss { sqlstate: Some("57P01".into()), message: "terminating connection".into() };
    send(&mut app, 270.5, Event::Link(Link::Down(closed.clone())));
    send(&mut app, 270.5, Event::Listen(Listen::Down { loss: closed, up_ms: 270_000 }));
    for (attempt, t) in [(1, 271.0), (2, 275.0), (3, 283.0), (4, 297.0)] {
        let loss = loss("db-1:5432: connection refused");
        send(&mut app, t, Event::Link(Link::Retry { attempt, after_ms: 8_000, loss: loss.clone() }));
        send(&mut app, t, Event::Listen(Listen::Retry { attempt, after_ms: 8_000, loss }));
    }
    app
}

/// Names that want to break the screen, as the cleaner lets them through: wide, long, and marked.
pub fn hostile() -> App {
    let mut app = connected(setup());
    for t in 1..=END {
        let mut s = flowing(t, 3.0, 3.0, 4);

        let names = [
            clean("배송-작업자-서울-1"),
            clean("\u{1b}[31mred\u{202e}gnp.exe"),
            clean("line\nbreak\ttab\u{200b}zero"),
            clean(&"very-long-worker-name-".repeat(6)),
            clean("👩‍👩‍👧‍👦-family-worker"),
        ];
        let mut leases = Vec::new();
        for (i, name) in names.iter().enumerate() {
            let mut l = lease(t, 100 + i as u64, name, 4, 30 * i as i64 - 20);
            l.job_type = clean("メール.送信\u{7}");
            leases.push(l);
        }
        leases[3].id = clean("\u{9b}31m-7f3c2c1e-9b1a-4d5e-8f70-1a2b3c4d5e6f");
        hold(&mut s, leases, &[]);
        send(&mut app, t as f64, Event::Sample(Box::new(s)));
    }
    let text = clean("job 17 failed: \u{1b}]0;owned\u{7} ") + &clean(&"エラー ".repeat(40));
    send(&mut app, 299.0, Event::Note(Note { warn: true, text }));
    app
}

/// Before the server has said anything.
pub fn connecting() -> App {
    App::new(setup())
}
