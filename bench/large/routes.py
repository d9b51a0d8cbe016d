"""Every address that answers a GET, taken from the URL configuration; what is left out says why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.urls import URLResolver, get_resolver

from bench.large.building import Large

# By the route's name: addresses that show it at its largest. {v} is the run of many versions, {e} the one of many events,
# {u} an ordinary one; {best} the newest version of {v}.
ADDRESSES: dict[str, tuple[str, ...]] = {
    "healthz": ("/healthz",),
    "metrics": ("/metrics",),
    "link": ("/link/",),
    "api-schema": ("/api/schema/",),
    "api-docs": ("/api/docs/",),
    # people
    "settings-profile": ("/settings/profile/",),
    "settings-tokens": ("/settings/tokens/",),
    "settings-sessions": ("/settings/sessions/",),
    "settings-members": ("/settings/members/",),
    "settings-audit": (
        "/settings/audit/",
        "/settings/audit/?page=200",
        "/settings/audit/?kind=run",
        "/settings/audit/?text=7",
    ),
    "api-me-list": ("/api/v1/me/",),
    "api-member-list": ("/api/v1/members/",),
    "api-member-detail": ("/api/v1/members/member1/",),
    "api-token-list": ("/api/v1/tokens/",),
    "api-session-list": ("/api/v1/sessions/",),
    "api-audit-list": ("/api/v1/audit/", "/api/v1/audit/?offset=9000"),
    # notices
    "notices": ("/notices/", "/notices/?unread=1", "/notices/?page=50"),
    "settings-notifications": ("/settings/notifications/",),
    "api-notice-list": ("/api/v1/notices/",),
    "api-notice-detail": ("/api/v1/notices/{notice}/",),
    "api-notice-choice-list": ("/api/v1/notice-choices/",),
    "api-webhook-list": ("/api/v1/webhooks/",),
    # models and money
    "run-calls": ("/runs/{e}/calls/", "/runs/{u}/calls/"),
    "settings-models": ("/settings/models/",),
    "settings-model-new": ("/settings/models/new/",),
    "settings-model": ("/settings/models/{model}/",),
    "settings-model-trial": ("/settings/models/tests/{trial}/",),
    "settings-limits": ("/settings/limits/",),
    "api-model-list": ("/api/v1/models/",),
    "api-model-detail": ("/api/v1/models/model-0/",),
    "api-trial-detail": ("/api/v1/trials/{trial}/",),
    "api-limits": ("/api/v1/limits/",),
    "api-call-list": ("/api/v1/calls/", "/api/v1/calls/?run={e}", "/api/v1/calls/?offset=50000"),
    # hosts
    "hosts": ("/hosts/",),
    "host": ("/hosts/epyc-00/",),
    "api-host-list": ("/api/v1/hosts/",),
    "api-host-detail": ("/api/v1/hosts/epyc-00/",),
    "api-host-faults": ("/api/v1/hosts/epyc-00/faults/",),
    "api-host-queue": ("/api/v1/hosts/epyc-00/queue/",),
    # runs
    "runs": (
        "/",
        "/?page=150",
        "/?sort=-speedup",
        "/?sort=problem",
        "/?sort=host&page=90",
        "/?sort=spend",
        "/?q=norm",
        "/?q=month+nightly",
        "/?state=live",
        "/?state=lost",
        "/?problem=problem-3&host=epyc-01&coder=builtin",
        "/?tag=nightly&columns=state,problem,took,policy,compiled,profile,tags,notes",
    ),
    "launch": ("/launch/", "/launch/?problem=problem-0&coder=model-0", "/launch/?from={v}"),
    "run": (
        "/runs/{v}/",
        "/runs/{v}/?v=7&against=3&view=split",
        "/runs/{v}/?until=60&advice=40",
        "/runs/{v}/?tab=code",
        "/runs/{v}/?tab=log",
        "/runs/{e}/",
        "/runs/{e}/?tab=log&level=debug",
        "/runs/{e}/?tab=log&level=debug&from=5000",
        "/runs/{e}/?tab=log&find=jail+31",
        "/runs/{u}/",
    ),
    "run-part": tuple(
        f"/runs/{run}/part/{part}/"
        for run in ("{v}", "{e}")
        for part in ("head", "progress", "work", "metrics", "advice", "roofline", "twin")
    ),
    "run-said": ("/runs/{e}/said/{said}/",),
    "version": tuple(
        f"/runs/{{v}}/v{{best}}/?tab={tab}"
        for tab in ("code", "profile", "advice", "build", "checks", "lineage", "environment")
    ),
    "version-source": ("/runs/{v}/v{best}.py",),
    "compare": ("/compare/?a={v}.1&b={v}.{best}", "/compare/?a=reference&b={v}.{best}"),
    "compare-runs": ("/compare/runs/?runs={v},{twin}", "/compare/runs/?runs={v},{e},{u}"),
    "compare-versions": ("/compare/versions/?v={v}.1,{v}.3,{v}.4&v={v}.{best}",),
    "problems": ("/problems/", "/problems/?q=norm&level=1"),
    "problem": ("/problems/problem-0/",),
    "problem-source": ("/problems/problem-0.py",),
    "api-problem-list": ("/api/v1/problems/",),
    "api-problem-detail": ("/api/v1/problems/problem-0/",),
    "api-run-list": ("/api/v1/runs/", "/api/v1/runs/?offset=9000", "/api/v1/runs/?problem=problem-3"),
    "api-run-detail": ("/api/v1/runs/{v}/",),
    "api-run-events": ("/api/v1/runs/{e}/events/", "/api/v1/runs/{e}/events/?after=50000"),
    "api-saved-view-list": ("/api/v1/saved-views/",),
    "api-version-list": ("/api/v1/runs/{v}/versions/", "/api/v1/runs/{v}/versions/?limit=500"),
    "api-version-detail": ("/api/v1/runs/{v}/versions/{best}/",),
    "api-version-measurements": ("/api/v1/runs/{v}/versions/{best}/measurements/",),
    "api-evaluation-list": (
        "/api/v1/evaluations/",
        "/api/v1/evaluations/?run={v}",
        "/api/v1/evaluations/?host=epyc-01&verdict=correct",
        "/api/v1/evaluations/?offset=20000",
    ),
    "api-evaluation-detail": ("/api/v1/evaluations/{evaluation}/",),
    "api-compare-list": ("/api/v1/compare/?a={v}.1&b={v}.{best}",),
    "api-compare-versions": ("/api/v1/compare/versions/?v={v}.1,{v}.3,{v}.4&v={v}.{best}",),
    # reviews
    "reviews": ("/reviews/", "/reviews/?tab=waiting", "/reviews/?tab=mine", "/reviews/?tab=closed&page=9"),
    "propose": ("/reviews/new/?version={v}.{best}",),
    "review": (
        "/reviews/{r}/",
        "/reviews/{r}/?view=code",
        "/reviews/{r}/?tab=profile",
        "/reviews/{r}/?tab=environment",
        "/reviews/{r}/?tab=history",
    ),
    "review-composer": ("/reviews/{r}/composer/?at=3",),
    "review-pulse": ("/reviews/{r}/pulse/",),
    "review-rules": ("/settings/reviews/",),
    "kernels": ("/kernels/", "/kernels/?state=", "/kernels/?q=norm"),
    "kernel": ("/kernels/{k}/",),
    "kernel-client": ("/kernels/client/",),
    "kernel-file": ("/kernels/{k}/file.py",),
    "api-review-list": ("/api/v1/reviews/", "/api/v1/reviews/?waiting=true"),
    "api-review-detail": ("/api/v1/reviews/{r}/",),
    "api-review-rules": ("/api/v1/reviews/rules/",),
    "api-comments": ("/api/v1/reviews/{r}/comments/",),
    "api-kernel-list": ("/api/v1/kernels/",),
    "api-kernel-detail": ("/api/v1/kernels/{k}/",),
    "api-kernel-in-use": ("/api/v1/kernels/in-use/?problem={kp}&device={kd}&language=cpp",),
}

# What hands over a whole run or kernel: measured by what it holds in memory, not by the clock.
DOWNLOADS: dict[str, tuple[str, ...]] = {
    "runs-csv": ("/runs.csv",),
    "run-log": ("/runs/{e}/log.txt?level=debug",),
    "kernel-bundle": ("/kernels/{k}/bundle.zip",),
    "api-kernel-bundle": ("/api/v1/kernels/{k}/bundle/",),
}

_POST = "takes POST alone"
_REPLAYED = (
    "goes through the run's whole record again before anybody gets it, so it is held whole; made-up runs have none"
)
LEFT_OUT: dict[str, str] = {
    "sign-in": "asks the database nothing before it is sent; then it hashes a password, which is meant to take its time",
    "sign-out": _POST,
    "password-forgotten": "a form that asks the database nothing",
    "choose-password": "a form behind a link that works once",
    "theme": _POST,
    "settings": "leads on to the profile",
    "settings-password": _POST,
    "settings-token-revoke": _POST,
    "settings-member": _POST,
    "settings-session-end": _POST,
    "settings-sessions-others": _POST,
    "notices-read": _POST,
    "notice-open": _POST,
    "settings-webhooks": _POST,
    "settings-webhook": _POST,
    "host-operate": _POST,
    "settings-model-change": _POST,
    "settings-model-test": _POST,
    "settings-person-limit": _POST,
    "runs-view": _POST,
    "runs-bulk": _POST,
    "runs-import": _POST,
    "launch-preview": _POST + "; it shows what the page Launch shows",
    "run-transcript": _REPLAYED,
    "api-run-transcript": _REPLAYED,
    "run-notes": _POST,
    "run-order": _POST,
    "version-again": _POST,
    "review-do": _POST,
    "kernel-do": _POST,
}


class Forgotten(Exception):
    """A route that is neither asked for nor left out with a reason."""


@dataclass(frozen=True)
class Address:
    """One request: the route's name, what is asked for and how it is written above; `download` where it may take longer,
    but must stream."""

    name: str
    path: str
    pattern: str
    download: bool = False


def addresses(large: Large) -> list[Address]:
    """What to ask for, in the order of the URL configuration. Raises `Forgotten`."""
    found = []
    names = words(large)
    for name in names_of_routes():
        if name in LEFT_OUT:
            continue
        download = name in DOWNLOADS
        wanted = DOWNLOADS.get(name) or ADDRESSES.get(name)
        if wanted is None:
            raise Forgotten(f"bench/large/routes.py says nothing of the route {name}: give it an address or a reason.")
        found += [Address(name, path.format(**names), path, download) for path in wanted]
    return found


def names_of_routes() -> Iterator[str]:
    """Every named route but those of REST that take no GET."""
    yield from dict.fromkeys(_walk(get_resolver()))


def _walk(resolver: URLResolver) -> Iterator[str]:
    for one in resolver.url_patterns:
        if isinstance(one, URLResolver):
            yield from _walk(one)
        elif "get" in getattr(one.callback, "actions", {"get": ""}):
            yield str(one.name)


def words(large: Large) -> dict[str, Any]:
    """What stands in for the names in braces."""
    from apps.ledger.models import LanguageModel, Trial
    from apps.notices.models import Notice
    from apps.reviews.models import AcceptedKernel
    from apps.runs.models import Event, Measurement, Run

    runs, reviews = large.runs, large.reviews
    in_use = AcceptedKernel.objects.filter(state="current", sizing__overrides={}).select_related(
        "problem", "device__host"
    )
    kernel = in_use.order_by("pk")[0]
    said = Event.objects.filter(run=runs.events, kind="step_ended").order_by("-seq").values_list("seq", flat=True)[0]
    return {
        "v": runs.versions,
        "e": runs.events,
        "u": runs.usual,
        "twin": runs.usual,
        "best": Run.objects.values_list("best__number", flat=True).get(pk=runs.versions),
        "said": said,
        "evaluation": _first(Measurement.objects.filter(version__run=runs.usual)),
        "model": _first(LanguageModel.objects.all()),
        "trial": _first(Trial.objects.all()),
        "notice": _first(Notice.objects.filter(person=large.world.people[0])),
        "r": reviews.talked,
        "k": reviews.kernel,
        "kp": kernel.problem.slug,
        "kd": str(kernel.device),
    }


def _first(rows: QuerySet[Any]) -> int:
    return int(rows.order_by("pk").values_list("pk", flat=True)[0])
