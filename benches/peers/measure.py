"""Drains no-op jobs with pgwake and with other queues, in turns, on one throwaway server.

Started by run.sh, which installs everything. Every run is timed by one rule, on the server's side:

1. a session takes an EXCLUSIVE lock on the table of jobs: everybody can still read it, nobody can claim;
2. the worker process is started, connects and gets ready; its first claim queues at the lock;
3. when as many sessions wait as have waited for the last half second, the lock is released: the clock starts;
4. a session asks every 5 ms whether the last job is finished, and from then on whether nothing unfinished is
   left: the clock stops at the first yes.

So neither the start of a process nor its end is timed, and the first claim is.
"""

import argparse
import asyncio
import dataclasses
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import asyncpg

import table
from options import arguments
from peers import Peer, all_peers
from server import Server

HERE = Path(__file__).resolve().parent
POLL = 0.005
SETTLED = 0.5
READY_WITHIN = 60.0
DRAINED_WITHIN = 600.0


@dataclasses.dataclass
class Run:
    """One drain."""

    rate: float
    #: Seconds of processor, user and system: the worker process from its start to its end.
    worker: float
    #: The same of the server, from the start of the worker to its end.
    server: float


class NotAvailable(Exception):
    """The worker says that it cannot do this."""


class Bench:
    """Knows where everything is."""

    def __init__(self, server: Server, cache: Path, pgwake: Path, jobs: int, verbose: bool) -> None:
        self.server = server
        self.cache = cache
        self.pgwake = pgwake
        self.jobs = jobs
        self.verbose = verbose
        self.filled: set[str] = set()

    def driver(self, peer: Peer) -> list[str]:
        """The program that fills and drains for a peer."""
        node = self.cache / "node"
        runtime = os.environ["PEERS_NODE"]
        return {
            "graphile_worker (crate)": [str(self.cache / "cargo/release/drain-graphile-worker")],
            "graphile-worker (npm)": [runtime, str(node / "graphile-worker.mjs")],
            "pg-boss": [runtime, str(node / "pg-boss.mjs")],
            "pgqueuer": [sys.executable, str(HERE / "python/drain.py")],
        }[peer.name]

    def command(self, peer: Peer) -> list[str]:
        """The worker process of a drain."""
        if not peer.name.startswith("pgwake"):
            return [*self.driver(peer), "drain", *(f"{k}={v}" for k, v in peer.settings.items())]
        words = [str(self.pgwake), "work", "--handler", "noop", "--until-empty", "--budget", "off"]
        for key, value in peer.settings.items():
            words += [f"--{key}", str(value)]
        return words

    def environment(self, database: str) -> dict[str, str]:
        return {**os.environ, **self.server.environment, "PGDATABASE": database}

    async def connect(self, database: str) -> asyncpg.Connection:
        where = self.server.environment
        return await asyncpg.connect(
            host=where["PGHOST"], port=int(where["PGPORT"]), user=where["PGUSER"], database=database
        )

    async def fill(self, peer: Peer) -> str:
        """The database with the jobs in it, made once by the peer's own bulk add; runs copy it."""
        name = "full_" + re.sub(r"\W+", "_", "pgwake" if peer.name.startswith("pgwake") else peer.name)
        if name in self.filled:
            return name
        admin = await self.connect("postgres")
        await admin.execute(f'create database "{name}"')
        await admin.close()
        env = self.environment(name)
        if name == "full_pgwake":
            check([str(self.pgwake), "migrate", "--scratch"], env)
            lines = "{}\n" * self.jobs
            check([str(self.pgwake), "enqueue", "noop", "-"], env, lines)
        else:
            check([*self.driver(peer), "fill", str(self.jobs)], env)
        db = await self.connect(name)
        await db.execute("vacuum analyze")
        there = await db.fetchval(f"select count(*) from {peer.table}")
        assert there == self.jobs, f"{peer.name}: {there} jobs instead of {self.jobs}"
        await db.close()
        self.filled.add(name)
        return name

    async def run(self, peer: Peer) -> Run:
        """One drain by one process."""
        full = await self.fill(peer)
        admin = await self.connect("postgres")
        await admin.execute(f'create database run template "{full}"')
        await admin.execute("checkpoint")
        try:
            return await self.drain(peer)
        finally:
            await admin.execute("drop database run with (force)")
            await admin.close()

    async def drain(self, peer: Peer) -> Run:
        gate, watch = await self.connect("run"), await self.connect("run")
        last = await watch.fetchval(peer.last)
        before, served = ended_children(), self.server.processor_time()
        held = gate.transaction()
        await held.start()
        await gate.execute(f"lock table {peer.table} in exclusive mode")
        output = self.cache / "output.log"
        with open(output, "wb") as out:
            worker = subprocess.Popen(
                self.command(peer),
                env=self.environment("run"),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        try:
            await self.queued(watch, worker, peer, output)
            start = time.monotonic()
            await held.commit()
            finished = await watch.prepare(peer.done)
            empty = await watch.prepare(peer.empty)
            while not await finished.fetchval(last):
                await self.pause(worker, start, peer, output)
            while not await empty.fetchval():
                await self.pause(worker, start, peer, output)
            seconds = time.monotonic() - start
            end(worker)
            used = self.server.processor_time() - served
            self.judge(peer, output.read_text(errors="replace"))
            if peer.kept:
                kept = await watch.fetchval(peer.kept)
                wanted = 0 if peer.keeps == "nothing" else self.jobs
                assert kept == wanted, f"{peer.name}: {kept} finished jobs in the table instead of {wanted}"
            return Run(self.jobs / seconds, ended_children() - before, used)
        finally:
            if worker.poll() is None:
                os.killpg(worker.pid, signal.SIGKILL)
                worker.wait()
            await gate.close()
            await watch.close()

    async def queued(self, db: asyncpg.Connection, worker: subprocess.Popen, peer: Peer, output: Path) -> None:
        """Returns when the worker's sessions have come to the gate."""
        waiting = await db.prepare(
            "select a.pid, a.query from pg_locks l join pg_stat_activity a using (pid) "
            "where not l.granted and l.locktype = 'relation' and l.database = (select oid from pg_database "
            "where datname = current_database()) order by a.pid"
        )
        begun = since = time.monotonic()
        before: list[int] = []
        while not before or time.monotonic() - since < SETTLED:
            if worker.poll() is not None:
                said = output.read_text(errors="replace").strip()
                if "unexpected argument" in said:
                    raise NotAvailable(said.splitlines()[0])
                raise SystemExit(f"{peer.name} ended before it began: {said[-1000:]}")
            if time.monotonic() - begun > READY_WITHIN:
                raise SystemExit(f"{peer.name} does not come to claim: {output.read_text(errors='replace')[-1000:]}")
            rows = await waiting.fetch()
            now = [row["pid"] for row in rows]
            if now != before:
                before, since = now, time.monotonic()
            await asyncio.sleep(0.02)
        if self.verbose:
            for row in rows:
                print(f"    at the gate: {' '.join(row['query'].split())[:150]}")

    async def pause(self, worker: subprocess.Popen, start: float, peer: Peer, output: Path) -> None:
        if time.monotonic() - start > DRAINED_WITHIN or worker.poll() not in (None, 0):
            raise SystemExit(f"{peer.name} did not drain its jobs: {output.read_text(errors='replace')[-1000:]}")
        await asyncio.sleep(POLL)

    def judge(self, peer: Peer, said: str) -> None:
        """Every job was handled once, by what the process itself counted."""
        found = re.findall(r"^(?:handled|done) (\d+)\b", said, re.MULTILINE)
        assert found, f"{peer.name} did not say how many jobs it handled: {said[-1000:]}"
        assert int(found[-1]) == self.jobs, f"{peer.name} handled {found[-1]} jobs instead of {self.jobs}"


def check(words: list[str], env: dict[str, str], text: str = "") -> None:
    done = subprocess.run(words, env=env, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{words[0]} failed: {(done.stderr or done.stdout).strip()[-1000:]}")


def end(worker: subprocess.Popen) -> None:
    """Ends a worker in order, if it has not ended by itself."""
    if worker.poll() is None:
        worker.terminate()
        try:
            worker.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()


def ended_children() -> float:
    """Processor time of all the children that have ended: between two drains only a worker ends."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def chosen(args: argparse.Namespace, known: list[Peer]) -> list[Peer]:
    """Who takes part: all, those that --only names, or the settings that --try names."""
    by_name = {peer.name: peer for peer in known}
    for name in args.only:
        if name not in by_name:
            sys.exit(f"--only {name}: no such peer; there are: {', '.join(by_name)}")
    if not args.tries:
        return [peer for peer in known if not args.only or peer.name in args.only]
    peers = [by_name[name] for name in args.only]
    for text in args.tries:
        name, _, words = text.partition(":")
        if name not in by_name:
            sys.exit(f"--try {text}: no such peer; there are: {', '.join(by_name)}")
        settings = dict(by_name[name].settings)
        for word in filter(None, words.split(",")):
            key, equals, value = word.partition("=")
            if not equals or (key not in settings and not name.startswith("pgwake")):
                sys.exit(f"--try {text}: {word}: settings are {', '.join(settings)}, as KEY=VALUE")
            settings[key] = value
        peers.append(dataclasses.replace(by_name[name], settings=settings))
    return peers


async def measure(args: argparse.Namespace, server: Server, settings: dict[str, str]) -> None:
    pgwake = Path(os.environ["PEERS_PGWAKE"])
    bench = Bench(server, Path(os.environ["PEERS_CACHE"]), pgwake, args.jobs, args.verbose)
    peers = chosen(args, all_peers(table.versions(pgwake, bench.cache)))
    db = await bench.connect("postgres")
    head = table.Head(
        server=await db.fetchval("show server_version"),
        settings={**{name: await db.fetchval(f"show {name}") for name in table.SHOWN}, **settings},
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0,
        jobs=args.jobs,
        rounds=args.rounds,
    )
    await db.close()
    print(head.text())
    rows = [table.Row(peer) for peer in peers]
    for turn in range(args.rounds):
        print(f"\nround {turn + 1}, load average {os.getloadavg()[0]:.1f}", flush=True)
        for row in rows[turn % len(rows) :] + rows[: turn % len(rows)]:
            if row.missing:
                continue
            try:
                run = await bench.run(row.peer)
            except NotAvailable as why:
                row.missing = True
                print(f"  {row.title():76} not available: {why}", flush=True)
                continue
            row.rates.append(run.rate)
            row.worker.append(run.worker)
            row.server.append(run.server)
            used = f"processor: worker {run.worker:.2f} s, server {run.server:.2f} s"
            print(f"  {row.title():76} {run.rate:9,.0f} jobs/s   {used}", flush=True)
    print(f"\n{table.plain(rows)}")
    if args.markdown:
        text = table.markdown(head, rows)
        if args.markdown == "-":
            print(f"\n{text}")
        else:
            Path(args.markdown).write_text(text, encoding="utf-8")


def main() -> None:
    args = arguments()
    # These end as Ctrl-C does: through the clean-up.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    settings = {"fsync": args.fsync, "synchronous_commit": args.synchronous_commit}
    settings.update(setting.split("=", 1) for setting in args.set)
    server = Server(settings)
    try:
        asyncio.run(measure(args, server, settings))
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
