"""What was measured, as text and as Markdown."""

import json
import platform
import statistics
import subprocess
import tomllib
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from peers import Peer

HERE = Path(__file__).resolve().parent
#: Server settings that a drain depends on, as the server has them.
SHOWN = ["fsync", "synchronous_commit", "shared_buffers", "max_wal_size", "wal_level", "autovacuum", "jit"]


def versions(pgwake: Path, cache: Path) -> dict[str, str]:
    """Versions of what is really installed."""
    lock = tomllib.loads((HERE / "graphile_worker/Cargo.lock").read_text(encoding="utf-8"))
    found = {p["name"]: p["version"] for p in lock["package"] if p["name"] == "graphile_worker"}
    for name in ("graphile-worker", "pg-boss"):
        package = cache / "node/node_modules" / name / "package.json"
        found[name] = json.loads(package.read_text(encoding="utf-8"))["version"]
    found["pgqueuer"] = metadata.version("pgqueuer")
    said = subprocess.run([pgwake, "--version"], capture_output=True, text=True, check=True).stdout
    found["pgwake"] = said.split()[1]
    return found


@dataclass
class Head:
    """What every line of the table depends on."""

    server: str
    settings: dict[str, str]
    cores: int
    jobs: int
    rounds: int

    def text(self) -> str:
        settings = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        return (
            f"PostgreSQL {self.server} on {platform.system()} {platform.machine()}, {self.cores} cores; {settings}\n"
            f"{self.jobs:,} no-op jobs a drain, one process, a unix socket, {self.rounds} rounds in turns"
        )


@dataclass
class Row:
    """One contender with its drains."""

    peer: Peer
    rates: list[float] = field(default_factory=list)
    worker: list[float] = field(default_factory=list)
    server: list[float] = field(default_factory=list)
    missing: bool = False

    @property
    def median(self) -> float:
        return statistics.median(self.rates)

    def title(self) -> str:
        return f"{self.peer.name} {self.settings()}"

    def settings(self) -> str:
        return " ".join(f"{key} {value}" for key, value in self.peer.settings.items() if key != "keep")


def ours(row: Row) -> bool:
    return row.peer.name.startswith("pgwake")


def ratios(rows: list[Row]) -> list[tuple[str, list[tuple[str, float]]]]:
    """For each of ours: its median over the median of each of the others, and of the fastest of them."""
    others = [row for row in rows if row.rates and not ours(row)]
    result = []
    for row in filter(lambda row: row.rates and ours(row), rows):
        pairs = [(other.title(), row.median / other.median) for other in others]
        if others:
            fastest = max(others, key=lambda other: other.median)
            pairs.append((f"the fastest ({fastest.peer.name})", row.median / fastest.median))
        result.append((row.title(), pairs))
    return result


def processor(row: Row) -> str:
    """Seconds of processor of worker and server: less depends on what else the machine does."""
    return f"{statistics.median(row.worker):.2f} + {statistics.median(row.server):.2f}"


def plain(rows: list[Row]) -> str:
    lines = [f"{'jobs per second':76} {'median':>9} {'min':>9} {'max':>9}   processor s, worker + server"]
    for row in rows:
        if row.rates:
            rates = f"{row.median:9,.0f} {min(row.rates):9,.0f} {max(row.rates):9,.0f}"
            lines.append(f"{row.title():76} {rates}   {processor(row)}")
        else:
            lines.append(f"{row.title():76} not available")
    for title, pairs in ratios(rows):
        lines += ["", f"{title}, against"]
        lines += [f"  {name:74} {ratio:9.2f} ×" for name, ratio in pairs]
    return "\n".join(lines)


def markdown(head: Head, rows: list[Row]) -> str:
    mine = [row for row in rows if row.rates and ours(row)]
    names = [row.peer.name for row in mine]
    cells = ["queue", "version", "settings", "fences a late holder", "keeps of a done job", "jobs/s, median (min–max)"]
    cells += ["processor s, worker + server"] + [f"`{name}` is" for name in names]
    lines = [*(f"{line}  " for line in head.text().splitlines()), ""]
    lines += [f"| {' | '.join(cells)} |", f"|{'---|' * len(cells)}"]
    for row in sorted(rows, key=lambda row: -row.median if row.rates else 0.0):
        peer = row.peer
        cells = [peer.name, f"{peer.version} ({peer.language})", row.settings(), peer.fenced, peer.keeps]
        if row.rates:
            cells += [f"**{row.median:,.0f}** ({min(row.rates):,.0f}–{max(row.rates):,.0f})"]
            cells += [processor(row)]
            cells += ["" if row is us else f"{us.median / row.median:.2f} ×" for us in mine]
        else:
            cells += ["not available", *[""] * (len(mine) + 1)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
