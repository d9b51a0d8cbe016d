"""Fetching an accepted kernel from elsewhere: the small client, and a line of Python that needs not even that."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from apps.hosts.models import Device
from apps.people.refusals import Refused
from apps.reviews.models import AcceptedKernel, KernelState
from apps.runs.models import Problem

_CLIENT = Path(__file__).with_name("client.py.txt")


class NoneInUse(Refused):
    """No kernel is in use for what was asked; the message says for what one is."""


def client_text(address: str) -> str:
    """The client, knowing where this server is."""
    return _client() % {"address": address}


@cache
def _client() -> str:
    return _CLIENT.read_text()


def one_liner(kernel: AcceptedKernel, address: str) -> str:
    """A shell line that fetches this very kernel, refuses any other content, and writes it to a file."""
    where = f"{address}/api/v1/kernels/{kernel.pk}/"
    name = f"{kernel.problem.slug.replace('-', '_')}_kernel.py"
    python = (
        "import hashlib as h,json,os,urllib.request as u;"
        f"k=json.load(u.urlopen(u.Request('{where}',headers={{'Authorization':'Bearer '+os.environ['PRAGMA_TOKEN']}})));"
        f"assert h.sha256(k['source'].encode()).hexdigest()=='{kernel.digest}' and k['source'].strip() in k['file'];"
        f"open('{name}','w').write(k['file'])"
    )
    return f'python -c "{python}"'


def in_use(problem: Problem, device: str, language: str) -> AcceptedKernel:
    """The kernel in use for a problem as its source has it, on a device named HOST/DEVICE or by its model.

    Of several hosts with that model, the one accepted last. Raises `NoneInUse`.
    """
    found = AcceptedKernel.objects.filter(problem=problem, language=language, state=KernelState.CURRENT)
    found = found.select_related("problem", "sizing", "device__host", "version__run", "measurement", "by")
    there = [kernel for kernel in found.order_by("-id") if not kernel.sizing.overrides]
    match = [kernel for kernel in there if _is(kernel.device, device)]
    if match:
        return match[0]
    others = ", ".join(sorted({f"{one.device} ({one.device.model})" for one in there}))
    have = f"It has one for {others}." if others else "It has none for any device at the sizes of its source."
    raise NoneInUse(f"{problem.title} has no accepted kernel in {language} for {device!r}. {have}", "device")


def _is(device: Device, named: str) -> bool:
    wanted = " ".join(named.split()).casefold()
    return wanted in (str(device).casefold(), " ".join(device.model.split()).casefold())
