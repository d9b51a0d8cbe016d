"""The built-in coder runs for real; what it found is accepted, and leaves as a bundle from which everything can be done
again: the run replays, the kernel runs, its evidence is whole."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import zipfile
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from apps.kernels.evaluation import Evaluation
from apps.kernels.plain import from_plain
from apps.people.models import Person, Role
from apps.reviews import accepting, proposing, votes
from apps.reviews.export.bundle import bundle
from apps.reviews.models import AcceptedKernel
from apps.runs.models import Run
from apps.runs.transcripts import importing
from tests.conftest import PASSWORD

pytestmark = [pytest.mark.judge, pytest.mark.django_db(transaction=True), pytest.mark.timeout(900)]

# Torch makes the whole product; a kernel scales rows. However busy the machine is, that is seen.
PROBLEM = Path(__file__).parents[2] / "problems" / "product" / "diagonal.py"
PARTS = {
    "kernel.py", "candidate.py", "problem.py", "evaluation.json", "profile.json", "environment.json", "decision.json",
    "transcript.json", "README.md", "SHA256SUMS",
}  # fmt: skip


def accepted(run: Run) -> AcceptedKernel:
    ann = Person.objects.create_user("ann", password=PASSWORD, role=Role.ENGINEER, email="ann@private.example")
    bo = Person.objects.create_user("bo", password=PASSWORD, role=Role.REVIEWER, email="bo@private.example")
    assert run.result is not None
    proposal = proposing.propose(ann, run.result, note="The product is not made.", asked=[bo])
    votes.vote(proposal.pk, bo, "approve", proposal.digest, "Right.")
    return accepting.accept(proposal.pk, bo, proposal.digest)


def test_each_part_is_there_whole_and_can_be_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-0123456789abcdef")
    said = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("optimize", str(PROBLEM), "--iterations", "1", "--set", "columns=512", stdout=said, stderr=said)
    assert ended.value.code == 0, said.getvalue()
    run = Run.objects.get()
    kernel = accepted(run)

    packed = zipfile.ZipFile(io.BytesIO(bundle(kernel, "http://here/kernels/1/").content))
    files = {name.rpartition("/")[2]: packed.read(name) for name in packed.namelist()}
    assert set(files) == PARTS
    sums = dict(reversed(line.split("  ")) for line in files["SHA256SUMS"].decode().splitlines())
    assert sums == {name: hashlib.sha256(data).hexdigest() for name, data in files.items() if name != "SHA256SUMS"}

    evaluation = from_plain(Evaluation, json.loads(files["evaluation.json"]))
    assert (evaluation.verdict, evaluation.tier) == ("correct", "full")
    assert evaluation.timing is not None and evaluation.timing.outcome == "faster"
    profile = json.loads(files["profile.json"])
    assert profile["metrics"] and all(one["source"] and one["unit"] for one in profile["metrics"])
    environment = json.loads(files["environment.json"])
    assert {"torch", "processor", "python"} <= set(environment["host"]) and environment["evaluation"]["torch"]
    assert [one["kind"] for one in json.loads(files["decision.json"])["decisions"]][-1] == "accepted"
    assert b"columns = 512" in files["problem.py"]

    told = b"\n".join(files.values())
    secrets = (
        "@private.example",
        "sk-0123456789abcdef",
        "pbkdf2",
        str(Path.home()) + "/",
        os.environ.get("PRAGMA_KEY"),
    )
    assert not [one for one in secrets if one and len(one) > 2 and one.encode() in told]

    twin = importing.take_in(kernel.by, files["transcript.json"])
    imported = importing.imported(twin)
    assert imported is not None and imported.exact, imported
    assert twin.result is not None and twin.result.source.encode() == files["candidate.py"]
    assert twin.pk != run.pk and [v.digest for v in twin.versions.all()] == [v.digest for v in run.versions.all()]

    folder = tmp_path / "elsewhere"
    packed.extractall(folder)
    command = [sys.executable, "-I", "kernel.py", "--json", "--seconds", "0", "--trials", "2"]
    place = next(folder.iterdir())
    clean = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=place, env=clean, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout)["correct"] is True
