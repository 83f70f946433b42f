-- Who works, who released what, and which ledgers are for practice.

-- One row per live worker and ledger it serves, refreshed every 5 s by the worker itself.
create table pgwake.workers (
    name              text        not null,
    ledger            text        not null,
    host              text        not null,
    pid               int         not null,
    version           text        not null,
    started_at        timestamptz not null default now(),
    seen_at           timestamptz not null default now(),
    found_startup     bigint      not null default 0,
    found_notify      bigint      not null default 0,
    found_fallback    bigint      not null default 0,
    found_reconnect   bigint      not null default 0,
    found_timed       bigint      not null default 0,
    claims_got        bigint      not null default 0,
    claims_empty      bigint      not null default 0,
    claims_contended  bigint      not null default 0,
    claims_error      bigint      not null default 0,
    jobs_done         bigint      not null default 0,
    jobs_failed       bigint      not null default 0,
    jobs_lost         bigint      not null default 0,
    wakeups           bigint      not null default 0,
    reconnects        bigint      not null default 0,
    recovery_p50_ms   float8,
    recovery_p95_ms   float8,
    recovery_p99_ms   float8,
    wake_p50_ms       float8,
    wake_p95_ms       float8,
    wake_p99_ms       float8,
    claim_p50_ms      float8,
    claim_p95_ms      float8,
    claim_p99_ms      float8,
    budget            text        not null default 'open',
    primary key (name, ledger)
);

comment on column pgwake.workers.found_timed is
    'Of the jobs found by the fallback scan, those that became due by time: no wake-up could be expected for them.';

-- Every lease that was released by hand, as it was at that moment. Append only.
create table pgwake.releases (
    id           bigint generated always as identity primary key,
    released_at  timestamptz not null default now(),
    released_by  text        not null default session_user,
    client       text        not null default coalesce(host(inet_client_addr()), 'local socket'),
    operator     text        not null,
    how          text        not null,
    reason       text        not null,
    ledger       text        not null,
    job_id       text        not null,
    holder       text        not null,
    lease_token  text        not null,
    locked_until timestamptz not null,
    attempts     int,
    was_expired  boolean     not null,
    constraint releases_how_known check (how in ('one', 'all expired'))
);

comment on column pgwake.releases.operator is 'Operating system user and host of the person''s pgwake.';

create function pgwake.releases_are_append_only() returns trigger
language plpgsql as $$
begin
    raise exception 'pgwake.releases is append only'
        using errcode = 'insufficient_privilege',
              hint = 'To archive old rows, a superuser may disable the trigger.';
end
$$;

create trigger releases_append_only
    before update or delete or truncate on pgwake.releases
    for each statement execute function pgwake.releases_are_append_only();

-- Ledgers on which the practice handlers (simulate, noop) may mark work as done.
create table pgwake.scratch (
    relation  text        primary key,
    marked_at timestamptz not null default now(),
    marked_by text        not null default session_user
);

comment on table pgwake.scratch is
    'Ledgers marked with "pgwake migrate --scratch". Handlers that do no work refuse every other ledger.';
