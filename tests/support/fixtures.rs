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

/// What can be done to jobs.
pub fn offers() -> Vec<Offer> {
    let offer = |action: JobAction, set: &str, effect: &str| Offer {
        action,
        sql: format!("UPDATE pgwake.jobs SET {set}\nWHERE id = $1 AND run_at = $2 AND attempts = $3"),
        effect: effect.into(),
        refusal: None,
    };
    vec![
        offer(
            JobAction::Retry,
            "status = 'ready', run_at = now()",
            "It becomes ready, due now; its attempts stay counted, and if they are used up, one more is allowed.",
        ),
        offer(JobAction::GiveUp, "status = 'failed'", "It is marked failed and not run again."),
        offer(JobAction::RunNow, "run_at = now()", "It is due now, and a worker takes it in its turn."),
    ]
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
        offers: offers(),
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
    s.evidence = Evidence {
        table_locks: Reading::exact(Vec::new(), at),
        locked_rows: Reading::exact(LockedRows::default(), at),
        queue_growth: Reading::exact(0.0, at),
        row_security: Reading::exact(false, at),
        hidden: Reading::exact(Hidden::default(), at),
    };
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
        counters: Counters {
            found_startup: 40,
            found_notify: 9_000 + second as i64,
            found_fallback: 310,
            found_reconnect: 120,
            found_timed: 290,
            claims_got: 1_800,
            claims_empty: 411,
            claims_contended: 33,
            claims_error: 1,
            jobs_done: 9_400,
            jobs_failed: 61,
            jobs_lost: 2,
            jobs_deferred: 5,
            wakeups: 812,
        },
        reconnects: 2,
        recovery: Percentiles { p50: Some(620.0), p95: Some(800.0), p99: Some(800.0) },
        wake_latency: Percentiles { p50: Some(131.0), p95: Some(239.0), p99: Some(1_260.0) },
        claim: Percentiles { p50: Some(0.6), p95: Some(2.4), p99: Some(9.1) },
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

/// A pass of the slow lane that found nothing.
pub fn no_backlog(second: u64) -> Backlog {
    let at = server_time(second);
    let nothing = || Reading::exact(Looked::default(), at);
    Backlog {
        ledger: "jobs".into(),
        taken_at: at,
        ready: nothing(),
        scheduled: nothing(),
        running: nothing(),
        failed: nothing(),
        table: Reading::exact(
            TableFacts {
                table_bytes: 16_384,
                index_bytes: 81_920,
                live: Some(0),
                dead: Some(0),
                vacuumed: None,
                autovacuumed: None,
                autovacuums: Some(0),
                vacuuming: false,
            },
            at,
        ),
        pins: Reading::exact(Vec::new(), at),
        inconsistent: Reading::exact(Inconsistent::default(), at),
        triggers: Reading::exact(Vec::new(), at),
        pass_ms: 4.2,
        interval_ms: 15_000,
    }
}

pub fn looked(second: u64, more: bool, types: &[(&str, u64, Option<f64>)]) -> Reading<Looked> {
    let count = |(name, jobs, edge): &(&str, u64, Option<f64>)| TypeCount {
        key: format!("key of {name}"),
        job_type: clean(name),
        jobs: *jobs,
        edge: *edge,
    };
    let seen = types.iter().map(|t| t.1).sum();
    Reading::exact(Looked { types: types.iter().map(count).collect(), seen, more }, server_time(second))
}

/// A pass of the slow lane over some work.
pub fn some_backlog(second: u64) -> Backlog {
    let mut b = no_backlog(second);
    let at = b.taken_at;
    b.ready = looked(
        second,
        false,
        &[
            ("mail.send", 900, Some(0.9)),
            ("invoice.render", 301, Some(1.0)),
            ("search.index", 3, Some(0.1)),
        ],
    );
    b.scheduled = looked(
        second,
        true,
        &[("mail.send", 8_000, Some(12.0)), ("report.monthly", 2_000, Some(86_000.0))],
    );
    b.running = looked(second, false, &[("mail.send", 9, None), ("invoice.render", 5, None)]);
    b.failed = looked(second, false, &[("invoice.render", 37, None)]);
    b.table = Reading::exact(
        TableFacts {
            table_bytes: 1_420_000_000,
            index_bytes: 311_000_000,
            live: Some(2_400_000),
            dead: Some(130_412),
            vacuumed: Some(at - TimeDelta::seconds(140)),
            autovacuumed: Some(at - TimeDelta::seconds(140)),
            autovacuums: Some(1_204),
            vacuuming: false,
        },
        at,
    );
    b
}

fn slow(app: &mut App, second: u64, backlog: Backlog) {
    send(app, second as f64, Event::Backlog(Box::new(backlog)));
}

/// The answer to a look at the jobs of the first type.
pub fn jobs_of_mail(second: u64) -> JobList {
    let at = server_time(second);
    let job = |id: u64, state: JobState, due: i64, n: i64| JobRow {
        id: id.to_string(),
        job_type: "mail.send".into(),
        state: Some(state),
        due: Some(at + TimeDelta::seconds(due)),
        attempts: Some(n),
        max_attempts: Some(5),
        holder: (state == JobState::Running).then(|| "mail-worker-7".into()),
        error: (n > 2).then(|| clean("connection to smtp-1 refused\nafter 3 tries")),
    };
    let jobs = vec![
        job(4700, JobState::Running, -132, 1),
        job(4720, JobState::Running, 118, 2),
        job(4800, JobState::Ready, -252, 0),
        job(4801, JobState::Ready, -250, 3),
        job(4900, JobState::Scheduled, 12, 0),
        job(4400, JobState::Failed, -8_000, 5),
    ];
    JobList {
        ledger: "jobs".into(),
        key: Some("key of mail.send".into()),
        taken_at: at,
        jobs: Reading::exact(jobs, at),
        limit: 200,
    }
}

/// One job in full, with or without the text of its payload.
pub fn job_4700(second: u64, payload: bool) -> JobDetail {
    let at = server_time(second);
    let row = jobs_of_mail(second).jobs.value().unwrap()[0].clone();
    let facts = JobFacts {
        expires: row.due,
        run_at: row.due,
        row,
        status: "running".into(),
        key: None,
        created: Some(at - TimeDelta::seconds(600)),
        finished: None,
        error: Some("connection to smtp-1 refused\n  at send (mail.rs:41)".into()),
        payload: Payload {
            stored: Some(1_204),
            length: payload.then_some(9_812),
            text: payload.then(|| "{\"to\": \"someone@example.com\", \"subject\": \"hello\"}".into()),
        },
    };
    let past = PastRelease {
        at: at - TimeDelta::hours(3),
        operator: "ops@jump-1".into(),
        holder: "mail-worker-2".into(),
        was_expired: true,
    };
    JobDetail {
        ledger: "jobs".into(),
        id: "4700".into(),
        taken_at: at,
        found: Reading::exact(Some(Box::new(facts)), at),
        releases: Reading::exact(vec![past], at),
    }
}

/// One of the jobs of mail in full, with an end if it has failed.
pub fn detail_of(id: &str, second: u64) -> JobDetail {
    let at = server_time(second);
    let list = jobs_of_mail(second);
    let row = list.jobs.value().unwrap().iter().find(|j| j.id == id).expect("a job").clone();
    let failed = row.state == Some(JobState::Failed);
    let facts = JobFacts {
        expires: None,
        run_at: row.due,
        status: if failed { "failed" } else { "ready" }.into(),
        key: None,
        created: Some(at - TimeDelta::seconds(600)),
        finished: failed.then_some(at - TimeDelta::seconds(90)),
        error: row.error.clone(),
        payload: Payload { stored: Some(1_204), length: None, text: None },
        row,
    };
    JobDetail {
        ledger: "jobs".into(),
        id: id.into(),
        taken_at: at,
        found: Reading::exact(Some(Box::new(facts)), at),
        releases: Reading::exact(Vec::new(), at),
    }
}

/// Sessions of every kind.
pub fn sessions() -> Vec<Session> {
    let one = |pid: i32, app: &str, age: Option<f64>, wait: Option<&str>, marks: &[SessionMark]| Session {
        pid,
        user: "shop".into(),
        application: app.into(),
        state: Some(if age.is_some() { "idle in transaction" } else { "idle" }.into()),
        wait: wait.map(Into::into),
        transaction_age: age,
        query: Some("update orders set state = 'paid' where id = 4711".into()),
        marks: marks.to_vec(),
        ..Session::default()
    };
    let behind = |mut s: Session, what: &str, seconds: f64, by: i32| {
        s.state = Some("active".into());
        s.wait = Some("Lock/transactionid".into());
        s.lock = Some(LockWait {
            what: what.into(),
            seconds: Some(seconds),
            by: vec![by],
            ..LockWait::default()
        });
        s
    };
    let wait = [SessionMark::Blocked];
    vec![
        one(4242, "nightly-report", Some(8_040.0), None, &[SessionMark::LongTransaction]),
        one(
            4243,
            "legacy-listener",
            Some(252.0),
            None,
            &[SessionMark::LongTransaction, SessionMark::ProbableListener],
        ),
        one(4250, "admin-psql", Some(95.0), None, &[SessionMark::IdleInTransaction, SessionMark::Blocking]),
        behind(one(4251, "billing", Some(64.0), None, &wait), "a row", 61.0, 4250),
        behind(
            one(4252, "migration", Some(44.0), None, &wait),
            "table pgwake.jobs (AccessExclusiveLock)",
            43.0,
            4251,
        ),
        one(4244, "stuck-monitor", None, Some("Client/ClientWrite"), &[SessionMark::NotReading]),
        one(4101, "pgwake/listen", None, Some("Client/ClientRead"), &[SessionMark::ProbableListener]),
        Session {
            pid: 4260,
            user: "etl".into(),
            application: "hidden-loader".into(),
            hidden: true,
            marks: vec![SessionMark::Blocking],
            ..Session::default()
        },
    ]
}

/// What holds something without a session.
pub fn pins() -> Vec<Pin> {
    let one = |kind, name: &str, about: &str, xids, seconds| Pin {
        kind,
        name: name.into(),
        about: about.into(),
        xids,
        seconds,
        ..Pin::default()
    };
    let mut slot = one(PinKind::Slot, "old_replica", "physical, nobody reads it", Some(90_000), None);
    slot.retained = Some(48_318_382_080);
    let mut report = one(PinKind::Session, "nightly-report", "shop", Some(1_204_300), Some(8_040.0));
    report.pid = Some(4242);
    vec![
        report,
        slot,
        one(PinKind::Prepared, "order-4711", "shop in orders", Some(4_100), Some(5_400.0)),
        one(PinKind::Standby, "replica-2", "streaming, async", None, Some(0.2)),
    ]
}

/// Connected to a ledger without a single job.
pub fn empty() -> App {
    let mut app = connected(setup());
    for t in 1..=END {
        send(&mut app, t as f64, Event::Sample(Box::new(quiet(t))));
    }
    slow(&mut app, END - 4, no_backlog(END - 4));
    app
}

/// The samples have stopped for half a minute, and nobody says why.
pub fn stale() -> App {
    let mut app = connected(setup());
    for t in 1..=END - 30 {
        send(&mut app, t as f64, Event::Sample(Box::new(flowing(t, 3.0, 3.0, 120))));
    }
    slow(&mut app, END - 60, some_backlog(END - 60));
    app
}

/// A role that may connect and nothing else.
pub fn no_privilege() -> App {
    let mut app = connected(setup());
    for t in 1..=END {
        let mut s = Sample::empty("jobs", server_time(t));
        fn no<T>() -> Reading<T> {
            Reading::unknown(Trouble::NoPrivilege)
        }
        s.counts = Counts { ready: no(), scheduled: no(), running: no(), expired: no(), failed: no() };
        s.vitals.oldest_ready = no();
        s.vitals.claim_success = no();
        s.vitals.recovery_p95 = no();
        s.vitals.reconnects = no();
        s.vitals.queue_usage = Reading::exact(0.000012, s.taken_at);
        (s.flow.arrived, s.flow.done, s.flow.failed) = (no(), no(), no());
        (s.leases, s.holders, s.workers, s.sessions) = (no(), no(), no(), no());
        (s.notify_lock, s.connections) = (no(), no());
        let hidden = Hidden { sessions: 12, role: "\"watcher\"".into() };
        s.evidence = Evidence { hidden: Reading::exact(hidden, s.taken_at), ..Evidence::default() };
        s.cost = Cost { pass_ms: 1.1, interval_ms: 1000, effective_ms: 1000 };
        send(&mut app, t as f64, Event::Sample(Box::new(s)));
    }
    let mut b = Backlog::empty("jobs", server_time(END - 4));
    let no = || Reading::unknown(Trouble::NoPrivilege);
    (b.ready, b.scheduled, b.running, b.failed) = (no(), no(), no(), no());
    b.table = Reading::unknown(Trouble::NoPrivilege);
    b.interval_ms = 15_000;
    slow(&mut app, END - 4, b);
    app
}

/// Busy, with a worker in this program.
pub fn working() -> App {
    let mut setup = setup();
    setup.worker = pgwake::app::WorkerSetup::Available { handler: "simulate".into() };
    let mut app = connected(setup);
    send(&mut app, 1.0, Event::Worker(WorkerEvent::Started { name: "mail-worker-3".into() }));
    for t in 1..=END {
        send(&mut app, t as f64, Event::Sample(Box::new(flowing(t, 30.0, 31.0, 12))));
        let ms = [0.2, 0.6, 3.0, 40.0, 140.0, 160.0, 180.0, 2_400.0][t as usize % 8];
        let at = t as f64 + 0.1;
        send(&mut app, at, Event::Wake(Wake { channel: "pgwake_work".into(), count: 3 }));
        let claim = |outcome, jobs, ms| WorkerEvent::Claim { ledger: "jobs".into(), outcome, jobs, ms };
        let at = at + ms / 1e3 + 0.002;
        send(&mut app, at, Event::Worker(claim(ClaimOutcome::Got, 10, 2.0)));
        let next = if t % 60 == 0 { ClaimOutcome::Contended } else { ClaimOutcome::Empty };
        send(&mut app, at + 0.01, Event::Worker(claim(next, 0, 1.0)));
        let drained = WorkerEvent::Drained { ledger: "jobs".into(), reason: ScanReason::Notify, jobs: 10 };
        send(&mut app, at + 0.02, Event::Worker(drained));
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
    let mut b = some_backlog(END - 4);
    b.ready = looked(END - 4, false, &[]);
    slow(&mut app, END - 4, b);
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
    let mut b = some_backlog(END - 4);
    b.pins = Reading::exact(pins(), b.taken_at);
    slow(&mut app, END - 4, b);
    let mut s = app.sample().unwrap().clone();
    s.sessions = Reading::exact(sessions(), s.taken_at);
    s.notify_lock =
        Reading::exact(NotifyLock { holder: Some(4711), waiters: 0, ..NotifyLock::default() }, s.taken_at);
    s.connections = Reading::exact((96, 100), s.taken_at);
    let mut legacy = worker_row("mail-worker-7", END, 260);
    legacy.budget = BudgetState::Waiting;
    let rows = s.workers.map(|w| w.iter().cloned().chain([legacy]).collect());
    s.workers = rows;
    send(&mut app, END as f64, Event::Sample(Box::new(s)));
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
        s.vitals.queue_usage = Reading::exact(0.1 + t as f64 / 1e4, at);
        s.notify_lock =
            Reading::exact(NotifyLock { holder: Some(4711), waiters: 3, ..NotifyLock::default() }, at);
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
    let mut b = some_backlog(END - 4);
    b.ready =
        looked(END - 4, true, &[("mail.send", 9_000, Some(101.0)), ("invoice.render", 1_000, Some(20.0))]);
    b.failed = Reading::unknown(Trouble::NoPrivilege);
    b.running = Reading::unknown(Trouble::TimedOut).or_last(&b.running);
    b.table = Reading::unknown(Trouble::Locked);
    slow(&mut app, END - 4, b);
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
    slow(&mut app, END - 45, some_backlog(END - 45));
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
    let mut b = some_backlog(END - 4);
    b.ready = looked(END - 4, false, &[("メール.送信\u{7}\u{202e}x", 41, Some(1.0)), ("", 3, Some(2.0))]);
    slow(&mut app, END - 4, b);
    let mut s = app.sample().unwrap().clone();
    let mut all = sessions();
    all[0].application = clean("\u{1b}]0;owned\u{7}배송-작업자");
    all[1].query = Some(clean("select '\u{9b}31m'\n-- 👩‍👩‍👧‍👦"));
    s.sessions = Reading::exact(all, s.taken_at);
    send(&mut app, END as f64, Event::Sample(Box::new(s)));
    app
}

/// Before the server has said anything.
pub fn connecting() -> App {
    App::new(setup())
}
