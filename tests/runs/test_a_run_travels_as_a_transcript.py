"""A finished run goes out as a file and comes in elsewhere: the same, marked, and whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from apps.agents.journal import MemoryJournal
from apps.agents.ports import Stopped
from apps.agents.replay import replay
from apps.agents.words import Seed
from apps.hosts.models import Device, Host
from apps.kernels.plain import from_plain, to_plain
from apps.people.models import Person
from apps.runs import assignments
from apps.runs.models import AdviceRow, Event, JournalEntry, Measurement, Problem, Run, RunState, Sizing, Version
from apps.runs.presentation import problems_page
from apps.runs.recorder import Recorder
from apps.runs.refusals import Refused, TranscriptRefused
from apps.runs.transcripts import exporting, importing, transcript
from tests.agents.doubles import Killed, World
from tests.runs.scripted import Worker, silence, take
from tests.runs.test_a_worker_dies_in_a_recorded_run import MortalJournal, eventful

pytestmark = pytest.mark.django_db
MakeRun = Callable[..., Run]
Done = Callable[..., Run]


@pytest.fixture
def done(make_run: MakeRun) -> Done:
    """A run that a scripted coder and device have done: seeds, repairs, duplicates, a device that comes back.

    Its rows are those of a worker, written without one's threads.
    """

    def do(world: World | None = None) -> Run:
        run = make_run(coder="scripted", candidates=2, seeds=[to_plain(Seed("correct 1.1", "ann"))])
        world, claim = world or eventful(), take(run)
        assignment = assignments.pinned(claim, whole(run))
        journal = MemoryJournal(world.listener())
        world.run(assignment, journal)
        recorder = Recorder(claim, run.device_id)
        began = timezone.now()
        at = {one.key: began + timedelta(seconds=place) for place, one in enumerate(journal.records, start=1)}
        for telling in replay(assignment, "scripted", journal.records).tellings:
            recorder.record(telling.step, telling.facts, at[telling.step])
        JournalEntry.objects.bulk_create(
            JournalEntry(run=run, position=place, key=one.key, inputs=one.inputs, result=one.result, at=at[one.key])
            for place, one in enumerate(journal.records, start=1)
        )
        run.refresh_from_db()
        return run

    return do


def whole(run: Run) -> Run:
    return Run.objects.select_related("problem", "sizing", "device__host").get(pk=run.pk)


def exported(run: Run) -> bytes:
    return transcript.written(exporting.transcript_of(run)).encode()


_EXPORTED: list[bytes] = []


@pytest.fixture
def data(done: Done) -> bytes:
    """Such a run's transcript, made once: what becomes of the file needs no run beside it."""
    if not _EXPORTED:
        _EXPORTED.append(exported(done()))
    return _EXPORTED[0]


def everything() -> list[int]:
    kinds = (Run, Problem, Sizing, Version, Measurement, AdviceRow, Event, JournalEntry, Host, Device)
    return [kind.objects.count() for kind in kinds]


def test_an_imported_run_is_the_same_and_says_that_it_is_imported(done: Done, person: Person) -> None:
    run = done()
    twin = importing.take_in(person, exported(run))

    told = importing.imported(twin)
    assert told is not None and told.exact and told.replayed == told.digest and told.run == run.pk
    assert exporting.told_by(twin) == exporting.told_by(run)
    assert exporting.versions_of(twin) == exporting.versions_of(run) and twin.versions.count() >= 4
    for column in ("state", "reason", "outcome", "speedup", "iteration", "tokens_in", "cost_usd", "cost_unknown"):
        assert getattr(twin, column) == getattr(run, column), column
    assert twin.best is not None and run.best is not None and twin.best.source == run.best.source
    assert twin.finished_at is not None and run.finished_at is not None
    assert abs((twin.finished_at - run.finished_at).total_seconds()) < 1, "it ended when it ended"
    assert list(twin.events.order_by("seq").values_list("kind", flat=True))[::len(twin.events.all()) - 1] == [
        "imported", "replayed",
    ]  # fmt: skip


def test_an_imported_run_is_exported_again_word_for_word(done: Done, person: Person) -> None:
    first = exporting.transcript_of(done())
    second = exporting.transcript_of(importing.take_in(person, transcript.written(first).encode()))
    assert second.digest == first.digest
    assert [step.record for step in second.steps] == [step.record for step in first.steps]


@pytest.mark.django_db(transaction=True)
def test_a_run_whose_worker_died_is_exported_as_an_undisturbed_one(done: Done, make_run: MakeRun) -> None:
    undisturbed = exporting.told_by(done())
    run = make_run(coder="scripted", candidates=2, seeds=[to_plain(Seed("correct 1.1", "ann"))])
    world, claim = eventful(), take(run)
    assignment = assignments.pinned(claim, whole(run))
    with pytest.raises(Killed):
        Worker(run, world, assignment).work(claim, MortalJournal, dies_at=9, where="after")
    silence(run)
    Worker(run, world, assignment).work()
    run.refresh_from_db()
    assert exporting.told_by(run) == undisturbed
    assert exporting.transcript_of(run).steps


def test_what_a_transcript_claims_counts_for_nobody(done: Done, person: Person, problem: Problem) -> None:
    run = done()
    best = problems_page.champions(problem)[0].measurement
    data = json.loads(exported(run))
    Run.objects.all().delete()
    twin = importing.take_in(person, json.dumps(data).encode())
    assert best.speedup == twin.speedup, "it shows what was measured elsewhere"
    assert problems_page.champions(problem) == [] and twin.device.retired
    assert problems_page.rows(Problem.objects.all())[0].best is None


def test_a_transcript_holds_no_secret(done: Done, monkeypatch: pytest.MonkeyPatch, person: Person) -> None:
    monkeypatch.setenv("SOME_SERVER_TOKEN", "correct 1.9 # abcdefgh")
    world = eventful()
    world.writes[2, 1] = "correct 1.9 # abcdefgh"
    world.lost_once = set()
    data = exported(done(world))
    assert b"abcdefgh" not in data
    monkeypatch.delenv("SOME_SERVER_TOKEN")
    assert importing.take_in(person, data).state == RunState.FINISHED, "and can be gone through again all the same"


def test_a_run_that_can_not_be_gone_through_again_is_not_exported(done: Done, make_run: MakeRun) -> None:
    with pytest.raises(Refused, match="still going on"):
        exporting.transcript_of(make_run(state=RunState.RUNNING))
    with pytest.raises(Refused, match="never began"):
        exporting.transcript_of(make_run(state=RunState.STOPPED))
    run = done()
    JournalEntry.objects.filter(run=run, key__endswith="keep.0").last().delete()  # type: ignore[union-attr]
    with pytest.raises(Refused, match="is not in the record"):
        exporting.transcript_of(run)


def test_a_stopped_run_travels_too(done: Done, person: Person) -> None:
    run = done(
        World({(1, 0): "correct 1.4", (1, 1): "correct 1.2", (2, 0): Stopped("Stopped by Ann."), (2, 1): "correct 1.3"})
    )
    assert run.state == RunState.STOPPED
    assert importing.take_in(person, exported(run)).reason == run.reason


def altered(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    def alter(data: bytes) -> bytes:
        plain = json.loads(data)
        change(plain)
        return json.dumps(plain).encode()

    return alter


def sealed(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    """Altered by somebody who also wrote the digest anew."""

    def alter(data: bytes) -> bytes:
        plain = json.loads(data)
        change(plain)
        events = [from_plain(transcript.EventTold, event) for event in plain["events"]]
        versions = [from_plain(transcript.VersionTold, version) for version in plain["versions"]]
        plain["digest"] = transcript.digest_of(events, versions)
        return json.dumps(plain).encode()

    return alter


def judged(plain: dict[str, Any], verdict: str = "") -> dict[str, Any]:
    results = [step["result"]["evaluation"] for step in plain["steps"] if ".verify." in step["key"]]
    return next(one for one in results if one is not None and verdict in one["verdict"])


HOSTILE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "no text": (lambda data: b"\xff\xfe\x00", "not UTF-8"),
    "no json": (lambda data: data[:-40], "no JSON"),
    "another json": (lambda data: b'{"a": 1}', "no transcript of a run"),
    "a list": (lambda data: b"[]", "no transcript of a run"),
    "nested": (lambda data: b"[" * 200_000, "nested more deeply"),
    "nested within": (lambda data: data.replace(b'"plan": null', b'"plan": ' + b"[" * 900 + b"]" * 900, 1), "nested|step"),
    "not a number": (altered(lambda plain: plain["run"].update(number=float("nan"))), "NaN is no number"),
    "an endless number": (lambda data: data.replace(b'"number": ', b'"number": 1e999, "x": ', 1), "no field|expected int"),
    "many digits": (lambda data: data.replace(b'"number": ', b'"number": ' + b"9" * 9000, 1), "number"),
    "another schema": (altered(lambda plain: plain.update(schema=2)), "schema 2"),
    "an unknown field": (altered(lambda plain: plain.update(extra=1)), "has no field 'extra'"),
    "altered events": (altered(lambda plain: plain["events"].pop()), "altered after its export"),
    "a billion candidates": (altered(lambda plain: plain["assignment"].update(candidates=10**9)), "candidates must lie"),
    "a step missing": (altered(lambda plain: plain["steps"].pop(4)), "is not in the record"),
    "a step too many": (
        altered(lambda plain: plain["steps"].append({**plain["steps"][-1], "key": "9.0.write.0"})), "without coming to it",
    ),
    "a step twice": (altered(lambda plain: plain["steps"].append(plain["steps"][-1])), "a step twice"),
    "another result": (altered(lambda plain: judged(plain).update(seconds=77.0)), "from something else"),
    "a result that is none": (altered(lambda plain: judged(plain).update(verdict="perfect")), "holds no"),
    "a time that is none": (altered(lambda plain: plain["steps"][0].update(at="yesterday")), "no time"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_with_the_reason_and_leaves_nothing(name: str, data: bytes, person: Person) -> None:
    alter, says = HOSTILE[name]
    data = alter(data)
    before = everything()
    with pytest.raises(TranscriptRefused, match=says):
        importing.take_in(person, data)
    assert everything() == before


def resealed(plain: dict[str, Any]) -> bytes:
    """Altered by somebody who went through it again and wrote all digests anew."""
    told = from_plain(transcript.Transcript, plain)
    gone = replay(told.assignment, told.run.coder, [step.record for step in told.steps], sealed=False)
    inputs = {record.key: record.inputs for record in gone.records}
    steps = tuple(replace(step, inputs=inputs[step.key]) for step in told.steps)
    return transcript.written(replace(told, steps=steps)).encode()


def test_a_problem_that_is_none_is_refused_and_not_run(data: bytes, person: Person) -> None:
    plain = json.loads(data)
    plain["assignment"]["problem"] = "import os\nos.system('touch /tmp/pwned')"
    before = everything()
    with pytest.raises(TranscriptRefused, match="problem can't be taken in"):
        importing.take_in(person, resealed(plain))
    assert everything() == before and not Path("/tmp/pwned").exists()


def test_an_infinite_speed_up_is_refused(data: bytes, person: Person) -> None:
    plain = json.loads(data)
    judged(plain, "correct")["timing"]["speedup"]["median"] = "nan"
    with pytest.raises(TranscriptRefused, match=r"has no number at VersionKept\.attempt\.evaluation\.timing\.speedup"):
        importing.take_in(person, resealed(plain))


def test_a_replay_that_tells_something_else_names_it(data: bytes, person: Person) -> None:
    said = sealed(lambda plain: plain["events"][3].update(text="something nobody said"))(data)
    run = importing.take_in(person, said)
    told = importing.imported(run)
    assert told is not None and not told.exact
    assert told.difference.startswith("Event 4 of the record is") and "they differ in text" in told.difference
    assert run.events.get(kind="replayed").level == "warning"


def test_a_file_that_is_too_large_is_not_even_read(
    signed_in: Client, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript, "LARGEST", 1000)
    upload = SimpleUploadedFile("run.json", b" " * 1001)
    answer = signed_in.post("/runs/import/", {"file": upload}, follow=True)
    assert b"a transcript has at most" in answer.content and Run.objects.count() == 0
    refused = signed_in.post("/api/v1/runs/import/", {"file": SimpleUploadedFile("run.json", b" " * 1001)})
    assert refused.status_code == 400 and refused.json()["field"] == "file"


def test_a_transcript_travels_by_page_rest_and_command(done: Done, signed_in: Client, tmp_path: Path) -> None:
    run = done()
    page = signed_in.get(f"/runs/{run.pk}/transcript.json")
    assert page["Content-Disposition"].endswith('.transcript.json"')
    rest = signed_in.get(f"/api/v1/runs/{run.pk}/transcript/")
    assert json.loads(page.content)["digest"] == json.loads(rest.content)["digest"]

    shown = signed_in.post("/runs/import/", {"file": SimpleUploadedFile("r.json", page.content)}, follow=True)
    assert b"replayed exactly" in shown.content and b"imported" in shown.content
    made = signed_in.post("/api/v1/runs/import/", {"file": SimpleUploadedFile("r.json", rest.content)})
    assert made.status_code == 201 and made.json()["imported"]["run"] == run.pk

    out, told = tmp_path / "run.json", StringIO()
    call_command("transcript", "export", str(run.pk), "--out", str(out), stdout=told)
    call_command("transcript", "replay", str(out), stdout=told)
    call_command("transcript", "import", str(out), stdout=told)
    assert "each as recorded" in told.getvalue() and "replayed exactly" in told.getvalue()
    out.write_text("{}")
    with pytest.raises(CommandError, match="no transcript"):
        call_command("transcript", "import", str(out))


def test_a_viewer_takes_nothing_in(data: bytes, signed_in: Client, person: Person) -> None:
    before = Run.objects.count()
    Person.objects.filter(pk=person.pk).update(role="viewer")
    assert signed_in.post("/runs/import/", {"file": SimpleUploadedFile("r.json", data)}).status_code == 403
    assert Run.objects.count() == before


def test_imported_text_is_shown_and_never_markup(done: Done, signed_in: Client, person: Person) -> None:
    world = eventful()
    world.writes[1, 1] = "correct 1.5 # <script>alert(1)</script>"
    world.writes[2, 0] = "correct 1.5 # <script>alert(1)</script>"
    run = importing.take_in(person, exported(done(world)))
    for address in (f"/runs/{run.pk}/", f"/runs/{run.pk}/?tab=code&v=3", f"/runs/{run.pk}/v3/", "/"):
        page = signed_in.get(address)
        assert page.status_code == 200 and b"<script>alert(1)" not in page.content
