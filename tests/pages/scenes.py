"""Scenes for pages: a soft-sign run as it goes, runs in each state, and a world with all of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

from django.utils import timezone

from apps.hosts.models import Fault, Job
from apps.kernels.evaluation import Tier
from apps.kernels.plain import to_plain
from apps.notices import webhooks
from apps.notices.models import Kind
from apps.notices.telling import tell
from apps.people import audit, members, tokens
from apps.people.models import Person, Role
from apps.runs.models import Draft, Measurement, Origin, Purpose, Run, RunState, Version
from tests.pages import evaluations, sources
from tests.pages.factories import (
    DeviceFactory,
    HostFactory,
    PersonFactory,
    ProblemFactory,
    RunFactory,
    SizingFactory,
    advise,
    keep,
    measure,
    say,
    speak,
)
from tests.pages.models import models


def softsign_story(run: Run, versions: int = 4) -> list[Version]:
    """The first versions of a soft-sign run with what the agents said about them."""
    best = evaluations
    told = (
        (best.correct(1.03, vector_bits=256), "A plain loop over the flat index.", "correct, 1.89×"),
        (best.wrong(), "Sixteen lanes at a time.", "incorrect: tail of 17"),
        (best.correct(0.611, vector_bits=256), "Parallel simd loop; the tail is the loop's own.", "correct, 3.19×"),
        (best.correct(0.431, Tier.QUICK), "Streaming stores, 512-bit vectors, blocks of 8 K.", "correct, 4.52×"),
    )
    say(run, "launched", f"Launched by {run.owner}: builtin, cpp on {run.device}, 8 iterations", agent="run")
    say(
        run,
        "reference_timed",
        "Reference 1.95 ms, torch.compile 0.68 ms (2.86×)",
        agent="profiler",
        data={"reference_ms": 1.95, "compiled_ms": 0.682},
    )
    kept: list[Version] = []
    for number, (evaluation, summary, word) in enumerate(told[:versions], 1):
        source = sources.SOFTSIGN_VERSIONS[number - 1]
        speak(
            run,
            "coder",
            number,
            f"writes v{number}",
            summary,
            f"{summary}\n\nThe whole is one pass: read x, write y. " * 3,
        )
        kept.append(
            keep(
                run,
                number,
                evaluation,
                source=source,
                summary=summary,
                parent=kept[-1] if kept else None,
                repair=int(number == 3),
            )
        )
        speak(
            run,
            "verifier",
            number,
            f"checks v{number}",
            f"Built in {evaluation.build.seconds} s. {evaluation.correctness.passed} of 12 checks passed.",
            "Largest error 6.0e-8 of scale, limit 1.2e-6; odd size, ties, subnormals.",
        )
        say(
            run,
            "version_kept",
            f"v{number} {word}",
            agent="verifier",
            iteration=number,
            level="info" if evaluation.speedup else "warning",
            data={"number": number},
        )
        if evaluation.speedup:
            speak(
                run,
                "profiler",
                number,
                f"times v{number}",
                f"30 pairs, {evaluation.speedup:.2f}×.",
                "Bandwidth by bytes over time; hot loop read from the disassembly.",
                1.2,
            )
            speak(
                run,
                "conductor",
                number,
                "reasons",
                f"v{number} reaches {evaluation.profile.metrics[2].value:.0%} of the memory roof: the traffic is the problem.",
                "No stalls in the loop body. Stores fetch their lines first.",
                0.1,
            )
    return kept


def settle(run: Run, kept: list[Version]) -> None:
    """The run's own columns from its versions, as the recorder keeps them."""
    correct = [v for v in kept if v.measurement and v.measurement.speedup]
    top = max(correct, key=lambda v: cast("float", cast("Measurement", v.measurement).speedup), default=None)
    run.best = top
    if top is not None and top.measurement is not None:
        run.speedup, run.speedup_low, run.speedup_high = (
            top.measurement.speedup,
            top.measurement.speedup_low,
            top.measurement.speedup_high,
        )
    run.compiled_speedup = 2.86
    run.iteration = len(kept)
    run.save()


def running(**more: Any) -> Run:
    """A run in its fourth iteration: four versions, three advices, an open draft."""
    run = RunFactory.create(
        state=RunState.RUNNING,
        started_at=timezone.now() - timedelta(seconds=102),
        claim_expires_at=timezone.now() + timedelta(hours=1),
        attempt=1,
        doing="Profiler times v4",
        **more,
    )
    settle(run, softsign_story(run))
    advise(run, 1, 1, True, 1.5)
    advise(run, 2, 2, False, 1.02)
    advise(run, 3, 3, True, 1.42)
    say(run, "log", "host this-machine: jail up in 31 ms", level="debug")
    say(
        run,
        "step_began",
        "times v4 in full",
        agent="profiler",
        step="4.0.profiler.1",
        iteration=4,
        data={"title": "times v4 in full"},
    )
    Draft.objects.create(
        run=run,
        step="4.0.profiler.1",
        agent="profiler",
        iteration=4,
        text="100 pairs, 4.52× [4.41, 4.63]. Bandwidth 58 GB/s of 65. Reading the hot loop",
    )
    return run


def finished(**more: Any) -> Run:
    """A run that ended with a faster kernel, judged in full."""
    start = timezone.now() - timedelta(hours=3)
    run = RunFactory.create(
        state=RunState.FINISHED, started_at=start, finished_at=start + timedelta(seconds=214), attempt=1, **more
    )
    kept = softsign_story(run)
    measure(kept[3], evaluations.correct(0.431, Tier.FULL), Purpose.FINAL)
    settle(run, kept)
    advise(run, 1, 1, True, 1.5)
    advise(run, 3, 3, True, 1.42)
    run.result, run.outcome, run.iterations, run.reason = (
        kept[3],
        "faster",
        8,
        "v4 reaches 89 % of the memory roof: nothing more is to be gained.",
    )
    say(run, "run_ended", "Finished: v4 is 4.52× faster", agent="run", data={"result": 4, "outcome": "faster"})
    run.save()
    return run


def twinned(run: Run, **more: Any) -> Run:
    """The same run with the profile off, as its twin."""
    start = run.started_at
    assert start is not None
    twin = RunFactory.create(
        sizing=run.sizing,
        device=run.device,
        owner=run.owner,
        profile=False,
        state=RunState.FINISHED,
        started_at=start,
        finished_at=start + timedelta(seconds=251),
        **more,
    )
    kept = softsign_story(twin, 3)
    settle(twin, kept)
    run.twin = twin
    run.save(update_fields=["twin"])
    return twin


def failed(**more: Any) -> Run:
    """A run the coder could write nothing for."""
    start = timezone.now() - timedelta(days=1)
    run = RunFactory.create(
        state=RunState.FAILED,
        started_at=start,
        finished_at=start + timedelta(seconds=4),
        speedup=1.0,
        reason="The built-in coder can't write aten.convolution.default yet.",
        **more,
    )
    say(run, "run_ended", run.reason, agent="run", level="error")
    return run


def a_team(admin: Person, colleague: Person, run: Run) -> None:
    """What settings and the bell show: somebody invited, tokens, a webhook, notices, and the audit log all that leaves."""
    with audit.coming_from("192.0.2.17", "page"):
        members.invite(admin, "vera", Role.VIEWER, full_name="Vera Lind")
        tokens.make(admin, "nightly-suite", ["launch"], 90)
        old, _ = tokens.make(admin, "old-laptop", [], 30)
        tokens.revoke(old, admin)
        webhooks.add(admin, "http://10.4.0.9:8080/pragma")
        webhooks.add(colleague, "http://10.4.0.10/hook")
    tell(
        Kind.HOST_LOST,
        [admin],
        "Host epyc-02 is lost",
        text="Nothing has been heard of its station.",
        link="/hosts/epyc-02/",
    )
    tell(Kind.RUN_ENDED, [admin], f"{run}, {run.problem}: v4 is 4.52× faster", link=run.get_absolute_url())


def world() -> dict[str, Any]:
    """Everything pages show at once: two hosts, three problems, runs in every state."""
    person = PersonFactory.create(username="ada", role=Role.ADMIN)
    colleague = PersonFactory.create(username="noor", first_name="Noor", last_name="Hale")
    device = DeviceFactory.create()
    other = DeviceFactory.create(
        host=HostFactory.create(
            name="epyc-02",
            enabled=False,
            seen_at=timezone.now() - timedelta(minutes=7),
            report=to_plain(evaluations.host_report(True)),
        )
    )
    sizing = SizingFactory.create()
    norm = ProblemFactory.create(
        title="Layer norm",
        slug="layer-norm",
        source=sources.LAYER_NORM,
        category="norm",
        level=1,
        description="Layer norm over the last axis.",
    )
    norm_sizing = SizingFactory.create(problem=norm)
    ProblemFactory.create(
        title="Two hundred gigabytes",
        slug="two-hundred-gigabytes",
        source=sources.SOFTSIGN + "\n# larger\n",
        category="element-wise",
        origin=Origin.PASTED,
    )
    shared = {"sizing": sizing, "device": device}
    done = finished(owner=colleague, **shared)
    failed(owner=person, sizing=norm_sizing, device=device)
    RunFactory.create(
        owner=colleague,
        state=RunState.STOPPED,
        sizing=sizing,
        device=other,
        speedup=1.0,
        outcome="within_noise",
        profile=False,
        started_at=timezone.now() - timedelta(hours=5),
        finished_at=timezone.now() - timedelta(hours=4.9),
        reason="Stopped by Noor Hale.",
    )
    RunFactory.create(
        owner=person,
        state=RunState.RUNNING,
        sizing=norm_sizing,
        device=device,
        started_at=timezone.now() - timedelta(minutes=9),
        claim_expires_at=timezone.now() - timedelta(minutes=2),
        iteration=2,
        attempt=1,
    )
    RunFactory.create(owner=person, sizing=norm_sizing, device=device)
    live = running(owner=person, **shared)
    models(done, person, colleague)
    Job.objects.create(
        key="run:1:4",
        kind="evaluate",
        device=device,
        state="running",
        origin=f"run {live.pk} v4",
        request={},
        stage="time",
        message="pair 41 of about 100",
        fraction=0.41,
        started_at=timezone.now() - timedelta(seconds=12),
        sent_at=timezone.now() - timedelta(seconds=13),
        heard_at=timezone.now(),
    )
    Job.objects.create(
        key="run:2:1",
        kind="inspect",
        device=device,
        state="waiting",
        origin="problem layer-norm",
        request={},
        priority=5,
    )
    a_team(person, colleague, live)
    Fault.objects.create(
        host=other.host,
        device=other,
        what="Silent for 30 s while judging run 3 v2; the job went back to the queue.",
        at=timezone.now() - timedelta(minutes=6),
    )
    return {
        "person": person,
        "colleague": colleague,
        "live": live,
        "done": done,
        "device": device,
        "other": other,
        "problem": sizing.problem,
    }
