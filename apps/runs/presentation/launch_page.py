"""What Launch shows beside the form: the problem as far as it is known, hosts and whether they can, an estimate."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db.models import Count, OuterRef, Subquery
from django.db.models.functions import Coalesce

from apps.hosts.models import Device, JobState
from apps.hosts.queries import jobs_in
from apps.kernels.evaluation import Language
from apps.kernels.facts import Constant, ProblemFacts, Quirk, TensorFact
from apps.kernels.plain import BadPlain, from_plain
from apps.runs import problems
from apps.runs.launch import LaunchOrder, why_not
from apps.runs.models import LIVE_RUN_STATES, Problem, Run, Sizing, SizingState, Version
from apps.runs.refusals import Refused


@dataclass(frozen=True)
class Size:
    """A size constant that can be changed: its value now and as the source has it."""

    name: str
    value: str
    default: str
    line: int


@dataclass(frozen=True)
class Looked:
    """What is known of a problem: from its text at once, from a host's jail once `facts` are there."""

    error: str = ""
    title: str = ""
    docstring: str = ""
    sizes: tuple[Size, ...] = ()
    quirks: tuple[Quirk, ...] = ()
    state: str = ""
    waiting: bool = False
    no_host: bool = False
    refusal: str = ""
    facts: ProblemFacts | None = None

    @property
    def ready(self) -> bool:
        """Whether it could be launched at these sizes."""
        return self.state == SizingState.READY

    @property
    def intensity(self) -> float | None:
        """FLOP per byte that must move."""
        facts = self.facts
        return facts.flops / facts.compulsory_bytes if facts and facts.flops and facts.compulsory_bytes else None


@dataclass(frozen=True)
class DeviceChoice:
    """A device to launch on: what it is, whether it can, how busy it is."""

    name: str
    model: str
    why_not: str
    busy: str
    counters: bool | None
    counters_detail: str
    languages: str


def look_at_text(source: str) -> Looked:
    """What `ast` says of a pasted source."""
    if not source.strip():
        return Looked()
    try:
        text = problems.read(source)
    except Refused as refusal:
        return Looked(error=refusal.message)
    sizes = tuple(_size(constant, None) for constant in text.constants)
    return Looked(docstring=text.docstring, sizes=sizes, quirks=text.quirks, state="text")


def identity(problem: Problem | None, text: Looked) -> str:
    """What the size fields on the page belong to: they are drawn anew where this changes, and keep the focus else."""
    constants = ",".join(f"{size.name}={size.default}" for size in text.sizes)
    return f"{problem.slug if problem else ''}:{constants}"


def look_at(problem: Problem, overrides: problems.Overrides) -> Looked:
    """What is known of a stored problem at these sizes; asks a host to look where nothing is known yet."""
    text = look_at_text(problem.source)
    try:
        sizing = problems.sizing_for(problem, overrides)
    except Refused as refusal:
        return Looked(
            error=refusal.message, title=problem.title, docstring=text.docstring, sizes=_with(text.sizes, overrides)
        )
    facts = facts_of(sizing)
    return Looked(
        title=problem.title,
        docstring=problem.description or text.docstring,
        sizes=_with(text.sizes, overrides),
        quirks=facts.quirks if facts else text.quirks,
        state=sizing.state,
        waiting=sizing.state == SizingState.CHECKING,
        no_host=sizing.state == SizingState.UNCHECKED,
        refusal=sizing.refusal,
        facts=facts,
    )


def facts_of(sizing: Sizing) -> ProblemFacts | None:
    """The facts a host found, or None where there are none that can be read."""
    try:
        return from_plain(ProblemFacts, sizing.facts) if sizing.facts else None
    except BadPlain:
        return None


def tensors(facts: ProblemFacts) -> tuple[TensorFact, ...]:
    """Inputs, parameters and outputs, the order in which people think of them."""
    return facts.inputs + facts.parameters + facts.outputs


def _size(constant: Constant, value: object) -> Size:
    default = str(constant.value)
    return Size(constant.name, default if value is None else str(value), default, constant.line)


def _with(sizes: tuple[Size, ...], overrides: problems.Overrides) -> tuple[Size, ...]:
    return tuple(Size(s.name, str(overrides.get(s.name, s.value)), s.default, s.line) for s in sizes)


def device_choices(language: str) -> list[DeviceChoice]:
    """Every device that is not retired, those that can take the run first."""
    devices = Device.objects.select_related("host").filter(retired=False)
    live_runs = Run.objects.filter(device=OuterRef("pk"), state__in=LIVE_RUN_STATES).order_by().values("device")
    devices = devices.annotate(
        queued=jobs_in(JobState.WAITING, JobState.SENT),
        live_runs=Coalesce(Subquery(live_runs.annotate(count=Count("pk")).values("count")), 0),
    )
    choices = [_choice(device, language) for device in devices]
    return sorted(choices, key=lambda choice: bool(choice.why_not))


def _choice(device: Device, language: str) -> DeviceChoice:
    known = Language(language) if language in {word.value for word in Language} else Language.CPP
    report = device.host.facts
    live, queued = getattr(device, "live_runs", 0), getattr(device, "queued", 0)
    busy = (
        f"{live} run{'s' * (live != 1)} going on, {queued} job{'s' * (queued != 1)} waiting"
        if live or queued
        else "idle"
    )
    return DeviceChoice(
        name=str(device),
        model=device.model,
        why_not=why_not(device, known) or "",
        busy=busy,
        counters=report.counters if report else None,
        counters_detail=report.counters_detail if report else "",
        languages=", ".join(device.languages),
    )


@dataclass(frozen=True)
class LanguageChoice:
    """A language and whether any host judges it."""

    value: str
    title: str
    say: str
    offered: bool


def language_choices(devices: Sequence[DeviceChoice]) -> list[LanguageChoice]:
    """Every language; offered where a host judges it."""
    titles = {Language.CPP: "C++ / OpenMP", Language.CUDA: "CUDA C++", Language.TRITON: "Triton"}
    judged = {word for device in devices for word in device.languages.split(", ")}
    return [
        LanguageChoice(word.value, titles[word], "" if word in judged else "no host here judges it", word in judged)
        for word in Language
    ]


def file_of(version: Version) -> str:
    """What a version is called as a file."""
    return f"{version.run.problem.slug}-run{version.run_id}-v{version.number}.py"


def judged_seeds(run: Run) -> list[Version]:
    """What a run started from, as the versions it became; fewer than the run's seeds where some are not judged yet."""
    sources = {str(seed["source"]).strip() for seed in run.seeds}
    first = run.versions.filter(iteration=0).select_related("run__problem").order_by("number")
    return list({text: one for one in first if (text := one.source.strip()) in sources}.values())


def command(
    problem: Problem | None, order: LaunchOrder | None, seeds: Sequence[str] = (), *, builtin_best: bool = False
) -> str:
    """The same run headless, twins one after the other. The problem's file is downloaded from its page, `seeds` name those of
    what the run starts from; the built-in coder's best is found where the command runs.
    """
    if order is not None and order.twins:
        pair = (replace(order, twins=False, profile=profile) for profile in (True, False))
        return "\n".join(command(problem, one, seeds, builtin_best=builtin_best) for one in pair)
    words = ["python", "manage.py", "optimize", f"{problem.slug}.py" if problem else "PROBLEM.py"]
    if order is not None:
        words += ["--language", order.language, "--policy", order.policy, "--coder", order.coder]
        words += ["--iterations", str(order.iterations)]
        words += [] if order.profile else ["--no-profile"]
        words += ["--candidates", str(order.candidates)] if order.candidates != 1 else []
        words += ["--temperatures", ",".join(f"{one:g}" for one in order.temperatures)] if order.temperatures else []
        words += ["--goal", f"{order.goal:g}"] if order.goal else []
        words += ["--minutes", f"{order.seconds / 60:g}"] if order.seconds else []
        words += ["--money", f"{order.money_usd.normalize():f}"] if order.money_usd is not None else []
        words += ["--tokens", str(order.tokens)] if order.tokens else []
        for file in seeds:
            words += ["--seed", file]
        words += ["--builtin-best"] if builtin_best else []
        for name, value in sorted(order.overrides.items()):
            words += ["--set", f"{name}={value}"]
    return shlex.join(words)
