"""Launching: bad input says what to do and creates nothing; a problem nobody has looked at waits; settings are copied."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from apps.runs.models import Problem, Run, Sizing
from tests.pages import sources

FORM = {
    "how": "choose",
    "problem": "softsign",
    "device": "this-machine/cpu",
    "language": "cpp",
    "policy": "library",
    "coder": "builtin",
    "iterations": "4",
    "candidates": "1",
    "profile": "on",
    "minutes": "5",
}


def test_a_run_is_launched_as_ordered(ada: Client, world: dict[str, Any]) -> None:
    answer = ada.post("/launch/", FORM | {"notes": "for the review"})
    run = Run.objects.latest("id")
    assert (answer.status_code, answer["Location"]) == (302, f"/runs/{run.pk}/")
    assert (run.iterations, run.seconds_limit, run.notes, run.owner) == (4, 300.0, "for the review", world["person"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"iterations": "0"}, "greater than or equal to 1"),
        ({"device": "epyc-02/cpu"}, "is offline"),
        ({"device": "nowhere/cpu"}, "There is no device"),
        ({"device": ""}, "Choose a host"),
        ({"language": "cobol"}, "Select a valid choice"),
        ({"coder": "gpt-9"}, "builtin"),
        ({"problem": "gone"}, "There is no such problem any more"),
        ({"problem": ""}, "Choose a problem, or paste one"),
        ({"set-BATCH": "many"}, "it takes a whole number"),
        ({"set-NOTHING": "3"}, "There is no constant NOTHING"),
        ({"how": "paste", "source": ""}, "Paste the problem"),
        ({"how": "paste", "source": "def broken(:"}, "line 1"),
        ({"how": "paste", "source": "x = 1\n"}, "class Model"),
    ],
)
def test_bad_input_says_what_to_do_and_creates_nothing(
    ada: Client, world: dict[str, Any], change: dict[str, str], said: str
) -> None:
    before = (Run.objects.count(), Problem.objects.count(), Sizing.objects.count())
    answer = ada.post("/launch/", FORM | change)
    content = answer.content.decode()
    assert answer.status_code == 422
    assert "Not launched; nothing was created" in content
    assert said in content
    assert (Run.objects.count(), Problem.objects.count(), Sizing.objects.count()) == before


def test_a_pasted_problem_is_taken_in_and_waits_for_its_facts_with_all_settings_kept(
    ada: Client, world: dict[str, Any]
) -> None:
    runs = Run.objects.count()
    source = sources.SOFTSIGN.replace("768", "96")
    answer = ada.post(
        "/launch/", FORM | {"how": "paste", "source": source, "title": "Mine", "iterations": "6"}, follow=True
    )
    content = answer.content.decode()
    assert "Mine is taken in" in content
    assert "a host is looking" in content
    assert 'name="iterations" type="number" min="1" max="200" value="6"' in content
    assert Problem.objects.get(title="Mine").source == source
    assert Run.objects.count() == runs


PASTED = FORM | {"how": "paste", "source": sources.SOFTSIGN.replace("768", "96"), "title": "Mine"}
OWN = sources.SOFTSIGN_VERSIONS[2] + "# " + "x" * 100_000 + "\n"  # more than any address holds


def test_a_candidate_pasted_with_a_new_problem_waits_with_it_and_is_launched(
    ada: Client, world: dict[str, Any]
) -> None:
    answer = ada.post("/launch/", PASTED | {"own": OWN, "temperatures": "0.2", "do": "launch"})
    assert len(answer["Location"]) < 200
    page = ada.get(answer["Location"]).content.decode()
    assert OWN[-200:].strip() in page
    assert 'name="go" value="on" checked' in page
    assert "data-launch-now" not in page
    waiting = {name: str(value) for name, value in ada.get(answer["Location"]).context["values"].items()}
    assert "data-launch-now" not in ada.post("/launch/preview/", waiting).content.decode()
    problem = Problem.objects.get(title="Mine")
    facts = world["live"].sizing.facts
    Sizing.objects.filter(problem=problem).update(state="ready", facts=facts)
    assert "data-launch-now" in ada.post("/launch/preview/", waiting).content.decode()
    launched = ada.post("/launch/", waiting | {"do": "launch"})
    run = Run.objects.latest("id")
    assert launched["Location"] == f"/runs/{run.pk}/"
    assert [seed["source"] for seed in run.seeds] == [OWN.replace("\r\n", "\n")]
    assert OWN[-200:] not in ada.get(answer["Location"]).content.decode(), "what was launched waits no longer"


def test_a_file_of_a_candidate_is_kept_as_text_where_the_launch_is_refused_or_waits(
    ada: Client, world: dict[str, Any]
) -> None:
    refused = ada.post("/launch/", FORM | {"iterations": "0", "own_file": SimpleUploadedFile("mine.py", OWN.encode())})
    assert OWN[-200:].strip() in refused.content.decode()
    waits = ada.post("/launch/", PASTED | {"own_file": SimpleUploadedFile("mine.py", OWN.encode())}, follow=True)
    assert OWN[-200:].strip() in waits.content.decode()


def test_a_look_that_was_asked_for_launches_nothing_by_itself(ada: Client, world: dict[str, Any]) -> None:
    page = ada.post("/launch/", PASTED | {"do": "take"}, follow=True).content.decode()
    assert 'name="go" value="on">' in page


def test_a_link_never_launches(ada: Client, world: dict[str, Any]) -> None:
    assert "data-launch-now" not in ada.get("/launch/?problem=softsign&go=on").content.decode()


def test_a_problem_that_is_refused_while_a_launch_waits_keeps_everything(ada: Client, world: dict[str, Any]) -> None:
    answer = ada.post("/launch/", PASTED | {"own": OWN})
    Sizing.objects.filter(problem__title="Mine").update(state="refused", refusal="Judging needs 200 GB.")
    page = ada.get(answer["Location"]).content.decode()
    assert "Judging needs 200 GB." in page
    assert OWN[-200:].strip() in page
    assert "data-launch-now" not in page


def test_what_is_pasted_has_the_hash_of_its_file(ada: Client, world: dict[str, Any]) -> None:
    """A browser sends every line end of a text as CR LF."""
    text = sources.SOFTSIGN.replace("768", "96")
    ada.post("/launch/", PASTED | {"source": text.replace("\n", "\r\n")})
    assert Problem.objects.get(title="Mine").source == text


def test_a_syntax_error_keeps_the_columns_of_its_caret(ada: Client, world: dict[str, Any]) -> None:
    page = ada.post("/launch/preview/", PASTED | {"source": "class Model:\n    def forward(self)\n"}).content.decode()
    assert "Syntax error in line 2" in page
    error = page.partition('<pre class="at">')[2].partition("</pre>")[0].splitlines()
    assert [line.lstrip() for line in error] == ["def forward(self)", "^"]
    assert error[1].index("^") == len(error[0])


def test_a_time_limit_reads_as_minutes(ada: Client, world: dict[str, Any]) -> None:
    assert "at most 7.5 min" in ada.post("/launch/preview/", FORM | {"minutes": "7.5"}).content.decode()


def test_a_file_that_is_no_text_is_refused(ada: Client, world: dict[str, Any]) -> None:
    answer = ada.post("/launch/", FORM | {"file": SimpleUploadedFile("kernel.py", b"\xff\xfe\x00")})
    assert "not UTF-8 text" in answer.content.decode()


def test_sizes_beyond_the_host_are_refused_with_the_reason(ada: Client, world: dict[str, Any]) -> None:
    sizing = world["live"].sizing
    why = "Judging needs 200 GB; this host has 16 GB. BATCH=256 would fit."
    Sizing.objects.filter(pk=sizing.pk).update(state="refused", refusal=why)
    before = Run.objects.count()
    assert why in ada.get("/launch/?problem=softsign").content.decode()
    assert why in ada.post("/launch/", FORM).content.decode()
    assert Run.objects.count() == before


def test_settings_are_copied_from_another_run(ada: Client, world: dict[str, Any]) -> None:
    Run.objects.filter(pk=world["done"].pk).update(iterations=17, profile=False, notes="as before")
    content = ada.get(f"/launch/?from={world['done'].pk}").content.decode()
    assert 'name="iterations" type="number" min="1" max="200" value="17"' in content
    assert 'value="off" checked' in content
    assert "--iterations 17 --no-profile" in content


def test_what_happens_without_counters_is_said_before(ada: Client, world: dict[str, Any]) -> None:
    assert "has no hardware counters" in ada.get("/launch/?problem=softsign").content.decode()
    assert "has no hardware counters" not in ada.get("/launch/?problem=softsign&profile=off").content.decode()
