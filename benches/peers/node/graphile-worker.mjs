// graphile-worker: fills, or drains with one worker process.

import { Logger, makeWorkerUtils, run, WorkerPreset } from "graphile-worker";
import { endOnTerm, parts, words } from "./words.mjs";

const asked = words({ jobs: 24, pool: 10, size: 2000, delay: 1 });
const logger = new Logger(() => () => {});

if (asked.fill) {
  const utils = await makeWorkerUtils({ preset: { extends: [WorkerPreset], worker: { logger } } });
  await utils.migrate();
  for (const part of parts(asked.fill)) {
    await utils.addJobs(Array.from({ length: part }, () => ({ identifier: "noop", payload: {} })));
  }
  await utils.release();
} else {
  const { jobs, pool, size, delay } = asked.drain;
  let handled = 0;
  const runner = await run({
    preset: {
      extends: [WorkerPreset],
      worker: {
        logger,
        concurrentJobs: jobs,
        maxPoolSize: pool,
        localQueue: { size },
        completeJobBatchDelay: delay,
        failJobBatchDelay: delay,
      },
    },
    noHandleSignals: true,
    taskList: {
      noop: async () => {
        handled += 1;
      },
    },
  });
  endOnTerm(() => runner.stop(), () => handled);
  await runner.promise;
}
