"""`/metrics` for Prometheus: what the database says of the installation, and what this web process says of itself.

Counts out of the database are read at each scrape and are the same from every web process; websockets and event lag are of
the process that answers.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Iterator

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db.models import Count, F, Sum
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from apps.hosts.models import ELSEWHERE, LIVE_JOB_STATES, Host, Job
from apps.notices.models import Delivery
from apps.runs.models import Measurement, Run, RunState


@login_not_required
def metrics(request: HttpRequest) -> HttpResponse:
    """All of it as text. 403 for who may not read it, saying how to."""
    if not _may_read(request):
        why = "Metrics are read from this machine, or with PRAGMA_METRICS_TOKEN as a bearer token.\n"
        return HttpResponse(why, status=403, content_type="text/plain; charset=utf-8")
    installation = CollectorRegistry(auto_describe=False)
    installation.register(Installation())
    return HttpResponse(generate_latest(installation) + generate_latest(REGISTRY), content_type=CONTENT_TYPE_LATEST)


def _may_read(request: HttpRequest) -> bool:
    if settings.METRICS_TOKEN:
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        return scheme.lower() == "bearer" and secrets.compare_digest(given.strip(), settings.METRICS_TOKEN)
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


class Installation(Collector):
    """The installation as its database has it."""

    def collect(self) -> Iterator[Metric]:
        """Every family, one query each."""
        yield from _queues()
        yield from _runs()
        yield from _judgements()
        yield _hosts()
        yield from _spend()
        yield _deliveries()


def _queues() -> Iterator[Metric]:
    depth = GaugeMetricFamily("pragma_jobs", "Jobs that wait or run", labels=["device", "kind", "state"])
    live = Job.objects.filter(state__in=LIVE_JOB_STATES).order_by()
    rows = live.values_list("device__host__name", "device__name", "kind", "state").annotate(Count("pk"))
    for host, device, kind, state, count in rows:
        depth.add_metric([f"{host}/{device}", kind, state], count)
    yield depth
    oldest = GaugeMetricFamily("pragma_oldest_waiting_job_seconds", "How long the oldest waiting job has waited")
    first = Job.objects.filter(state="waiting").order_by("created_at").values_list("created_at", flat=True).first()
    oldest.add_metric([], (timezone.now() - first).total_seconds() if first else 0.0)
    yield oldest


def _runs() -> Iterator[Metric]:
    states = GaugeMetricFamily("pragma_runs", "Runs by state", labels=["state"])
    counts = dict(Run.objects.order_by().values_list("state").annotate(Count("pk")))
    for state in RunState:
        states.add_metric([state.value], counts.get(state.value, 0))
    yield states
    lost = GaugeMetricFamily("pragma_runs_lost", "Runs whose worker went silent")
    working = Run.objects.filter(state__in=[RunState.RUNNING, RunState.STOPPING], claim_expires_at__lt=timezone.now())
    lost.add_metric([], working.count())
    yield lost


def _judgements() -> Iterator[Metric]:
    verdicts = CounterMetricFamily("pragma_judgements", "Evaluations by verdict", labels=["verdict", "tier"])
    for verdict, tier, count in Measurement.objects.order_by().values_list("verdict", "tier").annotate(Count("pk")):
        verdicts.add_metric([verdict, tier], count)
    yield verdicts
    seconds = CounterMetricFamily("pragma_job_seconds", "Seconds devices spent on jobs", labels=["device", "kind"])
    done = Job.objects.filter(finished_at__isnull=False, started_at__isnull=False).order_by()
    by_device = done.values_list("device__host__name", "device__name", "kind")
    for host, device, kind, spent in by_device.annotate(spent=Sum(F("finished_at") - F("started_at"))):
        seconds.add_metric([f"{host}/{device}", kind], spent.total_seconds() if spent else 0.0)
    yield seconds


def _hosts() -> Metric:
    states = GaugeMetricFamily("pragma_hosts", "Hosts by state; lost: enabled and silent", labels=["state"])
    counts = dict.fromkeys(("online", "drained", "lost", "away"), 0)
    for host in Host.objects.exclude(name=ELSEWHERE).defer("report"):
        online = host.is_online()
        word = ("online" if online else "lost") if host.enabled else ("drained" if online else "away")
        counts[word] += 1
    for word, count in counts.items():
        states.add_metric([word], count)
    return states


def _spend() -> Iterator[Metric]:
    cost = CounterMetricFamily(
        "pragma_model_cost_usd", "What models cost, as far as prices are known", labels=["coder"]
    )
    tokens = CounterMetricFamily("pragma_model_tokens", "Tokens of models", labels=["coder", "direction"])
    sums = {"usd": Sum("cost_usd"), "read": Sum("tokens_in"), "written": Sum("tokens_out")}
    for row in Run.objects.order_by().values("coder").annotate(**sums):
        cost.add_metric([row["coder"]], float(row["usd"] or 0))
        tokens.add_metric([row["coder"], "in"], row["read"] or 0)
        tokens.add_metric([row["coder"], "out"], row["written"] or 0)
    yield cost
    yield tokens


def _deliveries() -> Metric:
    states = GaugeMetricFamily("pragma_deliveries", "E-mails and webhook calls by state", labels=["way", "state"])
    for way, state, count in Delivery.objects.order_by().values_list("way", "state").annotate(Count("pk")):
        states.add_metric([way, state], count)
    return states
