"""What leaves PRAGMA: one file that runs with torch and a compiler alone, a bundle, and the small client."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.metadata
import importlib.util
import io
import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.people import tokens
from apps.people.models import Person
from apps.reviews.export.contents import ContentChanged, Contents, contents_of
from apps.reviews.export.fetching import client_text, one_liner
from apps.reviews.export.standalone import standalone
from apps.reviews.models import AcceptedKernel
from apps.runs.models import Problem, Version
from tests.conftest import SOFTSIGN
from tests.pages import sources
from tests.reviews.conftest import Team, signed_in_as

SELFTEST = Path(__file__).parents[2] / "apps" / "kernels" / "selftest" / "candidates"
EVIL = 'soft"""\n\r\u2028import os; os.abort() # \x00\\'
DRIVER = """
import contextlib, io, json, runpy, sys
said = []
for path in sys.argv[1:]:
    out = io.StringIO()
    sys.argv = [path, "--json", "--seconds", "0.05", "--trials", "2"]
    try:
        with contextlib.redirect_stdout(out):
            runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        said.append([end.code, json.loads(out.getvalue())])
sys.path.insert(0, path.rpartition("/")[0])
module = __import__(path.rpartition("/")[2].removesuffix(".py"))
from importlib.util import find_spec
others = [name for name in ("django", "celery", "apps", "pytest", "pragma_web") if find_spec(name)]
print(json.dumps({"said": said, "named": module.ModelNew.__name__, "others": others}))
"""


def contents(source: str, **changes: Any) -> Contents:
    digest = hashlib.sha256(source.encode()).hexdigest()
    made = Contents(
        stem=f"softsign_cpp_{digest[:8]}", title=EVIL, source=source, digest=digest, problem_source=SOFTSIGN,
        overrides={"BATCH": 4}, language="cpp", device="here/cpu", device_model=EVIL, speedup="3.19×", tolerance=1.2e-6,
        accepted_by=EVIL, accepted_at=datetime(2026, 1, 2, tzinfo=UTC), address="http://here/kernels/1/" + EVIL,
        environment={"torch": EVIL},
    )  # fmt: skip
    return replace(made, **changes)


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that sees torch with what torch itself requires, and nothing else of this installation."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed here")
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    only = folder / "only-torch"
    only.mkdir()
    for distribution in required("torch"):
        listed = (distribution.read_text("RECORD") or "").splitlines()
        for name in {line.split(",")[0].split("/")[0] for line in listed} - {"..", "__pycache__"}:
            if not (only / name).exists():
                (only / name).symlink_to(Path(str(distribution.locate_file(name))).resolve())
    site = next((folder / "venv").glob("lib/python*/site-packages"))
    (site / "torch-only.pth").write_text(f"{only}\n")
    return folder / "venv" / "bin" / "python"


def required(name: str, seen: set[str] | None = None) -> Iterator[importlib.metadata.Distribution]:
    seen = set() if seen is None else seen
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        found = importlib.metadata.distribution(name)
        seen.add(name)
        yield found
        for line in found.requires or ():
            other = re.split(r"[\s;<>=!~\[(]", line, maxsplit=1)[0]
            if "extra ==" not in line and other not in seen:
                yield from required(other, seen)


def test_the_file_runs_elsewhere_with_torch_and_a_compiler_alone(bare_python: Path, tmp_path: Path) -> None:
    """Right and wrong kernels, under a name and notes that would like to be code, in a directory of their own."""
    good = standalone(contents(sources.SOFTSIGN_VERSIONS[2]))
    bad = standalone(contents(sources.SOFTSIGN_VERSIONS[2].replace("1.0f", "1.5f")))
    for file in (good, bad):
        (tmp_path / file.name).write_text(file.text, encoding="utf-8")
    done = subprocess.run(
        [bare_python, "-I", "-c", DRIVER, tmp_path / good.name, tmp_path / bad.name],
        cwd=tmp_path, env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path)}, capture_output=True, text=True,
        timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert (told["named"], told["others"]) == ("ModelNew", [])
    (right, first), (wrong, second) = told["said"]
    assert (right, first["correct"], first["trials"]) == (0, True, 2)
    assert first["error"] < 1e-6
    assert first["speedup"] > 0
    assert first["accepted"]["problem"] == EVIL
    assert (wrong, second["correct"]) == (1, False)


AFFINE = """
import torch
from torch import nn

BATCH = 16


class Model(nn.Module):
    def __init__(self, features: int):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))
        self.norm = nn.BatchNorm1d(features)

    def forward(self, x):
        y = self.norm(x) * self.weight
        return y, y.argmax(dim=1), {"sums": y.sum(dim=1)}


def get_inputs():
    return [torch.randn(BATCH, 33)]


def get_init_inputs():
    return [33]
"""
PREPARED = """
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(features))
        self.norm = nn.BatchNorm1d(features)
        self.scale = None

    def prepare(self):
        norm = self.norm
        mean, var = norm.running_mean, norm.running_var
        if self.training:
            mean, var = torch.zeros(1), torch.ones(1)
        self.scale = (norm.weight * self.weight / torch.sqrt(var + norm.eps)).detach()
        self.shift = (norm.bias * self.weight).detach() - self.scale * mean

    def forward(self, x):
        if self.training:
            x = (x - x.mean(0)) / torch.sqrt(x.var(0, unbiased=False) + self.norm.eps)
        y = x * self.scale + self.shift
        return y, y.argmax(dim=1), {"sums": y.sum(dim=1)}
"""
SWISH = """
import torch
from torch import nn

BATCH = 16


class Model(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


def get_inputs():
    return [torch.randn(BATCH, 64)]


def get_init_inputs():
    return []
"""


@pytest.mark.timeout(500)
def test_weights_preparation_several_outputs_and_load_inline_elsewhere(bare_python: Path, tmp_path: Path) -> None:
    inline = (SELFTEST / "honest" / "load_inline.py").read_text()
    prepared = standalone(contents(PREPARED, problem_source=AFFINE, tolerance=1e-5, stem="prepared"))
    unprepared = standalone(
        contents(PREPARED.replace("var + norm.eps", "var + 1.0"), problem_source=AFFINE, stem="wrong")
    )
    built = standalone(contents(inline, problem_source=SWISH, stem="inline"))
    assert "# Needs torch, a compiler and ninja; nothing of PRAGMA." in built.text
    assert "# Needs torch and a compiler; nothing of PRAGMA." in prepared.text
    for file in (prepared, unprepared, built):
        (tmp_path / file.name).write_text(file.text, encoding="utf-8")
    done = subprocess.run(
        [bare_python, "-I", "-c", DRIVER, *(tmp_path / one.name for one in (prepared, unprepared, built))],
        cwd=tmp_path, env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path)}, capture_output=True, text=True,
        timeout=450, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert [(code, said["correct"]) for code, said in told["said"]] == [(0, True), (1, False), (0, True)]
    assert told["others"] == []


def test_no_name_becomes_code(tmp_path: Path) -> None:
    source = 'from __future__ import annotations\n"""a text"""\n\nclass ModelNew:\n    pass'
    text = standalone(contents(source)).text
    tree = ast.parse(text)
    calls = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert "abort" not in {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert "_pragma_main" in calls
    assert source in text
    assert "BATCH = 4\\n" in text


@pytest.fixture
def hostile(kernel: AcceptedKernel) -> AcceptedKernel:
    """The accepted kernel of a problem called something nasty."""
    Problem.objects.filter(pk=kernel.problem_id).update(title='../../etc/passwd\n"; rm -rf / [x](javascript:alert(1))')
    Person.objects.filter(pk=kernel.by_id).update(first_name='<img src=x> "quoted"\n')
    return AcceptedKernel.objects.get(pk=kernel.pk)


def test_the_bundle_holds_what_an_engineer_elsewhere_needs(team: Team, hostile: AcceptedKernel) -> None:
    answer = signed_in_as(team.viewer).get(f"/kernels/{hostile.pk}/bundle.zip")
    assert answer.status_code == 200
    assert re.fullmatch(r'attachment; filename="[a-z0-9_-]+\.zip"', answer["Content-Disposition"])
    packed = zipfile.ZipFile(io.BytesIO(answer.content))
    folder = answer["Content-Disposition"].split('"')[1].removesuffix(".zip")
    files = {name.removeprefix(f"{folder}/"): packed.read(name) for name in packed.namelist()}
    assert all(name.startswith(f"{folder}/") and ".." not in name for name in packed.namelist())
    assert {"kernel.py", "candidate.py", "problem.py", "evaluation.json", "profile.json", "environment.json"} < set(
        files
    )
    assert hashlib.sha256(files["candidate.py"]).hexdigest() == hostile.digest
    for line in files["SHA256SUMS"].decode().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256(files[name]).hexdigest() == digest
    decided = json.loads(files["decision.json"])
    assert [one["kind"] for one in decided["decisions"]] == ["proposed", "asked", "approved", "accepted"]
    assert json.loads(files["evaluation.json"])["timing"]["outcome"] == "faster"
    assert "no transcript" in files["transcript.txt"].decode()
    readme = files["README.md"].decode()
    assert "](javascript" not in readme
    assert readme.splitlines()[0].startswith("# ../../etc/passwd ")


def test_no_key_of_this_installation_leaves_it(
    team: Team, kernel: AcceptedKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-0123456789abcdef")
    row = kernel.measurement
    row.evaluation["build"] = {**row.evaluation["build"], "log": "warning: sk-0123456789abcdef is unused"}
    type(row).objects.filter(pk=row.pk).update(evaluation=row.evaluation)
    answer = signed_in_as(team.viewer).get(f"/kernels/{kernel.pk}/bundle.zip")
    packed = zipfile.ZipFile(io.BytesIO(answer.content))
    texts = {name.rpartition("/")[2]: packed.read(name).decode() for name in packed.namelist()}
    assert "warning: *** is unused" in texts["evaluation.json"]
    for person in (team.engineer, team.reviewer):
        assert not [name for name, text in texts.items() if person.email and person.email in text]
    assert '"asked": [' not in texts["decision.json"]


def test_the_same_record_gives_the_same_bundle(team: Team, kernel: AcceptedKernel) -> None:
    client = signed_in_as(team.viewer)
    first, second = (client.get(f"/kernels/{kernel.pk}/bundle.zip").content for _ in range(2))
    assert first == second


def test_a_source_that_is_not_what_was_accepted_is_not_handed_out(team: Team, kernel: AcceptedKernel) -> None:
    Version.objects.filter(pk=kernel.version_id).update(source="# something else\n")
    with pytest.raises(ContentChanged):
        contents_of(AcceptedKernel.objects.get(pk=kernel.pk), "")
    client = signed_in_as(team.viewer)
    for name in ("file.py", "bundle.zip"):
        page = client.get(f"/kernels/{kernel.pk}/{name}", follow=True).content.decode()
        assert "is not the one that was accepted" in page
    assert client.get(f"/api/v1/kernels/{kernel.pk}/").status_code == 409


def test_the_file_by_page_and_the_kernel_by_rest(team: Team, hostile: AcceptedKernel) -> None:
    client = signed_in_as(team.viewer)
    page = client.get(f"/kernels/{hostile.pk}/file.py")
    assert re.fullmatch(r'attachment; filename="[a-z0-9_]+\.py"', page["Content-Disposition"])
    told = client.get(f"/api/v1/kernels/{hostile.pk}/").json()
    assert told["file"] == page.content.decode()
    assert hashlib.sha256(told["source"].encode()).hexdigest() == told["digest"] == hostile.digest
    wanted = {"problem": "soft-sign", "device": "test  CPU"}
    assert client.get("/api/v1/kernels/in-use/", wanted).json()["id"] == hostile.pk
    missing = client.get("/api/v1/kernels/in-use/", {**wanted, "device": "Another CPU"})
    assert missing.status_code == 404
    assert "It has one for here/cpu (Test CPU)" in missing.json()["message"]
    assert Client().get("/api/v1/kernels/in-use/", wanted).status_code in (401, 403)


def test_the_small_client_fetches_checks_and_pins(
    team: Team, kernel: AcceptedKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client's own code; its requests are answered by this process."""
    fetched = load_client(team.viewer, monkeypatch)
    found = fetched["find"]("soft-sign", device="here/cpu", token="t")
    assert found["digest"] == kernel.digest
    monkeypatch.setitem(fetched, "device_model", lambda language: "Test CPU")
    assert fetched["find"]("soft-sign", token="t")["digest"] == kernel.digest
    with pytest.raises(fetched["NotFetched"], match="no accepted kernel in cpp for 'other'"):
        fetched["find"]("soft-sign", device="other", token="t")
    with pytest.raises(fetched["NotFetched"], match="not the one pinned"):
        fetched["fetch"]("soft-sign", sha256="0" * 64, device="here/cpu", token="t")
    monkeypatch.setattr(
        sys, "argv", ["pragma_kernel.py", "soft-sign", "--device", "here/cpu", "--out", str(tmp_path / "k.py")]
    )
    assert fetched["main"]() == 0
    assert kernel.version.source in (tmp_path / "k.py").read_text()


@pytest.mark.parametrize("harm", ["source", "file"])
def test_the_small_client_refuses_what_was_tampered_with(
    team: Team, kernel: AcceptedKernel, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    fetched = load_client(team.viewer, monkeypatch, harm)
    with pytest.raises(fetched["NotFetched"], match="content hash" if harm == "source" else "damaged"):
        fetched["find"]("soft-sign", device="here/cpu")


def load_client(person: Person, monkeypatch: pytest.MonkeyPatch, harm: str = "") -> dict[str, Any]:
    """The client as a namespace; what it opens is asked of the product by way of Django's own test client."""

    def opened(request: Any, timeout: float) -> io.BytesIO:
        address = request.full_url.removeprefix("http://testserver")
        answer = signed_in_as(person).get(address)
        if answer.status_code != 200:
            raise urllib.error.HTTPError(address, answer.status_code, "", {}, io.BytesIO(answer.content))  # type: ignore[arg-type]
        told = answer.json()
        if harm:
            told[harm] += "# and a little more\n"
        return io.BytesIO(json.dumps(told).encode())

    monkeypatch.setattr(urllib.request, "urlopen", opened)
    space: dict[str, Any] = {"__name__": "pragma_kernel"}
    exec(compile(client_text("http://testserver"), "pragma_kernel.py", "exec"), space)
    return space


def test_the_line_on_the_page_fetches_this_content_and_no_other(
    team: Team, kernel: AcceptedKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kernel.digest in signed_in_as(team.viewer).get(kernel.get_absolute_url()).content.decode()
    _, secret = tokens.make(team.viewer, "scripts", [], 30)
    asked: list[str] = []
    line = one_liner(kernel, "http://testserver")
    code = line.removeprefix('python -c "').removesuffix('"')

    def opened(request: Any) -> io.BytesIO:
        asked.append(request.get_header("Authorization"))
        answer = Client().get(request.full_url.removeprefix("http://testserver"), headers={"authorization": asked[-1]})
        return io.BytesIO(answer.content)

    monkeypatch.setattr(urllib.request, "urlopen", opened)
    monkeypatch.setenv("PRAGMA_TOKEN", secret)
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    assert asked == [f"Bearer {secret}"]
    assert kernel.version.source in (tmp_path / "soft_sign_kernel.py").read_text()
    with pytest.raises(AssertionError):
        exec(code.replace(kernel.digest, "0" * 64), {})
