//! Why a scan begins: the start, a wake-up, the fallback interval, a listen session that is back.

use std::time::Instant;

use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::handler::Handler;
use super::run::{LISTEN_PATIENCE, Returning, Run};
use super::scan::fallback_pause;
use crate::model::{ScanReason, Wake};
use crate::pg::ListenState;

impl<H: Handler> Run<H> {
    /// A wake-up: every ledger is going to be scanned, and the one whose channel it was knows why.
    pub(super) fn woke(&mut self, wake: Result<Wake, RecvError>) {
        let now = Instant::now();
        let channel = match wake {
            Ok(wake) => {
                for served in &mut self.served {
                    if served.ledger.channel() == Some(&wake.channel) {
                        served.stats.counters.wakeups += i64::try_from(wake.count).unwrap_or(i64::MAX);
                    }
                }
                Some(wake.channel)
            }
            // Fell behind: which channels woke is not known, so take it as all.
            Err(RecvError::Lagged(_)) => None,
            Err(RecvError::Closed) => return,
        };
        for (served, debounce) in self.served.iter_mut().zip(&mut self.debounce) {
            let own = served.ledger.channel();
            let meant = own.is_some() && (channel.is_none() || channel.as_deref() == own);
            if meant && !served.serves_wakeup() {
                debounce.woke(now, fastrand::f64());
            }
        }
    }

    pub(super) fn listen_changed(&mut self) {
        let state = self.listen.borrow_and_update().clone();
        match state {
            ListenState::Up { generation, lost_at, phases, .. } if generation > self.covered => {
                // Counted by generation: of two changes in one moment only the later one is seen.
                if self.covered > 0 {
                    let lost = i64::try_from(generation - self.covered).unwrap_or(i64::MAX);
                    self.reconnects += lost - i64::from(self.deaf);
                }
                self.deaf = false;
                self.covered = generation;
                let reason = if self.started { ScanReason::Reconnect } else { ScanReason::Startup };
                if let (true, Some(lost_at)) = (self.started, lost_at) {
                    self.returning = Some(Returning { lost_at, phases, jobs: 0 });
                }
                self.scan_all(reason, Instant::now());
            }
            // Every failed attempt to come back says so, too.
            ListenState::Down(_) if self.covered > 0 && !self.deaf => {
                self.deaf = true;
                self.reconnects += 1;
            }
            _ => {}
        }
    }

    /// Every scan covers every ledger.
    fn scan_all(&mut self, reason: ScanReason, now: Instant) {
        self.started = true;
        self.fallback_at = now + fallback_pause(self.setup.settings.fallback, fastrand::f64());
        for (served, debounce) in self.served.iter_mut().zip(&mut self.debounce) {
            let woken = debounce.scanned(now);
            served.begin(reason, woken, now, self.setup.settings.fallback);
        }
    }

    pub(super) fn begin_scans(&mut self, now: Instant) {
        if !self.started {
            // Order at the start: LISTEN first. If it does not come, work is found by polling.
            let state = self.listen.borrow_and_update().clone();
            match state {
                ListenState::Up { generation, .. } => {
                    self.covered = generation;
                    self.scan_all(ScanReason::Startup, now);
                }
                ListenState::Starting if now < self.began + LISTEN_PATIENCE => return,
                _ => self.scan_all(ScanReason::Startup, now),
            }
        }
        // What was announced is not called found without a wake-up because that was not read yet.
        loop {
            match self.wakes.try_recv() {
                Ok(wake) => self.woke(Ok(wake)),
                Err(TryRecvError::Lagged(n)) => self.woke(Err(RecvError::Lagged(n))),
                Err(_) => break,
            }
        }
        if now >= self.fallback_at {
            self.scan_all(ScanReason::Fallback, now);
        }
        if self.debounce.iter().any(|d| d.is_due(now)) {
            // A wake-up scans all ledgers; what it finds where none was meant was found without one.
            self.scan_all(ScanReason::Fallback, now);
        }
        for (served, debounce) in self.served.iter_mut().zip(&mut self.debounce) {
            if let Some((_, reason)) = served.next_due.filter(|(due, _)| *due <= now) {
                let woken = debounce.scanned(now);
                served.begin(reason, woken, now, self.setup.settings.fallback);
            }
        }
    }
}
