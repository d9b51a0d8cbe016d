"""A whole PRAGMA in a directory of its own, started as people start it, and what tests ask of it."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE, until
from tests.processes.census import Seen, descendants

ROOT = Path(__file__).resolve().parents[2]
SECRETS = {"OPENAI_API_KEY": "sk-not-real", "PRAGMA_KEY": "k" * 60, "EMAIL_HOST_PASSWORD": "smtp://mail"}

SUBMIT = """
import sys
from apps.hosts import jobs
from apps.hosts.models import Device
job = jobs.submit(key=sys.argv[1], kind="inspect", device=Device.objects.get(), origin="run 1",
                  request={"problem": open(sys.argv[2]).read(), "overrides": {}})
print(job.pk)
"""


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("pragma", timeout=20)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(self._path)


class House:
    """One installation, running or not."""

    def __init__(self, var: Path, port: int) -> None:
        self.var, self.port = var, port
        self.supervisor: subprocess.Popen[bytes] | None = None
        inherited = {
            name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "VIRTUAL_ENV")
        }
        self.environment = inherited | SECRETS | {"PRAGMA_VAR": str(var), "PRAGMA_PORT": str(port)}
        self.environment |= {"PRAGMA_LOCKS": str(var), "PYTHONPATH": str(ROOT), "PRAGMA_STATION": "here"}

    def command(self, *words: str, seconds: float = 120) -> str:
        """What `python WORDS` says in this installation."""
        done = subprocess.run(
            [sys.executable, *words],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self) -> None:
        """Start everything and wait until all of it does its part."""
        with (self.var / "out").open("ab") as out:
            command = [sys.executable, "-m", "pragma_web.supervisor"]
            self.supervisor = subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=out, stderr=out)
        self.wait_whole()

    def wait_whole(self) -> None:
        """Until every process runs and says that it does its part."""
        try:
            until(lambda: not self.ailing(), "", within=120)
        except AssertionError:
            raise AssertionError(f"not all of it came up: {self.ailing()}\n{self.said()[-1500:]}") from None

    def ailing(self) -> dict[str, Any]:
        """The processes that don't say that they do their part, and what they say instead."""
        names = ("supervisor", "agents", "server", "station", "web")
        said = {name: self.health(name) or {"detail": "no answer"} for name in names}
        return {name: health for name, health in said.items() if not health.get("ok")}

    def said(self) -> str:
        """What the supervisor has said."""
        return (self.var / "out").read_text() if (self.var / "out").exists() else ""

    def health(self, name: str) -> dict[str, Any] | None:
        """What a process says of its health, None where it says nothing."""
        try:
            if name == "web":
                connection: http.client.HTTPConnection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
            else:
                connection = UnixConnection(str(self.var / "run" / f"{name}.sock"))
            with closing(connection):
                connection.request("GET", "/healthz")
                answer = connection.getresponse()
                body: dict[str, Any] = json.loads(answer.read())
                return body | {"ok": answer.status == 200}
        except (OSError, http.client.HTTPException, ValueError):
            return None

    def pid(self, name: str) -> int:
        """The process id of one of the processes, 0 while it is down."""
        facts = (self.health("supervisor") or {}).get("facts", {})
        return int(facts.get(name, {}).get("pid") or 0)

    def send(self, name: str, number: int) -> None:
        """Send a signal to one of the processes, as soon as it is up (process 0 would be the tests' own group)."""
        found: list[int] = []

        def up() -> bool:
            found[:] = [self.pid(name)]
            return found[0] > 0

        until(up, f"{name} is not up")
        os.kill(found[0], number)

    def everybody(self) -> list[Seen]:
        """All processes of this house except its supervisor."""
        assert self.supervisor is not None
        return descendants(self.supervisor.pid)

    def submit(self, key: str, source: str) -> int:
        """Have the station look at a problem; the job's number."""
        path, script = self.var / f"{key}.py", self.var / "submit.py"
        path.write_text(source)
        script.write_text("import django\ndjango.setup()\n" + SUBMIT)
        self.environment["DJANGO_SETTINGS_MODULE"] = "pragma_web.settings"
        return int(self.command(str(script), key, str(path)))

    def job(self, number: int) -> dict[str, Any]:
        """A job's row."""
        return self.rows("SELECT * FROM hosts_job WHERE id = ?", number)[0]

    def rows(self, query: str, *values: object) -> list[dict[str, Any]]:
        """Rows of the house's database."""
        with closing(sqlite3.connect(self.var / "pragma.sqlite3", timeout=20)) as database:
            database.row_factory = sqlite3.Row
            return [dict(row) for row in database.execute(query, values)]

    def stop(self, number: int = signal.SIGINT) -> int:
        """Ctrl-C; the exit code."""
        assert self.supervisor is not None
        if self.supervisor.poll() is None:
            self.supervisor.send_signal(number)
        code = self.supervisor.wait(PATIENCE)
        self.supervisor = None
        return code


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def house() -> Iterator[House]:
    """An installation with its database made, in a short path; whatever of it runs at the end is ended."""
    var = Path(tempfile.mkdtemp(prefix="pragma-house-"))
    var.chmod(0o711)
    here = House(var, free_port())
    try:
        here.command("manage.py", "migrate", "--verbosity", "0")
        yield here
    finally:
        if here.supervisor is not None:
            here.stop(signal.SIGTERM)
        shutil.rmtree(var, ignore_errors=True)
