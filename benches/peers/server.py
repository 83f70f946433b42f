"""One throwaway PostgreSQL server: its own folder, its own socket, and an end that comes."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SUPERUSER = "postgres"


class Server:
    """A running server. `stop()` ends it and removes its folder."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.bin = binaries()
        self.as_user = unprivileged()
        # A socket's path has to be short.
        self.folder = Path(tempfile.mkdtemp(prefix="pgwake-peers-", dir="/tmp"))
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        if "user" in self.as_user:
            os.chown(self.folder, self.as_user["user"], self.as_user["group"])
        self.process = None
        try:
            self.quietly("initdb", "-D", self.data, "-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--no-locale")
            lines = [f"{key} = '{value}'" for key, value in settings.items()]
            lines += ["listen_addresses = ''", f"unix_socket_directories = '{self.folder}'"]
            with open(self.data / "postgresql.auto.conf", "a", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
            self.start()
        except BaseException:
            self.stop()
            raise

    @property
    def environment(self) -> dict[str, str]:
        """How a client finds it; the database's name is still to come."""
        return {"PGHOST": str(self.folder), "PGPORT": "5432", "PGUSER": SUPERUSER}

    def start(self) -> None:
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.bin / "postgres", "-D", self.data],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                # A Ctrl-C is for this program, which then ends the server in order.
                start_new_session=True,
                **self.as_user,
            )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                if (self.data / "postmaster.pid").read_text().splitlines()[7].strip() == "ready":
                    return
            except (OSError, IndexError):
                pass
            time.sleep(0.02)
        raise SystemExit(f"the throwaway server did not start:\n{self.log.read_text()[-2000:]}")

    def quietly(self, program: str, *words: object) -> None:
        done = subprocess.run(
            [self.bin / program, *map(str, words)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=self.folder,
            check=False,
            **self.as_user,
        )
        if done.returncode != 0:
            raise SystemExit(f"{program}: {done.stderr.strip()}")

    def processor_time(self) -> float:
        """Seconds of processor that the server and all its processes have used; not a number without /proc."""
        pid = self.process.pid
        try:
            used = ticks(pid, 13, 17)
            for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
                try:
                    used += ticks(int(child), 13, 15)
                except OSError:
                    # It has ended since, and is in its parent's count now or at the next look.
                    pass
            return used / os.sysconf("SC_CLK_TCK")
        except OSError:
            return float("nan")

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            # Nobody reads the data again: the immediate stop does.
            self.process.send_signal(3)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None
        shutil.rmtree(self.folder, ignore_errors=True)


def ticks(pid: int, first: int, after: int) -> int:
    """Fields of /proc/PID/stat, counted from 0: 13–14 its own time, 15–16 that of its ended children."""
    text = Path(f"/proc/{pid}/stat").read_text()
    name_end = text.rindex(")") + 2
    return sum(map(int, text[name_end:].split()[first - 2 : after - 2]))


def binaries() -> Path:
    """The folder of `initdb` and `postgres`: PG_BIN, else the PATH, else where Debian puts them."""
    named = os.environ.get("PG_BIN")
    found = [Path(named)] if named else []
    on_path = shutil.which("initdb")
    if not named and on_path:
        found.append(Path(on_path).resolve().parent)
    if not named:
        found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in found:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    sys.exit("initdb and postgres are not found: put them on the PATH or name their folder in PG_BIN")


def unprivileged() -> dict:
    """PostgreSQL does not run as root: then somebody else runs it."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    sys.exit("PostgreSQL does not run as root, and there is no user postgres or nobody to run it")
