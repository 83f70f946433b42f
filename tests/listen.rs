//! The listen session: proven before it counts, every loss told, and back by itself.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use std::time::{Duration, Instant};

use pgwake::demo::{Halt, Options, Server};
use pgwake::model::{Listen, Wake};
use pgwake::pg::{ListenConfig, ListenState};
use support::ledger::{ask, conninfo, number, run};
use support::listening::{Listening, config, quick};
use support::proxy::Proxy;
use support::{DEADLINE, connect, database, server, wait_until};
use tokio::time::timeout;

const LISTENERS: &str = "select count(*) from pg_stat_activity
    where application_name = 'pgwake/listen' and datname = current_database()";

async fn notify(client: &tokio_postgres::Client, channel: &str) {
    client.execute("select pg_notify($1, 'ready')", &[&channel]).await.unwrap();
}

async fn terminate(client: &tokio_postgres::Client, pid: i32) {
    assert_eq!(ask(client, &format!("select pg_terminate_backend({pid})")).await.unwrap(), "true");
}

fn wake(channel: &str) -> Wake {
    Wake { channel: channel.into(), count: 1 }
}

#[tokio::test]
async fn it_is_up_only_when_listen_is_committed_and_proven() {
    let db = database().await;
    let socket = server().socket_dir().join(format!(".s.PGSQL.{}", server().port()));
    let proxy = Proxy::before(socket, b"listen \"work\"", |_| ());
    proxy.hold(true);
    let mut listening = Listening::start(config(&proxy.conninfo(&db.name), &["work"]));
    timeout(DEADLINE, proxy.caught(1)).await.unwrap();
    assert!(matches!(listening.now(), ListenState::Starting), "LISTEN has not reached the server yet");
    assert_eq!(listening.told.listens(), []);
    let mut wakes = listening.listener.wakes();
    proxy.hold(false);
    let up = listening.generation(1).await;
    assert!(!up.again && up.phases.listening_ms >= up.phases.connected_ms, "{up:?}");
    let client = db.connect().await;
    let last =
        format!("select query || ' ' || (xact_start is null) from pg_stat_activity where pid = {}", up.pid);
    let last = ask(&client, &last).await.unwrap();
    assert!(
        last.contains("pg_listening_channels") && last.ends_with("true"),
        "a later transaction: {last}"
    );
    notify(&client, "work").await;
    assert_eq!(timeout(DEADLINE, wakes.recv()).await.unwrap().unwrap(), wake("work"));
}

#[tokio::test]
async fn a_listen_that_is_accepted_but_not_there_is_told_as_deaf() {
    let db = database().await;
    let socket = server().socket_dir().join(format!(".s.PGSQL.{}", server().port()));
    // as a transaction pooler: LISTEN runs somewhere, but not on this session
    let proxy = Proxy::before(socket, b"listen \"work\"", |bytes| {
        let at = bytes.windows(6).position(|w| w == b"listen").unwrap();
        bytes[at..at + 2].copy_from_slice(b"--");
    });
    let mut listening = Listening::start(config(&proxy.conninfo(&db.name), &["work"]));
    listening.state("polling only", |s| matches!(s, ListenState::Off)).await;
    let told = listening.told.until("deaf", |t| t.listens().pop()).await;
    let Listen::Deaf { why } = told else { panic!("{told:?}") };
    assert!(why.contains("not listening on work") && why.contains("pooler"), "{why}");
}

#[tokio::test]
async fn channel_names_are_listened_to_exactly() {
    let db = database().await;
    let long = "x".repeat(63);
    let channels =
        ["WorkQ", "workq", "has space", "1digit", "qu\"ote", "a.b", "it's", "Größe", "back\\slash", &long];
    let (listening, _) = Listening::up(config(db.conninfo(), &channels)).await;
    let mut wakes = listening.listener.wakes();
    let client = db.connect().await;
    for channel in channels {
        notify(&client, channel).await;
        let heard = timeout(DEADLINE, wakes.recv()).await.unwrap_or_else(|_| panic!("{channel}")).unwrap();
        assert_eq!(heard, wake(channel));
    }
    notify(&client, "WORKQ").await;
    notify(&client, "a").await;
    notify(&client, "WorkQ").await;
    assert_eq!(timeout(DEADLINE, wakes.recv()).await.unwrap().unwrap(), wake("WorkQ"), "and no other");
}

#[test]
fn a_channel_of_64_bytes_is_refused_with_the_byte_count() {
    let at = conninfo("host=/nowhere");
    for (channel, bytes) in [("x".repeat(64), "64 bytes"), ("界".repeat(22), "66 bytes")] {
        let refused = ListenConfig::new(at.clone(), vec!["fine".into(), channel]).unwrap_err();
        assert!(refused.contains(bytes) && !refused.contains('\n'), "{refused}");
    }
    assert!(ListenConfig::new(at.clone(), vec![String::new()]).unwrap_err().contains("empty"));
    assert!(ListenConfig::new(at, vec!["x".repeat(63)]).is_ok());
}

#[tokio::test]
async fn without_a_channel_nothing_is_opened() {
    let db = database().await;
    let mut listening = Listening::start(config(db.conninfo(), &[]));
    listening.state("off", |s| matches!(s, ListenState::Off)).await;
    listening.told.until("off", |t| (t.listens() == [Listen::Off]).then_some(())).await;
    assert_eq!(number(&db.connect().await, LISTENERS).await, 0);
}

#[tokio::test]
async fn a_terminated_backend_is_a_loss_with_its_sqlstate_and_a_new_session_follows() {
    let db = database().await;
    let (mut listening, first) = Listening::up(config(db.conninfo(), &["work"])).await;
    let client = db.connect().await;
    terminate(&client, first.pid).await;
    let second = listening.generation(2).await;
    assert_eq!(second.generation, 2);
    assert_ne!(second.pid, first.pid);
    assert!(second.again && second.phases.listening_ms >= second.phases.connected_ms, "{second:?}");

    let told = listening.told.listens();
    let [
        Listen::Up { pid, channels, again: false, .. },
        Listen::Down { loss, .. },
        Listen::Up { again: true, .. },
    ] = told.as_slice()
    else {
        panic!("{told:?}")
    };
    assert_eq!((*pid, channels.as_slice()), (first.pid, ["work".to_owned()].as_slice()));
    assert_eq!(loss.sqlstate.as_deref(), Some("57P01"));
    assert!(loss.message.contains("administrator command"), "{loss}");

    let mut wakes = listening.listener.wakes();
    notify(&client, "work").await;
    assert_eq!(timeout(DEADLINE, wakes.recv()).await.unwrap().unwrap(), wake("work"));
}

#[tokio::test]
async fn killed_20_times_it_counts_20_losses_and_one_session_is_left() {
    let db = database().await;
    let (mut listening, mut up) = Listening::up(config(db.conninfo(), &["work"])).await;
    let client = db.connect().await;
    for n in 2..=21 {
        // Each has lived for a while: what happens to sessions that end as they begin is another test.
        tokio::time::sleep(Duration::from_millis(550)).await;
        terminate(&client, up.pid).await;
        up = listening.generation(n).await;
        assert_eq!(up.generation, n);
    }
    let downs = listening.told.downs();
    assert_eq!(downs.len(), 20);
    assert!(downs.iter().all(|loss| loss.sqlstate.as_deref() == Some("57P01")), "{downs:?}");
    assert_eq!(number(&client, LISTENERS).await, 1);
    let mut wakes = listening.listener.wakes();
    notify(&client, "work").await;
    assert_eq!(timeout(DEADLINE, wakes.recv()).await.unwrap().unwrap(), wake("work"));
    assert_eq!(listening.told.downs().len(), 20);

    drop(listening);
    wait_until("its session ends with it", DEADLINE, async || {
        (number(&client, LISTENERS).await == 0).then_some(())
    })
    .await;
}

/// As by a proxy that lets every session in and throws it out again.
#[tokio::test]
async fn sessions_that_end_as_soon_as_they_begin_are_opened_with_growing_pauses() {
    let db = database().await;
    let (mut listening, mut up) = Listening::up(config(db.conninfo(), &["work"])).await;
    let client = db.connect().await;
    let began = Instant::now();
    for n in 2..=5 {
        terminate(&client, up.pid).await;
        up = listening.generation(n).await;
    }
    // 0.2 + 0.4 + 0.8 + 1.6 s, less what a busy machine may have let the sessions live.
    assert!(began.elapsed() >= Duration::from_millis(1400), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_frozen_backend_is_found_by_the_heartbeat_and_its_session_is_let_go() {
    let db = database().await;
    let socket = server().socket_dir().join(format!(".s.PGSQL.{}", server().port()));
    let proxy = Proxy::before(socket, b"listen \"work\"", |_| ());
    let (mut listening, first) = Listening::up(quick(config(&proxy.conninfo(&db.name), &["work"]))).await;
    server().freeze_backend(u32::try_from(first.pid).unwrap()).unwrap();
    let second = listening.generation(2).await;
    assert_ne!(second.pid, first.pid);
    let downs = listening.told.downs();
    assert_eq!(downs.len(), 1, "{downs:?}");
    assert!(downs[0].sqlstate.is_none() && downs[0].message.contains("heartbeat unanswered"), "{downs:?}");
    // the old one still says nothing, and is not waited for
    wait_until("one connection is left", DEADLINE, async || (proxy.open() == 1).then_some(())).await;
    let client = db.connect().await;
    let mut wakes = listening.listener.wakes();
    notify(&client, "work").await;
    assert_eq!(timeout(DEADLINE, wakes.recv()).await.unwrap().unwrap(), wake("work"));
    server().thaw_backend(u32::try_from(first.pid).unwrap()).unwrap();
}

#[tokio::test]
async fn a_quiet_session_passes_its_heartbeats() {
    let db = database().await;
    let (listening, up) = Listening::up(quick(config(db.conninfo(), &["work"]))).await;
    let client = db.connect().await;
    // ten answers later it is still the same session
    let beats = format!("select query_start from pg_stat_activity where pid = {}", up.pid);
    let mut seen = std::collections::BTreeSet::new();
    wait_until("ten heartbeats", DEADLINE, async || {
        seen.insert(ask(&client, &beats).await.unwrap());
        (seen.len() > 10).then_some(())
    })
    .await;
    assert_eq!(listening.told.listens().len(), 1);
}

#[tokio::test]
async fn while_the_server_is_away_it_tries_again_with_growing_pauses_and_comes_back() {
    let mut server = Server::start(Options::default()).unwrap();
    let (mut listening, _) = Listening::up(config(&server.conninfo("postgres"), &["work"])).await;
    server.stop_only(Halt::Fast).unwrap();
    let is_retry = |l: &Listen| matches!(l, Listen::Retry { .. });
    let told = listening
        .told
        .until("four attempts", |t| {
            let all = t.listens();
            (all.iter().filter(|l| is_retry(l)).count() >= 4).then_some(all)
        })
        .await;
    assert!(matches!(listening.now(), ListenState::Down(_)));
    let Listen::Down { loss, .. } = &told[1] else { panic!("{told:?}") };
    assert_eq!(loss.sqlstate.as_deref(), Some("57P01"));
    for (n, retry) in told[2..].iter().enumerate() {
        let Listen::Retry { attempt, after_ms, loss } = retry else { panic!("{told:?}") };
        assert_eq!(*attempt as usize, n + 1);
        let pause = 200 << n;
        assert!((pause..=2 * pause).contains(after_ms), "attempt {attempt} waits {after_ms} ms");
        assert!(!loss.message.is_empty());
    }
    server.start_again().unwrap();
    let up = listening.generation(2).await;
    assert!(up.again && up.phases.connected_ms >= 1000, "{up:?}");
    let client = connect(&server.conninfo("postgres")).await;
    let mut wakes = listening.listener.wakes();
    notify(&client, "work").await;
    assert_eq!(timeout(DEADLINE, wakes.recv()).await.unwrap().unwrap(), wake("work"));
    assert_eq!(listening.told.downs().len(), 1, "one loss, however many attempts");

    // the next loss begins anew
    let before = listening.told.listens().len();
    server.stop_only(Halt::Immediate).unwrap();
    let retry =
        listening.told.until("an attempt", |t| t.listens().into_iter().skip(before).find(is_retry)).await;
    let Listen::Retry { attempt: 1, after_ms: 200..=400, .. } = retry else { panic!("{retry:?}") };
    assert_eq!(listening.told.downs().len(), 2);
}

#[tokio::test]
async fn a_server_that_is_not_there_yet_is_waited_for() {
    let mut server = Server::start(Options::default()).unwrap();
    let conninfo = server.conninfo("postgres");
    server.stop_only(Halt::Fast).unwrap();
    let mut listening = Listening::start(config(&conninfo, &["work"]));
    let first = listening.told.until("an attempt", |t| t.listens().into_iter().next()).await;
    let Listen::Retry { attempt: 1, loss, .. } = first else { panic!("{first:?}") };
    assert!(loss.sqlstate.is_none() && !loss.message.is_empty(), "{loss}");
    server.start_again().unwrap();
    let up = listening.generation(1).await;
    assert!(!up.again);
    assert!(listening.told.downs().is_empty(), "what never was there was not lost");
}

#[tokio::test]
async fn a_hundred_thousand_notifications_that_nobody_reads_are_counts() {
    let db = database().await;
    let (listening, _) = Listening::up(config(db.conninfo(), &["work", "other"])).await;
    let mut unread = listening.listener.wakes();
    let client = db.connect().await;
    for _ in 0..4 {
        run(&client, "select pg_notify('work', n::text) from generate_series(1, 25000) n").await;
    }
    run(&client, "select pg_notify('other', '')").await;
    let heard = |told: &support::listening::Told, channel: &str| {
        told.wakes().iter().filter(|w| w.channel == channel).map(|w| w.count).sum::<u64>()
    };
    listening.told.until("the last", |t| (heard(t, "other") == 1).then_some(())).await;
    assert_eq!(heard(&listening.told, "work"), 100_000, "every one is read and counted");
    assert!(unread.len() <= 64, "{} are kept", unread.len());
    assert!(unread.recv().await.is_ok() || unread.recv().await.is_ok(), "a lag is told once");
    assert_eq!(listening.told.listens().len(), 1, "still the first session");
}

#[tokio::test]
async fn an_idle_session_timeout_of_the_role_does_not_end_it() {
    let db = database().await;
    let admin = db.connect().await;
    run(
        &admin,
        &format!(
            "create role idle_{0} login; alter role idle_{0} set idle_session_timeout = '1s'",
            db.name
        ),
    )
    .await;
    let text = db.conninfo().replace("user=postgres", &format!("user=idle_{}", db.name));
    let (listening, up) = Listening::up(config(&text, &["work"])).await;
    // an ordinary session of the role, begun later, is ended by it
    let other = connect(&text).await;
    wait_until("the timeout strikes", DEADLINE, async || other.is_closed().then_some(())).await;
    assert!(matches!(listening.now(), ListenState::Up { generation: 1, .. }));
    assert_eq!(listening.told.listens().len(), 1);
    assert_eq!(
        number(&admin, &format!("select count(*) from pg_stat_activity where pid = {}", up.pid)).await,
        1
    );
}

#[tokio::test]
async fn it_is_never_in_a_transaction() {
    let db = database().await;
    let (_listening, up) = Listening::up(config(db.conninfo(), &["work"])).await;
    let client = db.connect().await;
    let sample = format!(
        "select concat_ws('|', state, xact_start, backend_xmin, backend_xid, application_name)
         from pg_stat_activity where pid = {}",
        up.pid
    );
    for _ in 0..300 {
        assert_eq!(ask(&client, &sample).await.unwrap(), "idle|pgwake/listen");
    }
}
