"""The contenders: how each is filled and run, where its jobs are, and what it is at its best."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Peer:
    """One queue. Statements see its own database; `last` is a job that is finished among the last ones."""

    name: str
    version: str
    language: str
    #: Whether the completion of a holder that is late can finish a job that somebody else holds now.
    fenced: str
    #: What is left of a job that is done.
    keeps: str
    #: The table that the gate holds, and that must be empty of unfinished jobs at the end.
    table: str
    #: The last job in the order of claims.
    last: str
    #: Whether job $1 is finished: one look-up by key.
    done: str
    #: Whether nothing unfinished is left.
    empty: str
    #: How many finished jobs the database still shows, where it shows any.
    kept: str | None
    settings: dict[str, object] = field(default_factory=dict)


def graphile(name: str, version: str, language: str, settings: dict[str, object]) -> Peer:
    """Two programs, one schema."""
    table = "graphile_worker._private_jobs"
    return Peer(
        name=name,
        version=version,
        language=language,
        fenced="no",
        keeps="nothing",
        table=table,
        last=f"select max(id) from {table}",
        done=f"select not exists (select from {table} where id = $1)",
        empty=f"select not exists (select from {table})",
        kept=None,
        settings=settings,
    )


def pgwake(name: str, keeps: str, version: str, settings: dict[str, object]) -> Peer:
    """History kept, or nothing kept."""
    table = "pgwake.jobs"
    return Peer(
        name=name,
        version=version,
        language="Rust",
        fenced="yes, by token",
        keeps=keeps,
        table=table,
        last=f"select max(id) from {table}",
        done=f"select not exists (select from {table} where id = $1 and status in ('ready', 'running'))",
        empty=f"select not exists (select from {table} where status in ('ready', 'running'))",
        kept=f"select count(*) from {table} where status = 'done'",
        settings=settings,
    )


def all_peers(versions: dict[str, str]) -> list[Peer]:
    """Everyone, at the settings that the README gives reasons for."""
    return [
        pgwake(
            "pgwake",
            "the row",
            versions["pgwake"],
            {"batch": 1000, "concurrency": 2000, "sessions": 2},
        ),
        pgwake(
            "pgwake --keep 0",
            "nothing",
            versions["pgwake"],
            {"batch": 500, "concurrency": 2000, "sessions": 2, "keep": 0},
        ),
        graphile(
            "graphile_worker (crate)",
            versions["graphile_worker"],
            "Rust",
            {"concurrency": 500, "size": 5000, "queues": 2, "delay": 5, "pool": 20},
        ),
        graphile(
            "graphile-worker (npm)",
            versions["graphile-worker"],
            "Node.js",
            {"jobs": 24, "pool": 10, "size": 2000, "delay": 1},
        ),
        Peer(
            name="pg-boss",
            version=versions["pg-boss"],
            language="Node.js",
            fenced="yes, by attempt",
            keeps="the row",
            table="pgboss.job",
            last="select id from pgboss.job where name = 'noop' order by created_on desc, id desc limit 1",
            done="select not exists (select from pgboss.job where name = 'noop' and id = $1 and state < 'completed')",
            empty="select not exists (select from pgboss.job where name = 'noop' and state < 'completed')",
            kept="select count(*) from pgboss.job where name = 'noop' and state = 'completed'",
            settings={"batch": 1000, "workers": 4, "pool": 10},
        ),
        Peer(
            name="pgqueuer",
            version=versions["pgqueuer"],
            language="Python",
            fenced="no",
            keeps="a log row",
            table="pgqueuer",
            last="select max(id) from pgqueuer",
            done="select not exists (select from pgqueuer where id = $1)",
            empty="select not exists (select from pgqueuer)",
            kept="select count(*) from pgqueuer_log where status = 'successful'",
            settings={"batch": 500, "managers": 1, "pool": 5},
        ),
    ]
