//! Adding jobs.

use super::Builder;
use crate::text::{quote_ident, quote_literal};

impl Builder<'_> {
    /// $1 types, $2 payloads, $3 keys, $4 due times or null: insert, then one wake-up if there is a channel,
    /// one transaction.
    pub(super) fn enqueue(&self, channel: Option<&str>) -> String {
        let p = self.p;
        let c = &p.columns;
        let mut columns = vec![quote_ident(&c.status)];
        let mut values = vec![self.state(&p.states.ready)];
        for (column, value) in [(&c.job_type, "n.job_type"), (&c.key, "n.key")] {
            if let Some(column) = column {
                columns.push(quote_ident(column));
                values.push(value.to_owned());
            }
        }
        if let Some(payload) = &c.payload {
            columns.push(quote_ident(payload));
            values.push("n.payload::jsonb".to_owned());
        }
        columns.push(quote_ident(&c.run_at));
        values.push(
            if c.run_at_unset.is_some() { "n.run_at" } else { "coalesce(n.run_at, now())" }.to_owned(),
        );
        if let Some(created) = &c.created_at {
            columns.push(quote_ident(created));
            values.push("now()".to_owned());
        }
        let woke = match channel {
            Some(channel) => format!(
                ", woke as (\n  select pg_notify({}, 'ready') from (select 1 from added limit 1) a\n)\n\
                 select id from added where (select count(*) from woke) >= 0",
                quote_literal(channel)
            ),
            None => "\nselect id from added".to_owned(),
        };
        format!(
            "with added as (\n  insert into {rel} ({columns})\n  select {values}\n  \
             from unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[]) with ordinality as n(job_type, payload, key, run_at, place)\n  \
             order by n.place\n  returning {id}::text as id\n){woke}",
            rel = p.relation(),
            columns = columns.join(", "),
            values = values.join(", "),
            id = quote_ident(&c.id),
        )
    }
}
