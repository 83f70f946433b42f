//! Deleting what was done long ago, a page at a time by the primary key: no index of its own is needed.

use super::Builder;

impl Builder<'_> {
    /// $1 rows of a page, $2 seconds that are kept; with `after`, $3 the id after which the page begins.
    ///
    /// The page is read without a lock, so that no claim passes a row over because of it. Only what is to be
    /// deleted is locked, and what somebody else holds locked is left for another time. A row that changed
    /// since the page was read has another ctid, and is left alone as well.
    pub(super) fn prune(&self, after: bool) -> String {
        let p = self.p;
        let c = &p.columns;
        let (Some(done_at), Some(created_at)) =
            (c.done_at.as_ref().or(c.finished_at.as_ref()), c.created_at.as_ref())
        else {
            return String::new();
        };
        let from = if after {
            format!("\n    where {} > $3::text::{}", p.id(), self.types.id)
        } else {
            String::new()
        };
        let limit = "now() - make_interval(secs => $2)";
        format!(
            "with page as materialized (\n  \
               select r.*, row_number() over (order by r.id) as n from (\n    \
                 select t.ctid as at, {id} as id, ({done} and {done_at} < {limit}) is true as old,\n           \
                        ({created_at} < {limit}) is not false as early\n    \
                 from {rel} t{from}\n    order by {id}\n    limit $1\n  ) r\n\
             ), pick as materialized (\n  \
               select p.n, p.at, p.id\n  from page p join {rel} t on t.ctid = p.at and {id} = p.id\n  \
               where p.old\n  for update of t skip locked\n\
             ), gone as (\n  \
               delete from {rel} t using pick k\n  where t.ctid = k.at and {id} = k.id\n  returning k.n as n\n\
             ), cleared as (\n  \
               select count(*) as n from (select n, row_number() over (order by n) as place from gone) g\n  \
               where g.n = g.place\n\
             )\n\
             select count(*)::text, (select count(*) from gone)::text, coalesce(bool_or(early), false)::text,\n       \
                    (select id::text from page where n = (select count(*) from page)),\n       \
                    (select id::text from page where n = (select n from cleared))\n\
             from page",
            id = p.id(),
            rel = p.relation(),
            done = p.is_done(),
            done_at = p.t(done_at),
            created_at = p.t(created_at),
        )
    }
}
