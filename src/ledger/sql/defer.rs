//! Putting a job off: a fenced update that gives the attempt back.

use super::Builder;
use crate::profile::AttemptsCount;
use crate::text::{quote_ident, quote_literal};

/// Attempts that a table may come to allow for a job that is put off again and again.
const MOST: i64 = 32_000;

impl Builder<'_> {
    /// $1 ids, $2 tokens, $3 reasons, $4 delays in seconds.
    pub(super) fn defer(&self) -> String {
        let p = self.p;
        let c = &p.columns;
        let mut status = self.state(&p.states.ready);
        let mut gave_up = "false".to_owned();
        let mut set = p.clear_lease();
        if p.attempts_count == AttemptsCount::Claims
            && let Some(attempts) = &c.attempts
        {
            if c.lease_token.is_some() {
                set.push(format!("{} = greatest({} - 1, 0)", quote_ident(attempts), p.t(attempts)));
            } else if let Some(max) = &c.max_attempts {
                // Holder and attempts are the fence here, so no number may come twice: instead of the
                // attempt that is given back, one more is allowed. Before the numbers of a smallint are used up,
                // it has failed.
                let last = format!("{} >= {MOST}", p.t(max));
                status =
                    format!("case when {last} then {} else {status} end", self.state(&p.states.failed));
                set.push(format!(
                    "{} = case when {last} then {max} else {max} + 1 end",
                    quote_ident(max),
                    max = p.t(max)
                ));
                set.extend(self.set(c.finished_at.as_ref(), &format!("case when {last} then now() end")));
                gave_up = format!("{} = {}", p.status(), quote_literal(&p.states.failed));
            }
        }
        set.push(format!("{} = {status}", quote_ident(&c.status)));
        set.push(format!("{} = now() + make_interval(secs => f.delay)", quote_ident(&c.run_at)));
        set.extend(self.set(c.last_error.as_ref(), "f.error"));
        self.fenced_update(
            &set,
            "",
            "$1::text[], $2::text[], $3::text[], $4::float8[]) with ordinality as f(job, token, error, delay, place)",
            &gave_up,
        )
    }
}
