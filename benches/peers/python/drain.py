"""pgqueuer: `fill N` adds N jobs; `drain [KEY=VALUE…]` drains in one process until SIGTERM.

The database is named by the PG* environment variables.
"""

import asyncio
import signal
import sys

import asyncpg
import uvloop
from pgqueuer import PgQueuer, Queries
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver

PART = 10_000


async def fill(jobs: int) -> None:
    connection = await asyncpg.connect()
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()
    for start in range(0, jobs, PART):
        part = min(PART, jobs - start)
        await queries.enqueue(["noop"] * part, [None] * part, [0] * part)
    await connection.close()


async def drain(settings: dict[str, int]) -> None:
    handled = 0
    managers = []
    opened = []
    for _ in range(settings["managers"]):
        if settings["pool"]:
            pool = await asyncpg.create_pool(min_size=settings["pool"], max_size=settings["pool"])
            opened.append(pool)
            manager = PgQueuer(AsyncpgPoolDriver(pool))
        else:
            connection = await asyncpg.connect()
            opened.append(connection)
            manager = PgQueuer(AsyncpgDriver(connection))

        @manager.entrypoint("noop")
        async def noop(_job: object) -> None:
            nonlocal handled
            handled += 1

        managers.append(manager)

    def stop() -> None:
        for manager in managers:
            manager.shutdown.set()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    await asyncio.gather(*(manager.run(batch_size=settings["batch"]) for manager in managers))
    for connection in opened:
        await connection.close()
    print(f"handled {handled}", flush=True)


def main(words: list[str]) -> None:
    match words:
        case ["fill", jobs]:
            uvloop.run(fill(int(jobs)))
        case ["drain", *rest]:
            settings = {"batch": 500, "managers": 1, "pool": 5}
            for word in rest:
                key, _, value = word.partition("=")
                if key not in settings:
                    sys.exit(f"{word}: no such setting")
                settings[key] = int(value)
            uvloop.run(drain(settings))
        case _:
            sys.exit("usage: fill N | drain [KEY=VALUE…]")


if __name__ == "__main__":
    main(sys.argv[1:])
