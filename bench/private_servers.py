"""Servers of one's own for benchmarks and tests: a broker, a PostgreSQL cluster, the web process. Each dies with its block."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class NotHere(Exception):
    """A server that this machine doesn't have; the message names the package that brings it."""


@contextmanager
def broker(folder: Path, *, keeps: bool = False) -> Iterator[str]:
    """A broker on a unix socket in `folder` (keep its path short); its URL. With `keeps` all it gets is written there."""
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None:
        raise NotHere("no redis-server or valkey-server on PATH (Debian package: redis-server)")
    place = folder / "broker.sock"
    options = ["--port", "0", "--unixsocket", str(place), "--save", "", "--appendonly", "yes" if keeps else "no"]
    process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL, cwd=folder)
    try:
        _until(place.exists, "the broker did not start")
        yield f"unix://{place}"
    finally:
        _end(process)


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """A PostgreSQL cluster on a unix socket in `folder`; the URL of an empty database. Runs as user postgres if we are root."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs:
        raise NotHere("no PostgreSQL under /usr/lib/postgresql (Debian package: postgresql)")
    tools = programs[-1].parent
    data, as_user = folder / "data", _postgres_user()
    data.mkdir(parents=True)
    if as_user:
        for place in [folder, data]:
            os.chown(place, as_user.pw_uid, as_user.pw_gid)
        for place in [folder, *folder.parents]:
            if place.stat().st_uid == os.getuid() and place != Path("/"):
                place.chmod(place.stat().st_mode | 0o011)
    who = {"user": as_user.pw_uid, "group": as_user.pw_gid, "extra_groups": []} if as_user else {}
    initdb = [tools / "initdb", "-D", data, "-U", "pragma", "-A", "trust", "--no-sync", "-E", "UTF8"]
    subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, cwd=folder, **who)
    options = ["-k", str(folder), "-c", "listen_addresses=", "-c", "fsync=off"]
    process = subprocess.Popen(
        [tools / "postgres", "-D", data, *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        **who,
    )
    try:
        ready = [tools / "pg_isready", "-q", "-h", str(folder)]
        _until(lambda: subprocess.run(ready, check=False).returncode == 0, "PostgreSQL did not start")
        subprocess.run([tools / "createdb", "-h", str(folder), "-U", "pragma", "pragma"], check=True, cwd=folder)
        yield f"postgres://pragma@{str(folder).replace('/', '%2F')}/pragma"
    finally:
        process.terminate()
        _end(process)


def _postgres_user() -> pwd.struct_passwd | None:
    if os.getuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        raise NotHere("PostgreSQL refuses to run as root and there is no user postgres") from None


@contextmanager
def web(environment: Mapping[str, str], port: int | None = None) -> Iterator[str]:
    """The web process as production runs it; its address."""
    port = port or free_port()
    command = [sys.executable, "-m", "uvicorn", "pragma_web.asgi:application", "--port", str(port)]
    command += ["--log-level", "warning", "--no-access-log", "--timeout-graceful-shutdown", "2"]
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environment})
    address = f"http://127.0.0.1:{port}"
    try:
        _until(lambda: _answers(f"{address}/healthz"), "the web process did not start")
        yield address
    finally:
        _end(process)


def free_port() -> int:
    """A TCP port of the loopback interface that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=10.0) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _until(condition: object, complaint: str, within: float = 60.0) -> None:
    until = time.monotonic() + within
    while not condition():  # type: ignore[operator]
        if time.monotonic() > until:
            raise TimeoutError(complaint)
        time.sleep(0.05)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
