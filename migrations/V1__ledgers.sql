-- The ledgers of pgwake: jobs and outbox.
--
-- The table is the truth; a notification is only a wake-up. A DBA can read this file and run it by hand.

create schema if not exists pgwake;

-- Jobs ---------------------------------------------------------------------------------------------

create table pgwake.jobs (
    id           bigint generated always as identity primary key,
    job_type     text        not null,
    payload      jsonb       not null default '{}',
    status       text        not null default 'ready',
    run_at       timestamptz not null default now(),
    created_at   timestamptz not null default now(),
    attempts     int         not null default 0,
    max_attempts int         not null default 5,
    locked_by    text,
    locked_until timestamptz,
    lease_token  uuid,
    last_error   text,
    finished_at  timestamptz,
    constraint jobs_status_known check (status in ('ready', 'running', 'done', 'failed')),
    constraint jobs_attempts_sane check (attempts >= 0 and max_attempts >= 1),
    -- A lease is whole or not there: running if and only if holder, token and expiry are all set.
    constraint jobs_lease_whole check (
        num_nonnulls(locked_by, locked_until, lease_token) = case status when 'running' then 3 else 0 end),
    constraint jobs_finished_dated check ((status in ('done', 'failed')) = (finished_at is not null))
);

-- Ready jobs and expired leases in one order from one index: neither is starved or favoured.
create index jobs_due on pgwake.jobs
    ((case status when 'ready' then run_at when 'running' then locked_until end), id)
    where status in ('ready', 'running');
-- Ready jobs alone, so that counting a deep backlog up to a cap reads this index and not the table (the
-- expression of jobs_due could not be read from the index alone). Claims and finishes never touch it.
create index jobs_ready on pgwake.jobs (run_at) where status = 'ready';
-- Leases by expiry, for the monitor and for bulk release.
create index jobs_leased on pgwake.jobs (locked_until, id) where status = 'running';
-- Jobs that gave up, so that counting them never reads the table.
create index jobs_failed on pgwake.jobs (id) where status = 'failed';

-- A queue table lives by churn: vacuum early, and leave room for updates on the same page.
alter table pgwake.jobs set (
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_analyze_threshold = 1000);

comment on table pgwake.jobs is 'Work queue ledger. Wake-up channel: pgwake_work.';

-- Outbox -------------------------------------------------------------------------------------------

create table pgwake.outbox (
    id              bigint generated always as identity primary key,
    topic           text        not null,
    key             text,
    payload         jsonb       not null default '{}',
    status          text        not null default 'PENDING',
    created_at      timestamptz not null default now(),
    next_attempt_at timestamptz,
    locked_by       text,
    locked_until    timestamptz,
    lease_token     uuid,
    attempts        int         not null default 0,
    max_attempts    int         not null default 5,
    sent_at         timestamptz,
    last_error      text,
    constraint outbox_status_known check (status in ('PENDING', 'PROCESSING', 'SENT', 'FAILED')),
    constraint outbox_attempts_sane check (attempts >= 0 and max_attempts >= 1),
    constraint outbox_lease_whole check (
        num_nonnulls(locked_by, locked_until, lease_token) = case status when 'PROCESSING' then 3 else 0 end),
    -- FAILED keeps sent_at empty: it was given up, not sent.
    constraint outbox_sent_dated check ((status = 'SENT') = (sent_at is not null))
);

create index outbox_due on pgwake.outbox
    ((case status when 'PENDING' then coalesce(next_attempt_at, created_at) when 'PROCESSING' then locked_until end), id)
    where status in ('PENDING', 'PROCESSING');
create index outbox_ready on pgwake.outbox
    ((coalesce(next_attempt_at, created_at))) include (next_attempt_at, created_at)
    where status = 'PENDING';
create index outbox_leased on pgwake.outbox (locked_until, id) where status = 'PROCESSING';
create index outbox_failed on pgwake.outbox (id) where status = 'FAILED';

alter table pgwake.outbox set (
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_analyze_threshold = 1000);

comment on table pgwake.outbox is 'Transactional outbox ledger. Wake-up channel: pgwake_outbox.';
