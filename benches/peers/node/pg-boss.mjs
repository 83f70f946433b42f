// pg-boss: fills, or drains with one process.

import { PgBoss } from "pg-boss";
import { endOnTerm, parts, words } from "./words.mjs";

const asked = words({ batch: 1000, workers: 4, pool: 10 });
const { PGHOST: host, PGPORT: port, PGUSER: user, PGDATABASE: database } = process.env;
const boss = new PgBoss({
  host,
  port: Number(port),
  user,
  database,
  max: asked.drain?.pool ?? 10,
  // The upkeep of other queues' rows is not part of a drain.
  supervise: false,
  schedule: false,
});
boss.on("error", (error) => console.error(error));
await boss.start();

if (asked.fill) {
  await boss.createQueue("noop");
  for (const part of parts(asked.fill)) {
    await boss.insert("noop", Array.from({ length: part }, () => ({ data: {} })));
  }
  await boss.stop({ graceful: false });
} else {
  const { batch, workers } = asked.drain;
  let handled = 0;
  const options = {
    batchSize: batch,
    localConcurrency: workers,
    burstWhenBatchFull: true,
    pollingIntervalSeconds: 0.5,
  };
  endOnTerm(() => boss.stop({ graceful: true, timeout: 5_000 }), () => handled);
  await boss.work("noop", options, async (jobs) => {
    handled += jobs.length;
  });
}
