//! Resting while the program is stopped: the screen wishes for it, the side of the network obeys and says
//! when it does.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// The screen's end.
pub struct Pause {
    wish: watch::Sender<bool>,
    resting: watch::Receiver<bool>,
    more: Box<dyn Fn() -> Duration + Send>,
}

/// The network's end.
pub(super) struct Rest {
    pub(super) wish: watch::Receiver<bool>,
    pub(super) resting: watch::Sender<bool>,
}

/// Both ends. `more` says for how much longer than usual the other side is to be waited for, now.
pub(super) fn pause(more: impl Fn() -> Duration + Send + 'static) -> (Pause, Rest) {
    let (wish, wished) = watch::channel(false);
    let (tell, resting) = watch::channel(false);
    (Pause { wish, resting, more: Box::new(more) }, Rest { wish: wished, resting: tell })
}

impl Pause {
    /// Wishes for rest and waits until it is there, or as long as a person may be kept waiting.
    pub(super) async fn rest(&mut self, limit: Duration) {
        let limit = limit + (self.more)();
        self.wish.send_replace(true);
        // also ends when the other side has gone: it rests for good
        let _ = timeout(limit, self.resting.wait_for(|resting| *resting)).await;
    }

    /// The rest is over.
    pub(super) fn go_on(&mut self) {
        self.wish.send_replace(false);
    }
}
