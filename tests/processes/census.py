"""Who lives below a process, and whether they still do: by process id and start time, so that no id is taken for another."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Seen:
    """A process as it was seen."""

    pid: int
    started: str
    command: str

    @property
    def lives(self) -> bool:
        """Whether it runs still. A zombie nobody has collected doesn't."""
        facts = _stat(self.pid)
        return facts is not None and facts[1] == self.started and facts[0] not in "ZX"

    @property
    def is_jailed(self) -> bool:
        """Whether it is a zygote or came out of one."""
        return "nursery" in self.command


def _stat(pid: int) -> tuple[str, str, int] | None:
    """State, start time and parent."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0], fields[19], int(fields[1])


def descendants(root: int) -> list[Seen]:
    """Everybody below `root`, without it."""
    parents: dict[int, int] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and (facts := _stat(int(path.name))) is not None:
            parents[int(path.name)] = facts[2]
    found, layer = [], {root}
    while layer:
        layer = {pid for pid, parent in parents.items() if parent in layer}
        found += [process for pid in layer if (process := _seen(pid)) is not None]
    return found


def _seen(pid: int) -> Seen | None:
    facts = _stat(pid)
    if facts is None:
        return None
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return None
    return Seen(pid, facts[1], command)
