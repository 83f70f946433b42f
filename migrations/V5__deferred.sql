-- Jobs that a worker put off: they are neither done nor failed attempts.

alter table pgwake.workers add column jobs_deferred bigint not null default 0;

comment on column pgwake.workers.jobs_deferred is
    'Times that jobs were put off: a command that exits with 75, or a handler that says "later".';
