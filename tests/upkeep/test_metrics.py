"""/metrics: what Prometheus reads, and who may."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from apps.hosts.models import Host, Job
from apps.runs.live import measures
from apps.runs.models import Event
from tests.pages import scenes


def read(client: Client, **headers: Any) -> dict[tuple[str, tuple[str, ...]], float]:
    """Every sample by its name and its labels' values, in the labels' order."""
    answer = client.get("/metrics", **headers)
    assert answer.status_code == 200
    families = text_string_to_metric_families(answer.content.decode())
    return {
        (one.name, tuple(one.labels[name] for name in sorted(one.labels))): one.value
        for family in families
        for one in family.samples
    }


def test_the_installation_in_numbers(client: Client, db: None) -> None:
    world = scenes.world()
    job = Job.objects.filter(state="running").get()
    begun = timezone.now() - timedelta(seconds=40)
    Job.objects.filter(pk=job.pk).update(started_at=begun, finished_at=begun + timedelta(seconds=12.5), state="done")
    Host.objects.filter(name="epyc-02").update(enabled=True)
    found = read(client)
    assert found["pragma_runs", ("running",)] == 2
    assert found["pragma_runs_lost", ()] == 1
    assert found["pragma_jobs", (str(world["device"]), "inspect", "waiting")] == 1
    assert found["pragma_job_seconds_total", (str(world["device"]), "evaluate")] == 12.5
    assert found["pragma_judgements_total", ("full", "correct")] > 0
    assert found["pragma_hosts", ("lost",)] == 1
    assert found["pragma_hosts", ("online",)] == 1
    assert ("pragma_model_cost_usd_total", ("builtin",)) in found
    assert found["pragma_oldest_waiting_job_seconds", ()] >= 0


def test_from_elsewhere_a_token_is_needed(client: Client, db: None, settings: Any) -> None:
    answer = client.get("/metrics", REMOTE_ADDR="192.0.2.9")
    assert answer.status_code == 403
    assert "PRAGMA_METRICS_TOKEN" in answer.content.decode()
    settings.METRICS_TOKEN = "scrape-me"
    assert client.get("/metrics").status_code == 403, "once there is a token, it is needed here too"
    assert client.get("/metrics", headers={"Authorization": "Bearer scrape-you"}).status_code == 403
    assert ("pragma_runs", ("queued",)) in read(
        client, REMOTE_ADDR="192.0.2.9", headers={"Authorization": "Bearer scrape-me"}
    )


@pytest.mark.parametrize("address", ["", "not-an-address"])
def test_who_has_no_address_is_not_from_here(client: Client, db: None, address: str) -> None:
    assert client.get("/metrics", REMOTE_ADDR=address).status_code == 403


def test_the_lag_of_live_events_is_counted(client: Client, db: None) -> None:
    now = timezone.now()
    before = read(client)
    measures.note_sent([Event(at=now - timedelta(seconds=0.2)), Event(at=now - timedelta(days=3))], now)
    after = read(client)
    name = ("pragma_event_lag_seconds_count", ())
    assert after[name] - before[name] == 1
    bucket = ("pragma_event_lag_seconds_bucket", ("0.25",))
    assert after[bucket] - before[bucket] == 1
