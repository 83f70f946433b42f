//! Events as plain lines, for the log of a worker without a screen.

use crate::model::{BudgetState, ClaimOutcome, Event, Link, Listen, WorkerEvent};

/// The line of an event, or `None` for those that are too many to log.
pub fn event(event: &Event) -> Option<String> {
    Some(match event {
        Event::Listen(Listen::Up { pid, channels, phases, again }) => format!(
            "{} on {} (backend {pid}) after {} ms",
            if *again { "listening again" } else { "listening" },
            channels.join(", "),
            phases.listening_ms
        ),
        Event::Listen(Listen::Down { loss, up_ms }) => {
            format!("listener lost after {:.1} s: {loss}", *up_ms as f64 / 1000.0)
        }
        Event::Listen(Listen::Retry { attempt, after_ms, loss }) => {
            format!(
                "listener: attempt {attempt} failed ({loss}); next in {:.1} s",
                *after_ms as f64 / 1000.0
            )
        }
        Event::Listen(Listen::Deaf { why }) => format!("listener is deaf: {why}"),
        Event::Listen(Listen::Off)
        | Event::Sample(_)
        | Event::Wake(_)
        | Event::Backlog(_)
        | Event::Jobs(_)
        | Event::Job(_)
        | Event::Plan(_) => return None,
        Event::Link(Link::Up(server)) => format!("connected to {}", server.address),
        Event::Link(Link::Down(loss)) => format!("connection lost: {loss}"),
        Event::Link(Link::Retry { attempt, after_ms, loss }) => {
            format!("attempt {attempt} failed ({loss}); next in {:.1} s", *after_ms as f64 / 1000.0)
        }
        Event::Worker(e) => return worker(e),
        Event::Action(_) => return None,
        Event::Note(note) => note.text.clone(),
    })
}

fn worker(event: &WorkerEvent) -> Option<String> {
    Some(match event {
        WorkerEvent::Started { name } => format!("worker {name} started"),
        WorkerEvent::Stopped { given_back, trouble } => match trouble {
            None => format!("worker stopped; {given_back} jobs given back"),
            Some(why) => format!("worker stopped: {why}"),
        },
        // An empty scan is normal and says nothing.
        WorkerEvent::Drained { jobs: 0, .. } => return None,
        WorkerEvent::Drained { ledger, reason, jobs } => {
            format!("{ledger}: drained {jobs} jobs ({})", reason.word())
        }
        WorkerEvent::Claim { outcome: ClaimOutcome::Contended, ledger, .. } => {
            format!("{ledger}: due jobs are locked by other sessions")
        }
        WorkerEvent::Claim { .. } => return None,
        WorkerEvent::ClaimFailed { ledger, loss } => format!("{ledger}: claim failed: {loss}"),
        WorkerEvent::Lost { ledger, id, what } => {
            format!("{ledger}: lease of job {id} was lost before {what}; nothing was changed")
        }
        WorkerEvent::Exhausted { ledger, jobs } => {
            format!("{ledger}: {jobs} jobs died with their holder on their last attempt and are failed")
        }
        WorkerEvent::Pruned { ledger, jobs } => {
            format!("{ledger}: {jobs} jobs deleted that were done long enough ago")
        }
        WorkerEvent::PruneFailed { ledger, loss } => {
            format!("{ledger}: done jobs stay, they could not be deleted: {loss}")
        }
        WorkerEvent::Budget { state: BudgetState::Renewed, .. } => return None,
        WorkerEvent::Budget { state, why } => format!("budget {}: {why}", state.word()),
        WorkerEvent::Recovered(r) => format!(
            "recovered: connected after {} ms, listening {} ms, scanned {} ms; {} jobs found",
            r.phases.connected_ms, r.phases.listening_ms, r.scanned_ms, r.jobs
        ),
    })
}
