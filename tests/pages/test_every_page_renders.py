"""Every page renders: with everything there is to show, and with nothing yet."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps.runs.models import Run

FULL = (
    "/",
    "/?state=lost&sort=-speedup&columns=state,problem,took,policy,compiled,profile",
    "/?columns=state,tags,notes&tag=baseline",
    "/runs.csv?state=ended",
    "/launch/",
    "/launch/?problem=softsign&set-BATCH=4096",
    "/launch/?from={done}",
    "/runs/{live}/",
    "/runs/{live}/?tab=log&level=debug&find=jail",
    "/runs/{live}/?tab=code&v=2",
    "/runs/{live}/?tab=checks",
    "/runs/{live}/?tab=build",
    "/runs/{live}/?tab=lineage",
    "/runs/{live}/?v=3&against=reference&view=split",
    "/runs/{live}/part/head/",
    "/runs/{live}/part/progress/",
    "/runs/{live}/part/work/",
    "/runs/{live}/part/metrics/",
    "/runs/{live}/part/advice/",
    "/runs/{live}/part/roofline/",
    "/runs/{live}/part/twin/",
    "/runs/{live}/log.txt",
    "/runs/{done}/",
    "/runs/{done}/v4/",
    "/runs/{done}/v4/?tab=profile",
    "/runs/{done}/v4/?tab=advice",
    "/runs/{done}/v4/?tab=build",
    "/runs/{done}/v4/?tab=checks",
    "/runs/{done}/v4/?tab=lineage",
    "/runs/{done}/v4/?tab=environment",
    "/runs/{done}/v2/",
    "/runs/{done}/v4.py",
    "/compare/",
    "/compare/?a={done}.1&b={live}.4",
    "/compare/?a={done}.4&b=reference&view=unified",
    "/compare/?a=reference&b={done}.4",
    "/compare/?a={done}.1&b={live}.4&view=split",
    "/compare/runs/?runs={live},{done}",
    "/compare/runs/?runs={live},{done}&axis=time",
    "/compare/versions/?v={done}.1&v={done}.2,{done}.4&v={live}.4",
    "/compare/versions/",
    "/problems/",
    "/problems/?q=soft&category=element-wise&level=1&source=starter",
    "/problems/softsign/",
    "/problems/softsign.py",
    "/hosts/",
    "/hosts/this-machine/",
    "/hosts/epyc-02/",
    "/launch/?problem=softsign&coder=sonnet",
    "/launch/?problem=softsign&coder=our-qwen",
    "/settings/models/",
    "/settings/models/new/",
    "/settings/limits/",
    "/runs/{done}/calls/",
)


@pytest.mark.parametrize("address", FULL)
def test_a_page_renders_with_everything_there_is(ada: Client, world: dict[str, Any], address: str) -> None:
    answer = ada.get(address.format(live=world["live"].pk, done=world["done"].pk))
    assert answer.status_code == 200
    content = answer.getvalue().decode() if answer.streaming else answer.content.decode()
    assert "<script>alert" not in content or answer["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("/runs/{done}/v4/", "judged in full, decided at "),
        ("/runs/{done}/v4/?tab=profile", "(share of memory roof "),
        ("/hosts/this-machine/", "float32, all threads: "),
        ("/hosts/this-machine/", "<td>copy past the caches</td>"),
    ],
)
def test_what_is_measured_is_named_in_words(ada: Client, world: dict[str, Any], address: str, words: str) -> None:
    assert words in ada.get(address.format(done=world["done"].pk)).content.decode()


@pytest.mark.parametrize(
    ("address", "advice"),
    [
        ("/", "Launch one"),
        ("/?q=nothing", "No run matches"),
        ("/problems/", "paste a PyTorch module"),
        ("/hosts/", "python -m apps.station"),
        ("/launch/", "No host has joined yet"),
        ("/compare/", "Select two or more runs"),
        ("/compare/runs/", "Two runs or more"),
    ],
)
def test_an_empty_page_says_what_to_do_next(newcomer: Client, address: str, advice: str) -> None:
    assert advice in newcomer.get(address).content.decode()


def test_a_run_that_has_not_begun_says_what_it_waits_for(ada: Client, world: dict[str, Any]) -> None:
    queued = world["live"].pk - 1
    assert "waits for a worker" in ada.get(f"/runs/{queued}/").content.decode()


def test_a_run_past_its_time_limit_says_what_it_still_does(ada: Client, world: dict[str, Any]) -> None:
    live = world["live"]
    Run.objects.filter(pk=live.pk).update(
        seconds_limit=600, started_at=timezone.now() - timedelta(minutes=15), iteration=3, iterations=3
    )
    page = ada.get(f"/runs/{live.pk}/").content.decode()
    assert "limit reached: it ends once its best is judged in full" in page
    assert "about 0" not in page


@pytest.mark.parametrize(
    "address", ["/runs/999/", "/runs/1/v99/", "/problems/nowhere/", "/hosts/nowhere/", "/compare/?a=9.9&b=8.8"]
)
def test_what_is_not_there_is_said_in_the_house_s_own_page(ada: Client, address: str) -> None:
    answer = ada.get(address)
    assert answer.status_code == 404
    assert "There is nothing at this address" in answer.content.decode()
