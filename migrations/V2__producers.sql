-- Producers: insert, then one wake-up, both in the caller's transaction, so that the business change,
-- the job and the wake-up share a commit.
--
-- The payload of the notification is the constant hint 'ready', never the work itself: there is no
-- per-row trigger, equal notifications of one transaction arrive once, and 5 bytes are far below the
-- server's limit of 8000 and the contract's limit of 128.
--
-- A transaction that notified cannot be prepared (PREPARE TRANSACTION): producers under two-phase commit
-- insert into the table directly, and the fallback scan finds their jobs.

create function pgwake.enqueue(job_type text, payload jsonb default '{}', run_at timestamptz default now())
returns bigint
language plpgsql as $$
declare
    new_id bigint;
begin
    insert into pgwake.jobs (job_type, payload, run_at)
    values (enqueue.job_type, coalesce(enqueue.payload, '{}'), coalesce(enqueue.run_at, now()))
    returning jobs.id into new_id;
    perform pg_notify('pgwake_work', 'ready');
    return new_id;
end
$$;

comment on function pgwake.enqueue(text, jsonb, timestamptz) is
    'Adds one job and sends one wake-up in the caller''s transaction. Returns the job id.';

-- The array forms have names of their own: overloaded, a call with plain literals would be ambiguous.
create function pgwake.enqueue_many(job_types text[], payloads jsonb[], run_ats timestamptz[] default null)
returns setof bigint
language plpgsql as $$
begin
    if cardinality(job_types) is distinct from cardinality(payloads)
       or (run_ats is not null and cardinality(run_ats) <> cardinality(job_types)) then
        raise exception 'enqueue_many: the arrays differ in length (% types, % payloads, % times)',
            cardinality(job_types), cardinality(payloads), cardinality(run_ats)
            using errcode = 'array_subscript_error',
                  hint = 'Give one payload and, if at all, one time for each job type.';
    end if;
    if cardinality(job_types) = 0 then
        return;
    end if;
    return query
        insert into pgwake.jobs (job_type, payload, run_at)
        select j.job_type, coalesce(j.payload, '{}'), coalesce(j.run_at, now())
        from unnest(job_types, payloads, run_ats) with ordinality as j(job_type, payload, run_at, n)
        order by j.n
        returning jobs.id;
    perform pg_notify('pgwake_work', 'ready');
end
$$;

comment on function pgwake.enqueue_many(text[], jsonb[], timestamptz[]) is
    'Adds many jobs and sends one wake-up in the caller''s transaction. Returns the job ids in order.';

create function pgwake.publish(topic text, key text, payload jsonb default '{}')
returns bigint
language plpgsql as $$
declare
    new_id bigint;
begin
    insert into pgwake.outbox (topic, key, payload)
    values (publish.topic, publish.key, coalesce(publish.payload, '{}'))
    returning outbox.id into new_id;
    perform pg_notify('pgwake_outbox', 'ready');
    return new_id;
end
$$;

comment on function pgwake.publish(text, text, jsonb) is
    'Adds one message and sends one wake-up in the caller''s transaction. Returns the message id, by which readers de-duplicate.';

create function pgwake.publish_many(topics text[], keys text[], payloads jsonb[])
returns setof bigint
language plpgsql as $$
begin
    if cardinality(topics) is distinct from cardinality(payloads)
       or cardinality(topics) is distinct from cardinality(keys) then
        raise exception 'publish_many: the arrays differ in length (% topics, % keys, % payloads)',
            cardinality(topics), cardinality(keys), cardinality(payloads)
            using errcode = 'array_subscript_error',
                  hint = 'Give one key (null is allowed) and one payload for each topic.';
    end if;
    if cardinality(topics) = 0 then
        return;
    end if;
    return query
        insert into pgwake.outbox (topic, key, payload)
        select m.topic, m.key, coalesce(m.payload, '{}')
        from unnest(topics, keys, payloads) with ordinality as m(topic, key, payload, n)
        order by m.n
        returning outbox.id;
    perform pg_notify('pgwake_outbox', 'ready');
end
$$;

comment on function pgwake.publish_many(text[], text[], jsonb[]) is
    'Adds many messages and sends one wake-up in the caller''s transaction. Returns the message ids in order.';
