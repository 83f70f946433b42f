-- Two roles for people who use pgwake on the ledgers of the schema pgwake, with no more rights than they need.
-- Run it as the owner of the schema, connected to its database: for instance pgwake migrate --print-roles | psql.
-- It may be run again. They cannot log in themselves: grant them to those who do,
--   grant pgwake_watcher to alice;  grant pgwake_operator to bob;

do $$
begin
    if not exists (select from pg_roles where rolname = 'pgwake_watcher') then
        create role pgwake_watcher nologin;
    end if;
    if not exists (select from pg_roles where rolname = 'pgwake_operator') then
        create role pgwake_operator nologin;
    end if;
    execute format('grant connect on database %I to pgwake_watcher', current_database());
end
$$;

-- The watcher looks: the dashboard, status, check. It changes nothing.
grant usage on schema pgwake to pgwake_watcher;
grant select on pgwake.jobs, pgwake.outbox, pgwake.workers, pgwake.releases, pgwake.actions, pgwake.scratch
    to pgwake_watcher;
-- What the ids have come to, from which the rate of arrivals is told.
grant select on sequence pgwake.jobs_id_seq, pgwake.outbox_id_seq to pgwake_watcher;

-- The operator also releases, retries, gives up, runs now and wakes. It changes the columns of a lease and of a job's
-- state, adds to the records of what was done, and neither adds, deletes nor rewrites a job.
grant pgwake_watcher to pgwake_operator;
grant update (status, run_at, locked_by, locked_until, lease_token, attempts, max_attempts, last_error, finished_at)
    on pgwake.jobs to pgwake_operator;
grant update (status, next_attempt_at, locked_by, locked_until, lease_token, attempts, max_attempts, last_error, sent_at)
    on pgwake.outbox to pgwake_operator;
grant insert on pgwake.releases, pgwake.actions to pgwake_operator;

-- What follows is the server's and needs a superuser; each line by itself, as far as you agree.
-- To see what other roles' sessions do, and for how long; without it those fields are — and their count is told:
--   grant pg_read_all_stats to pgwake_watcher;
-- To cancel statements and end sessions of other roles (those of superusers stay out of reach):
--   grant pg_signal_backend to pgwake_operator;
