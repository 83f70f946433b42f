-- What a person did to a job that nobody held: retry, give up, run now. Append only, beside pgwake.releases,
-- whose rows are leases.

create table pgwake.actions (
    id           bigint generated always as identity primary key,
    acted_at     timestamptz not null default now(),
    acted_by     text        not null default session_user,
    client       text        not null default coalesce(host(inet_client_addr()), 'local socket'),
    operator     text        not null,
    action       text        not null,
    how          text        not null,
    reason       text        not null,
    ledger       text        not null,
    job_id       text        not null,
    job_type     text        not null,
    state_was    text        not null,
    run_at_was   timestamptz,
    attempts_was bigint,
    constraint actions_action_known check (action in ('retry', 'give up', 'run now')),
    constraint actions_how_known check (how in ('one', 'many'))
);

comment on table pgwake.actions is 'Jobs that a person retried, gave up or made due, as they were at that moment.';
comment on column pgwake.actions.operator is 'Operating system user and host of the person''s pgwake.';

create function pgwake.actions_are_append_only() returns trigger
language plpgsql as $$
begin
    raise exception 'pgwake.actions is append only'
        using errcode = 'insufficient_privilege',
              hint = 'To archive old rows, a superuser may disable the trigger.';
end
$$;

create trigger actions_append_only
    before update or delete or truncate on pgwake.actions
    for each statement execute function pgwake.actions_are_append_only();
