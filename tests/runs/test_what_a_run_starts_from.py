"""A run starts from nothing, from a person's own candidate, from a version that is there, or from the built-in coder's best."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from apps.agents.words import Seed
from apps.hosts.models import Device
from apps.kernels.evaluation import Language, Policy
from apps.people.models import Person
from apps.runs import seeding
from apps.runs.models import Measurement, Problem, Run, Version
from apps.runs.refusals import LaunchRefused
from tests.pages import scenes
from tests.pages.test_launching_by_form import FORM

pytestmark = pytest.mark.django_db
CPP = (Language.CPP, Policy.LIBRARY)
CANDIDATE = '''
import torch
from torch import nn

SOURCE = r"""
extern "C" void f(const float* x, float* y, long n) { for (long i = 0; i < n; ++i) y[i] = x[i]; }
"""


class ModelNew(nn.Module):
    def forward(self, x):
        return x
'''


def test_a_persons_own_candidate_is_taken_from_text_or_file(person: Person) -> None:
    assert seeding.own(person, CANDIDATE, *CPP) == Seed(CANDIDATE, str(person))
    assert seeding.own(person, b"\xef\xbb\xbf" + CANDIDATE.encode(), *CPP).source == CANDIDATE


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "Paste the candidate"),
        ("x = 1", "no class ModelNew"),
        ("class ModelNew(:", "no candidate"),
        (b"\xff\xfe", "not UTF-8"),
        ("\x00", "NUL"),
        ("#" * (seeding.LARGEST + 1), "bytes"),
        ("(" * 5000, "no candidate|nested"),
    ],
)
def test_what_is_no_candidate_is_refused_with_the_reason(person: Person, text: Any, says: str) -> None:
    with pytest.raises(LaunchRefused, match=says) as refused:
        seeding.own(person, text, *CPP)
    assert refused.value.field == seeding.FIELD


def test_a_candidate_in_another_language_is_refused(person: Person) -> None:
    with pytest.raises(LaunchRefused, match=r"kernel is in cpp, the run's language is triton"):
        seeding.own(person, CANDIDATE, Language.TRITON, Policy.LIBRARY)


def kept(run: Run, number: int, speedup: float, **columns: Any) -> Version:
    given = {"author": "builtin", "source": f"v{number}", "iteration": number, "digest": "", **columns}
    version = Version.objects.create(run=run, number=number, **given)
    version.measurement = Measurement.objects.create(
        version=version, device=run.device, tier="quick", verdict="correct", speedup=speedup, evaluation={}
    )
    version.save()
    return version


def test_the_built_in_coders_best_is_the_fastest_it_wrote_here(
    make_run: Callable[..., Run], problem: Problem, device: Device
) -> None:
    run = make_run()
    kept(run, 1, 1.5)
    kept(run, 2, 2.5, plan={"moves": ["x"]})
    kept(run, 3, 9.0, author="a model")
    kept(make_run(imported={"run": 1}), 1, 50.0)
    assert seeding.builtin_best(problem.sizings.get(), device, *CPP) == Seed("v2", "builtin", {"moves": ["x"]})


def test_where_it_wrote_none_or_can_not_the_reason_is_told(problem: Problem, device: Device) -> None:
    with pytest.raises(LaunchRefused, match="The built-in coder can't write this kernel"):
        seeding.builtin_best(problem.sizings.get(), device, *CPP)


def test_the_same_seed_twice_is_one_and_too_many_are_refused() -> None:
    assert seeding.distinct([Seed("a", "x"), Seed("a\n", "y"), Seed("b", "x")]) == (Seed("a\n", "y"), Seed("b", "x"))
    with pytest.raises(LaunchRefused, match="at most"):
        seeding.distinct([Seed(str(n), "x") for n in range(9)])


def test_launch_takes_both_and_keeps_what_was_typed_where_it_refuses(db: None) -> None:
    world = scenes.world()
    client = Client()
    client.force_login(world["person"])
    form = FORM | {"builtin_best": "on", "own": CANDIDATE}
    assert client.post("/launch/", form).status_code == 302
    run = Run.objects.latest("id")
    best = world["done"].versions.get(number=4).source
    assert [(seed["author"], seed["source"]) for seed in run.seeds] == [("Ada Moss", CANDIDATE), ("builtin", best)]

    before = Run.objects.count()
    refused = client.post("/launch/", form | {"own": "class Mine: pass  # kept"})
    content = refused.content.decode()
    assert refused.status_code == 422 and Run.objects.count() == before
    assert "There is no class ModelNew" in content and "class Mine: pass  # kept" in content
    upload = SimpleUploadedFile("mine.py", CANDIDATE.encode())
    assert client.post("/launch/", FORM | {"own_file": upload}).status_code == 302
    assert [seed["source"] for seed in Run.objects.latest("id").seeds] == [CANDIDATE]


def test_a_run_copied_to_be_changed_starts_from_what_it_started_from(db: None) -> None:
    world = scenes.world()
    client = Client()
    client.force_login(world["person"])
    client.post("/launch/", FORM | {"own": CANDIDATE})
    first = Run.objects.latest("id")
    page = client.get(f"/launch/?copy={first.pk}").content.decode()
    assert f'name="seeds_like" value="{first.pk}" checked' in page

    assert client.post("/launch/", FORM | {"seeds_like": str(first.pk)}).status_code == 302
    again = Run.objects.latest("id")
    assert again.pk != first.pk and again.seeds == first.seeds
    gone = client.post("/launch/", FORM | {"seeds_like": "987654"})
    assert gone.status_code == 422 and "There is no run 987654 any more" in gone.content.decode()
