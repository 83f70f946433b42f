//! How the server would carry out a claim: EXPLAIN without ANALYZE, which runs nothing.

use serde_json::Value;
use tokio_postgres::types::Type;

use super::{DEADLINE, Ledger};
use crate::model::ClaimPlan;
use crate::pg::{Error, Fields, Session, sqlstate};
use crate::text::{clean, count};

/// Below this many rows any plan is good, and the planner is right to read the whole table.
const SMALL: f64 = 1_000.0;
/// Nodes of a plan that are shown.
const NODES: usize = 40;
/// As a worker claims by default.
const LIMIT: i64 = 10;

/// As the sessions of workers plan: this one avoids what a monitor must not do.
const AS_WORKERS: &str = "begin read only; set local enable_seqscan = on; set local enable_bitmapscan = on";

impl Ledger {
    /// The plan of the claim with a limit of 10, as a worker's session would make it now. Where this role may
    /// not update, the plan of the choice of rows alone.
    ///
    /// # Errors
    /// As any statement; 55P03 while somebody holds the table.
    pub async fn claim_plan(&self, session: &Session) -> Result<ClaimPlan, Error> {
        let rows = session
            .rows(
                "select reltuples::float8 from pg_class where oid = to_regclass($1)",
                &[(&self.profile().relation(), Type::TEXT)],
            )
            .await?;
        // negative: never counted
        let rows = rows.first().map_or(Ok(-1.0), |r| r.field::<f64>(0))?;
        let whole = self.explained(session, &self.inner.sql.claim, true).await;
        let refused = |e: &Error| e.sqlstate() == Some(sqlstate::INSUFFICIENT_PRIVILEGE);
        let (json, only_the_pick) = match whole {
            Err(e) if refused(&e) => (self.explained(session, &self.inner.sql.pick, false).await?, true),
            other => (other?, false),
        };
        Ok(self.plan_judged(&json, rows, only_the_pick))
    }

    async fn explained(&self, session: &Session, sql: &str, whole: bool) -> Result<Value, Error> {
        session.batch(AS_WORKERS, DEADLINE).await?;
        let sql = format!("explain (format json) {sql}");
        let (holder, lease, mark) = ("claim plan", 120.0_f64, f64::NEG_INFINITY);
        let mut params: Vec<(&(dyn tokio_postgres::types::ToSql + Sync), Type)> =
            vec![(&LIMIT, Type::INT8)];
        if whole {
            params.extend([
                (&holder as _, Type::TEXT),
                (&lease as _, Type::FLOAT8),
                (&mark as _, Type::FLOAT8),
            ]);
        }
        let asked = session.rows(&sql, &params).await;
        session.batch("rollback", DEADLINE).await?;
        let rows = asked?;
        rows.first().map_or(Ok(Value::Null), |r| r.field(0))
    }

    fn plan_judged(&self, json: &Value, rows: f64, only_the_pick: bool) -> ClaimPlan {
        let p = self.profile();
        let known = (rows >= 0.0).then_some(rows);
        let mut plan = ClaimPlan { rows: known.map(|n| n as u64), only_the_pick, ..ClaimPlan::default() };
        walk(&json[0]["Plan"], 0, &mut |node, depth| {
            if plan.lines.len() < NODES {
                plan.lines.push(line(node, depth));
            }
            let kind = node["Node Type"].as_str().unwrap_or_default();
            let here = node["Relation Name"].as_str() == Some(&p.table);
            let of = known.map_or_else(String::new, |n| format!(", ~{} rows", count(n as u64)));
            if kind == "Seq Scan" && here {
                plan.flaws.push(format!("Seq Scan: each claim reads the whole table{of}."));
            } else if kind.ends_with("Sort") {
                let n = node["Plan Rows"].as_f64().unwrap_or(0.0).max(0.0) as u64;
                plan.flaws.push(format!("{kind}: each claim sorts ~{} rows to take the first.", count(n)));
            }
        });
        if known.is_some_and(|n| n < SMALL) {
            // there is nothing to read: the plan says nothing about a full table
            plan.flaws.clear();
        }
        if !plan.flaws.is_empty() {
            let plain = |sql: String| sql.replace("t.\"", "\"");
            plan.index = Some(format!(
                "create index concurrently on {} (({}), {}) where {};",
                p.relation(),
                plain(p.due()),
                plain(p.id()),
                plain(p.live())
            ));
        }
        plan
    }
}

fn walk(node: &Value, depth: usize, tell: &mut impl FnMut(&Value, usize)) {
    if !node.is_object() {
        return;
    }
    tell(node, depth);
    for below in node["Plans"].as_array().into_iter().flatten() {
        walk(below, depth + 1, tell);
    }
}

/// `Limit`, `Index Scan on jobs using jobs_due`, each with its guess of rows.
fn line(node: &Value, depth: usize) -> String {
    let text = |key: &str| node[key].as_str().map(clean);
    let mut out = "  ".repeat(depth.min(12));
    if let Some(name) = text("Subplan Name") {
        out.push_str(&format!("{name}: "));
    }
    out.push_str(&text("Node Type").unwrap_or_default());
    if let Some(table) = text("Relation Name") {
        out.push_str(&format!(" on {table}"));
    }
    if let Some(index) = text("Index Name") {
        out.push_str(&format!(" using {index}"));
    }
    if let Some(rows) = node["Plan Rows"].as_f64() {
        out.push_str(&format!("  ~{} rows", count(rows.max(0.0) as u64)));
    }
    out
}
