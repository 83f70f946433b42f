//! Putting a job off: a fenced update that gives the attempt back.

use super::Builder;
use crate::profile::AttemptsCount;
use crate::text::quote_ident;

impl Builder<'_> {
    /// $1 ids, $2 tokens, $3 reasons, $4 delays in seconds.
    pub(super) fn defer(&self) -> String {
        let p = self.p;
        let c = &p.columns;
        let mut set = vec![format!("{} = {}", quote_ident(&c.status), self.state(&p.states.ready))];
        set.extend(p.clear_lease());
        if p.attempts_count == AttemptsCount::Claims
            && let Some(attempts) = &c.attempts
        {
            if c.lease_token.is_some() {
                set.push(format!("{} = greatest({} - 1, 0)", quote_ident(attempts), p.t(attempts)));
            } else if let Some(max) = &c.max_attempts {
                // Holder and attempts are the fence here, so no number may come twice: instead of the
                // attempt that is given back, one more is allowed.
                set.push(format!("{} = {} + 1", quote_ident(max), p.t(max)));
            }
        }
        set.push(format!("{} = now() + make_interval(secs => f.delay)", quote_ident(&c.run_at)));
        set.extend(self.set(c.last_error.as_ref(), "f.error"));
        self.fenced_update(
            &set,
            "",
            "$1::text[], $2::text[], $3::text[], $4::float8[]) with ordinality as f(job, token, error, delay, place)",
            "false",
        )
    }
}
