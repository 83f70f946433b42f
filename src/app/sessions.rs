//! The rows of the screen Sessions: a tree of who waits for whom, and what holds things without a session.

use super::App;
use crate::model::{Pin, PinKind, Session, SessionMark};

/// What identifies a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SessionKey {
    /// A backend.
    Pid(i32),
    /// Something without one, by its name.
    Named(PinKind, String),
}

/// What a row is of.
#[derive(Clone, Debug, PartialEq)]
pub enum Held {
    /// A session.
    Session(Box<Session>),
    /// A prepared transaction, a slot, a standby, or a session that is listed for its old snapshot alone.
    Pin(Box<Pin>),
}

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionLine {
    /// What it is of.
    pub held: Held,
    /// How deep in the tree: 0 waits for nobody listed.
    pub depth: usize,
    /// How many listed sessions wait for it, through others too.
    pub behind: usize,
    /// Whether no older transaction is held by anybody, and that long enough to matter.
    pub is_oldest: bool,
}

impl SessionLine {
    /// Its identity.
    pub fn key(&self) -> SessionKey {
        match &self.held {
            Held::Session(s) => SessionKey::Pid(s.pid),
            Held::Pin(p) => pin_key(p),
        }
    }

    /// The session, when it is one that is known in full.
    pub fn session(&self) -> Option<&Session> {
        match &self.held {
            Held::Session(s) => Some(s),
            Held::Pin(_) => None,
        }
    }
}

fn pin_key(p: &Pin) -> SessionKey {
    match (p.kind, p.pid) {
        (PinKind::Session, Some(pid)) => SessionKey::Pid(pid),
        _ => SessionKey::Named(p.kind, p.name.clone()),
    }
}

/// A snapshot is worth naming from this many transactions on: dead rows pile up behind it.
const OLD_XIDS: i64 = 10_000;

/// The rows in their natural order: those that others wait for lead, each with its waiters below it; then
/// the other sessions as the server gave them; then what has no session. A session that waits for several
/// stands below the first of them.
pub fn lines(sessions: &[Session], pins: &[Pin]) -> Vec<SessionLine> {
    let oldest = pins.iter().find(|p| p.xids.is_some_and(|n| n >= OLD_XIDS)).map(pin_key);
    let listed = |pid: i32| sessions.iter().position(|s| s.pid == pid);
    let others: Vec<&Pin> = pins
        .iter()
        .filter(|p| match (p.kind, p.pid) {
            (PinKind::Session, Some(pid)) => listed(pid).is_none() && oldest == Some(SessionKey::Pid(pid)),
            (PinKind::Session, None) => false,
            _ => true,
        })
        .collect();
    let parent = |s: &Session| -> Option<SessionKey> {
        let lock = s.lock.as_ref()?;
        let pid = lock.by.iter().find(|pid| **pid != s.pid && listed(**pid).is_some());
        pid.map(|pid| SessionKey::Pid(*pid)).or_else(|| {
            let gid = lock.prepared.as_ref()?;
            let there = others.iter().any(|p| p.kind == PinKind::Prepared && p.name == *gid);
            there.then(|| SessionKey::Named(PinKind::Prepared, gid.clone()))
        })
    };
    let parents: Vec<Option<SessionKey>> = sessions.iter().map(parent).collect();
    let mut tree = Tree { sessions, parents: &parents, done: vec![false; sessions.len()], out: Vec::new() };
    let roots: Vec<usize> = (0..sessions.len()).filter(|i| parents[*i].is_none()).collect();
    let has_waiters = |key: &SessionKey| parents.iter().any(|p| p.as_ref() == Some(key));
    let (first, rest): (Vec<usize>, Vec<usize>) =
        roots.into_iter().partition(|i| has_waiters(&SessionKey::Pid(sessions[*i].pid)));
    for i in first {
        tree.session(i, 0);
    }
    let (held, idle): (Vec<&&Pin>, Vec<&&Pin>) = others.iter().partition(|p| has_waiters(&pin_key(p)));
    for p in held {
        tree.pin(p);
    }
    // a circle of waits, which the server will end as a deadlock, has no root
    for (i, _) in parents.iter().enumerate().filter(|(_, p)| p.is_some()) {
        tree.circle(i);
    }
    for i in rest {
        tree.session(i, 0);
    }
    for p in idle {
        tree.pin(p);
    }
    let mut out = tree.out;
    for line in &mut out {
        line.is_oldest = oldest.as_ref().is_some_and(|key| line.key() == *key);
    }
    out
}

struct Tree<'a> {
    sessions: &'a [Session],
    parents: &'a [Option<SessionKey>],
    done: Vec<bool>,
    out: Vec<SessionLine>,
}

impl Tree<'_> {
    fn push(&mut self, held: Held, depth: usize) -> usize {
        self.out.push(SessionLine { held, depth, behind: 0, is_oldest: false });
        self.out.len() - 1
    }

    fn session(&mut self, i: usize, depth: usize) {
        if std::mem::replace(&mut self.done[i], true) {
            return;
        }
        let at = self.push(Held::Session(Box::new(self.sessions[i].clone())), depth);
        self.below(&SessionKey::Pid(self.sessions[i].pid), at, depth);
    }

    fn pin(&mut self, p: &Pin) {
        let at = self.push(Held::Pin(Box::new(p.clone())), 0);
        self.below(&pin_key(p), at, 0);
    }

    fn below(&mut self, key: &SessionKey, at: usize, depth: usize) {
        for i in 0..self.sessions.len() {
            if self.parents[i].as_ref() == Some(key) {
                self.session(i, depth + 1);
            }
        }
        self.out[at].behind = self.out.len() - 1 - at;
    }

    fn circle(&mut self, i: usize) {
        if !self.done[i] {
            self.session(i, 0);
        }
    }
}

/// The rows of what is shown now.
pub(super) fn of(app: &App) -> Vec<SessionLine> {
    let sessions = app.sample().and_then(|s| s.sessions.value()).map_or(&[][..], Vec::as_slice);
    let pins = app.backlog().and_then(|b| b.pins.value()).map_or(&[][..], Vec::as_slice);
    lines(sessions, pins)
}

/// A session by its pid and program, as far as it is listed.
pub fn name_of(sessions: &[Session], pid: i32) -> String {
    match sessions.iter().find(|s| s.pid == pid) {
        Some(s) if !s.application.is_empty() => format!("pid {pid} ({})", s.application),
        _ => format!("pid {pid}"),
    }
}

/// Whether it is in the way of others.
pub fn is_blocking(s: &Session) -> bool {
    s.marks.iter().any(|m| matches!(m, SessionMark::Blocking | SessionMark::NotifyHolder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::LockWait;

    fn session(pid: i32, by: &[i32]) -> Session {
        let lock = (!by.is_empty()).then(|| LockWait { by: by.to_vec(), ..LockWait::default() });
        Session { pid, lock, ..Session::default() }
    }

    fn shown(lines: &[SessionLine]) -> Vec<(i32, usize, usize)> {
        lines.iter().map(|l| (l.session().map_or(0, |s| s.pid), l.depth, l.behind)).collect()
    }

    #[test]
    fn waiters_stand_below_whom_they_wait_for_and_blockers_lead() {
        let all =
            [session(1, &[]), session(2, &[3]), session(3, &[4]), session(4, &[]), session(5, &[9, 4])];
        assert_eq!(
            shown(&lines(&all, &[])),
            [(4, 0, 3), (3, 1, 1), (2, 2, 0), (5, 1, 0), (1, 0, 0)],
            "pid 9 is not listed: 5 stands below 4"
        );
    }

    #[test]
    fn a_circle_of_waits_is_shown_once_and_ends() {
        let all = [session(1, &[2]), session(2, &[1]), session(3, &[3])];
        assert_eq!(shown(&lines(&all, &[])).len(), 3);
    }

    #[test]
    fn a_prepared_transaction_has_its_waiters_below_it() {
        let mut waiter = session(7, &[]);
        waiter.lock = Some(LockWait { prepared: Some("p".into()), ..LockWait::default() });
        let pin = Pin { kind: PinKind::Prepared, name: "p".into(), ..Pin::default() };
        let slot = Pin { kind: PinKind::Slot, name: "s".into(), ..Pin::default() };
        let out = lines(&[waiter], &[slot, pin]);
        assert_eq!(shown(&out), [(0, 0, 1), (7, 1, 0), (0, 0, 0)]);
        assert_eq!(out[0].key(), SessionKey::Named(PinKind::Prepared, "p".into()));
    }
}
