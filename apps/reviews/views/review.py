"""One review: its page, a composer for a comment on a line, and a look whether anything has moved."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from apps.people.asking import person_who_may
from apps.people.permissions import Action
from apps.people.refusals import Refused
from apps.reviews import duels, evidence, proposing, votes
from apps.reviews.comments import OldSide
from apps.reviews.models import Proposal, Revision, Side
from apps.reviews.presentation import chips, code_view, review_page
from apps.reviews.presentation.code_view import Spot
from apps.reviews.presentation.review_page import Base
from apps.reviews.presentation.threads import Thread, threads_of
from apps.runs.presentation import charts, launch_page, metrics, version_page
from apps.runs.presentation.measured import Measured

TABS = (
    ("code", "Code"),
    ("profile", "Profile"),
    ("checks", "Checks"),
    ("environment", "Environment"),
    ("history", "History"),
)


def review(request: HttpRequest, pk: int) -> HttpResponse:
    """The page. `rev` in the address shows an earlier revision, `base` what it is compared with, `at` a line to comment on
    (`o12`: of the old side)."""
    proposal = get(request, pk)
    person = person_who_may(request, Action.VIEW, proposal)
    shown = _shown(request, proposal)
    accepted = review_page.accepted_now(proposal)
    one = review_page.judged(shown, proposal)
    tally = votes.tally(proposal)
    bases = review_page.bases(proposal, shown, accepted)
    base, view = review_page.chosen_base(bases, request.GET.get("base", "")), _view(request)
    threads = threads_of(proposal, shown, person, None if view == "code" else base.source)
    nothing_shown = view != "code" and base.source.splitlines() == shown.version.source.splitlines()
    tab = request.GET.get("tab", "code")
    before = review_page.seen_before(proposal, person)
    context = {
        "proposal": proposal,
        "shown": shown,
        "is_latest": shown.number == proposal.revision,
        "revisions": list(proposal.revisions.select_related("version", "by")),
        "run": shown.version.run,
        "version": shown.version,
        "one": one,
        "chip": chips.proposal_chip(proposal, tally),
        "accepted": accepted,
        "tally": tally,
        "voters": review_page.voters(proposal),
        "tiles": review_page.tiles(one, accepted),
        "tab": tab if tab in dict(TABS) else "code",
        "tabs": TABS,
        "offers": review_page.offers(proposal, person, tally),
        "threads": threads,
        "general": [thread for thread in threads if thread.place is None or nothing_shown],
        "bases": bases,
        "base": base,
        "unresolved": review_page.unresolved(threads),
        "drafts": proposal.comments.filter(by=person, published_at=None).count(),
        "before": before,
        "before_words": review_page.said(before) if before else "",
        "changed_since": f"r{before.revision}" if before else "",
        "here": _here(request),
        "contradiction": evidence.evidence_of(shown.version, proposal.device).against,
        "measuring": evidence.measuring(shown.version),
        "duelling": duels.under_way(shown.version),
        "devices": launch_page.device_choices(proposal.language),
        "reviewers": [p for p in proposing.possible_reviewers(proposal.by) if p not in proposal.asked.all()],
        "kernel": getattr(proposal, "kernel", None),
        "stamp": review_page.stamp(proposal),
    }
    return render(request, "reviews/review.html", context | _of_tab(request, context, proposal, one, view))


def _of_tab(
    request: HttpRequest, context: dict[str, Any], proposal: Proposal, one: Measured, view: str
) -> dict[str, Any]:
    match context["tab"]:
        case "code":
            return _code(request, view, context["base"], context["shown"], one, context["threads"])
        case "profile":
            return {
                "bars": version_page.speed_of_light(one.evaluation),
                "rows": metrics.rows_against(None, one.evaluation),
                "roofline_chart": charts.roofline_chart([(one.name, one.evaluation, "now")]),
            }
        case "environment":
            return {"environment": version_page.environment(one.evaluation)}
        case "history":
            return {"decisions": proposal.decisions.select_related("by")}
    return {}


def _view(request: HttpRequest) -> str:
    view = request.GET.get("view", "split")
    return view if view in dict(code_view.VIEWS) else "split"


def _code(
    request: HttpRequest, view: str, base: Base, shown: Revision, one: Measured, threads: list[Thread]
) -> dict[str, Any]:
    composing = Spot.read(request.GET.get("at", ""))
    source = shown.version.source
    if view == "code":
        remarks = one.evaluation.profile.remarks if one.evaluation else ()
        seen = code_view.whole(source, remarks, threads, composing)
    else:
        seen = code_view.compared(base.source, source, view, threads, composing)
    return {"code": seen, "views": code_view.VIEWS}


def composer(request: HttpRequest, pk: int) -> HttpResponse:
    """The form for a comment on a line, to be put below it."""
    proposal = get(request, pk)
    person_who_may(request, Action.COMMENT, proposal)
    spot = Spot.read(request.GET.get("at", "")) or Spot(Side.NEW, 1)
    context = {
        "proposal": proposal,
        "shown": _shown(request, proposal),
        "spot": spot,
        "old": _old_side(request) if spot.side == Side.OLD else None,
        "back": getattr(request, "htmx", None) and request.htmx.current_url_abs_path,  # type: ignore[attr-defined]
    }
    return render(request, "reviews/composer.html", context)


def _old_side(request: HttpRequest) -> OldSide:
    try:
        return OldSide.named(request.GET.get("base", ""))
    except Refused as refusal:
        raise Http404(refusal.message) from refusal


def pulse(request: HttpRequest, pk: int) -> HttpResponse:
    """Whether anything has moved since `since`: nothing to say (204), or the next look and a word to the page's parts."""
    proposal = get(request, pk)
    person_who_may(request, Action.VIEW, proposal)
    now = review_page.stamp(proposal)
    if request.GET.get("since") == now:
        return HttpResponse(status=204)
    answer = render(request, "reviews/pulse.html", {"proposal": proposal, "stamp": now})
    answer["HX-Trigger"] = "review-moved"
    return answer


def get(request: HttpRequest, pk: int) -> Proposal:
    """The proposal of an address, with what its pages need."""
    related = ("problem", "sizing", "device__host", "by", "version__run__problem", "kernel")
    return get_object_or_404(Proposal.objects.select_related(*related).prefetch_related("asked"), pk=pk)


def _shown(request: HttpRequest, proposal: Proposal) -> Revision:
    """The revision that the address names, else the latest."""
    related = ("version__run__problem", "version__run__device__host", "version__parent", "measurement")
    revisions = proposal.revisions.select_related(*related)
    asked = request.GET.get("rev", "")
    chosen = revisions.filter(number=int(asked)).first() if asked.isdecimal() and len(asked) < 5 else None
    return chosen or revisions.get(number=proposal.revision)


def _here(request: HttpRequest) -> str:
    """The page's address without an open composer."""
    query = request.GET.copy()
    query.pop("at", None)
    return f"{request.path}?{query.urlencode()}" if query else request.path
