-- The cheap producer: a wake-up only when the queue was empty, or when the last one is older than 100 ms.
--
-- Why. All commits of a server that notified stand in one queue: each holds one lock (an object lock on database
-- 0 in pg_locks) from before its commit record is written until it is flushed. A transaction that does not
-- notify does not take it. Most wake-ups of a busy queue say what the one before has said.
--
-- How. The decision is taken by a deferred constraint trigger, at the commit: a transaction that goes on for a
-- while after its job was added must not rely on a wake-up of that time. Such a trigger is always one for
-- each row; here it is queued for one row of a transaction, the first, and for no other producer (its WHEN
-- condition is evaluated at the insert). Rolling back to a savepoint takes the event and the mark that one was queued
-- back together. SET CONSTRAINTS … IMMEDIATE brings the decision forward, for the whole transaction.
--
-- Why nothing is lost. The row is in the table, whatever is decided: the fallback scan finds it. And a wake-up is
-- skipped only if both hold at the commit:
--   * the last wake-up was decided less than 100 ms ago. A worker waits at least 100 ms between a wake-up and its
--     scan (its debounce), so that the scan is still to come;
--   * other work is ready that no worker has claimed yet. Who claims it claims again until nothing comes.
-- What remains is the time that the commit itself takes: a worker may claim that other work, come back empty,
-- and end its scan in just that time. Then the job waits for the next wake-up, or for the fallback scan. A worker
-- with --eager does not wait, and meets that moment more often: beside such workers use pgwake.enqueue.
-- When a transaction is rolled back after its decision, the time stands although nothing was sent; the next one
-- still decides by the work that is there. A clock that was set back makes the time lie in the future, which
-- counts as long ago.
--
-- The time of the last wake-up is the value of a sequence (milliseconds since 1970): no row, so no producer waits
-- for another one; and not undone by a rollback, which does no harm, as was said.

create sequence pgwake.jobs_woken minvalue 0 start 0;
create sequence pgwake.outbox_woken minvalue 0 start 0;

comment on sequence pgwake.jobs_woken is 'Last debounced wake-up on pgwake_work, milliseconds since 1970. A hint.';
comment on sequence pgwake.outbox_woken is 'Last debounced wake-up on pgwake_outbox, milliseconds since 1970. A hint.';

-- Rights of the owner: a producer needs none but to add a job. Nothing here can be influenced but by adding one.
-- "Other work" is looked for among the rows of the last second, from the newest back: behind an old snapshot the
-- index is full of dead entries, of which a second holds few. Not found although there is some: one wake-up more.
-- Rows of this transaction have the id of its first one or a higher one. Without a sort only the index by due time is
-- left to the planner, whatever its statistics say of a table that was empty when it was analysed.
create function pgwake.wake_jobs_debounced() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_sort = off
as $$
declare
    ms constant bigint := floor(extract(epoch from clock_timestamp()) * 1000);
    age constant bigint := ms - coalesce(pg_sequence_last_value('pgwake.jobs_woken'), 0);
begin
    -- Under an older snapshot what looks ready may be done long since.
    if current_setting('transaction_isolation') = 'read committed' and age >= 0 and age < 100 then
        perform from pgwake.jobs j
        where j.status = 'ready' and j.id < new.id
          and j.run_at > clock_timestamp() - interval '1 second' and j.run_at <= clock_timestamp()
        order by j.run_at desc
        limit 1;
        if found then
            return null;
        end if;
    end if;
    perform setval('pgwake.jobs_woken', ms);
    perform pg_notify('pgwake_work', 'ready');
    return null;
end
$$;

create function pgwake.wake_outbox_debounced() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_sort = off
as $$
declare
    ms constant bigint := floor(extract(epoch from clock_timestamp()) * 1000);
    age constant bigint := ms - coalesce(pg_sequence_last_value('pgwake.outbox_woken'), 0);
begin
    if current_setting('transaction_isolation') = 'read committed' and age >= 0 and age < 100 then
        perform from pgwake.outbox m
        where m.status = 'PENDING' and m.id < new.id
          and coalesce(m.next_attempt_at, m.created_at) > clock_timestamp() - interval '1 second'
          and coalesce(m.next_attempt_at, m.created_at) <= clock_timestamp()
        order by coalesce(m.next_attempt_at, m.created_at) desc
        limit 1;
        if found then
            return null;
        end if;
    end if;
    perform setval('pgwake.outbox_woken', ms);
    perform pg_notify('pgwake_outbox', 'ready');
    return null;
end
$$;

revoke execute on function pgwake.wake_jobs_debounced(), pgwake.wake_outbox_debounced() from public;

create constraint trigger jobs_debounced after insert on pgwake.jobs
    deferrable initially deferred
    for each row when (current_setting('pgwake.debounced_jobs', true) = 'ask')
    execute function pgwake.wake_jobs_debounced();

create constraint trigger outbox_debounced after insert on pgwake.outbox
    deferrable initially deferred
    for each row when (current_setting('pgwake.debounced_outbox', true) = 'ask')
    execute function pgwake.wake_outbox_debounced();

-- Jobs ---------------------------------------------------------------------------------------------

create function pgwake.enqueue_debounced(
    job_type text, payload jsonb default '{}', run_at timestamptz default now())
returns bigint
language plpgsql as $$
declare
    new_id bigint;
begin
    if current_setting('pgwake.debounced_jobs', true) is distinct from 'asked' then
        perform set_config('pgwake.debounced_jobs', 'ask', true);
    end if;
    insert into pgwake.jobs (job_type, payload, run_at)
    values (enqueue_debounced.job_type, coalesce(enqueue_debounced.payload, '{}'),
            coalesce(enqueue_debounced.run_at, now()))
    returning jobs.id into new_id;
    perform set_config('pgwake.debounced_jobs', 'asked', true);
    return new_id;
end
$$;

comment on function pgwake.enqueue_debounced(text, jsonb, timestamptz) is
    'Adds one job. At the commit one wake-up is sent, unless work is waiting and one was sent within 100 ms. Returns the job id.';

create function pgwake.enqueue_many_debounced(
    job_types text[], payloads jsonb[], run_ats timestamptz[] default null)
returns setof bigint
language plpgsql as $$
begin
    if cardinality(job_types) is distinct from cardinality(payloads)
       or (run_ats is not null and cardinality(run_ats) <> cardinality(job_types)) then
        raise exception 'enqueue_many_debounced: the arrays differ in length (% types, % payloads, % times)',
            cardinality(job_types), cardinality(payloads), cardinality(run_ats)
            using errcode = 'array_subscript_error',
                  hint = 'Give one payload and, if at all, one time for each job type.';
    end if;
    if cardinality(job_types) = 0 then
        return;
    end if;
    -- The first one asks for all.
    return next pgwake.enqueue_debounced(job_types[array_lower(job_types, 1)],
        payloads[array_lower(payloads, 1)], run_ats[array_lower(run_ats, 1)]);
    return query
        insert into pgwake.jobs (job_type, payload, run_at)
        select j.job_type, coalesce(j.payload, '{}'), coalesce(j.run_at, now())
        from unnest(job_types, payloads, run_ats) with ordinality as j(job_type, payload, run_at, n)
        where j.n > 1
        order by j.n
        returning jobs.id;
end
$$;

comment on function pgwake.enqueue_many_debounced(text[], jsonb[], timestamptz[]) is
    'Adds many jobs with at most one wake-up, as enqueue_debounced. Returns the job ids in order.';

-- Outbox -------------------------------------------------------------------------------------------

create function pgwake.publish_debounced(topic text, key text, payload jsonb default '{}')
returns bigint
language plpgsql as $$
declare
    new_id bigint;
begin
    if current_setting('pgwake.debounced_outbox', true) is distinct from 'asked' then
        perform set_config('pgwake.debounced_outbox', 'ask', true);
    end if;
    insert into pgwake.outbox (topic, key, payload)
    values (publish_debounced.topic, publish_debounced.key, coalesce(publish_debounced.payload, '{}'))
    returning outbox.id into new_id;
    perform set_config('pgwake.debounced_outbox', 'asked', true);
    return new_id;
end
$$;

comment on function pgwake.publish_debounced(text, text, jsonb) is
    'Adds one message. At the commit one wake-up is sent, unless work is waiting and one was sent within 100 ms. Returns the message id.';

create function pgwake.publish_many_debounced(topics text[], keys text[], payloads jsonb[])
returns setof bigint
language plpgsql as $$
begin
    if cardinality(topics) is distinct from cardinality(payloads)
       or cardinality(topics) is distinct from cardinality(keys) then
        raise exception 'publish_many_debounced: the arrays differ in length (% topics, % keys, % payloads)',
            cardinality(topics), cardinality(keys), cardinality(payloads)
            using errcode = 'array_subscript_error',
                  hint = 'Give one key (null is allowed) and one payload for each topic.';
    end if;
    if cardinality(topics) = 0 then
        return;
    end if;
    return next pgwake.publish_debounced(topics[array_lower(topics, 1)], keys[array_lower(keys, 1)],
        payloads[array_lower(payloads, 1)]);
    return query
        insert into pgwake.outbox (topic, key, payload)
        select m.topic, m.key, coalesce(m.payload, '{}')
        from unnest(topics, keys, payloads) with ordinality as m(topic, key, payload, n)
        where m.n > 1
        order by m.n
        returning outbox.id;
end
$$;

comment on function pgwake.publish_many_debounced(text[], text[], jsonb[]) is
    'Adds many messages with at most one wake-up, as publish_debounced. Returns the message ids in order.';
