"""What people do on a review's page. One address; `do` names the deed, each calls one service and goes back."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from apps.hosts.models import Device
from apps.people.asking import person_who_may
from apps.people.models import Person
from apps.people.permissions import Action
from apps.people.refusals import Refused
from apps.reviews import accepting, comments, measuring, proposing, votes
from apps.reviews.comments import OldSide
from apps.reviews.models import Proposal
from apps.reviews.views.review import get
from apps.runs.views.asking import safe_back


@require_POST
def do(request: HttpRequest, pk: int) -> HttpResponse:
    """Carry out what the form asks for, say what came of it, and go back to where the person was."""
    proposal = get(request, pk)
    action, deed = DEEDS.get(request.POST.get("do", ""), (Action.VIEW, _unknown))
    person = person_who_may(request, action, proposal)
    back = safe_back(request) if request.POST.get("back") else proposal.get_absolute_url()
    try:
        messages.success(request, deed(request, proposal, person), "good")
    except Refused as refusal:
        messages.error(request, refusal.message, "bad")
        back = _with_composer(request, back)
    return redirect(back)


def _with_composer(request: HttpRequest, back: str) -> str:
    """The way back to where a comment on lines was being written: it is open there again, with what was typed."""
    if not request.POST.get("at"):
        return back
    path, _, query = back.partition("#")[0].partition("?")
    wanted = QueryDict(query, mutable=True)
    wanted["at"] = request.POST["at"]
    return f"{path}?{wanted.urlencode()}#composer"


def _unknown(request: HttpRequest, proposal: Proposal, person: Person) -> str:
    raise Refused("There is no such deed. Use the buttons of the page.")


def _comment(request: HttpRequest, proposal: Proposal, person: Person) -> str:
    given = request.POST
    parent, first = given.get("parent", ""), given.get("first", "")
    last = given.get("last", "") or first
    if first and not (first.isdecimal() and last.isdecimal()):
        raise Refused("A line is a number.", "lines")
    comment = comments.write(
        proposal.pk,
        person,
        given.get("text", ""),
        lines=(int(first), int(last)) if first else None,
        old=OldSide.named(given["base"]) if first and given.get("base") else None,
        parent=int(parent) if parent.isdecimal() else None,
        revision=int(given["revision"]) if given.get("revision", "").isdecimal() else None,
    )
    if given.get("now"):
        comments.publish(comment.pk, person)
        return "Sent."
    return "Kept as your draft: it goes out with your vote. Nobody else sees it before."


def _on_comment(act: Callable[[int, Person], object], said: str) -> Callable[[HttpRequest, Proposal, Person], str]:
    def deed(request: HttpRequest, proposal: Proposal, person: Person) -> str:
        named = request.POST.get("comment", "")
        if not named.isdecimal() or not proposal.comments.filter(pk=int(named)).exists():
            raise Refused("There is no such comment in this review.")
        act(int(named), person)
        return said

    return deed


def _rewrite(request: HttpRequest, proposal: Proposal, person: Person) -> str:
    text = request.POST.get("text", "")
    return _on_comment(lambda pk, by: comments.rewrite(pk, by, text), "Your draft is changed.")(
        request, proposal, person
    )


def _vote(request: HttpRequest, proposal: Proposal, person: Person) -> str:
    given = request.POST
    decision = votes.vote(proposal.pk, person, given.get("vote", ""), given.get("digest", ""), given.get("text", ""))
    went = decision.data.get("comments", 0)
    with_it = f" {went} comment{'s' * (went != 1)} went out with it." if went else ""
    return f"You {decision.get_kind_display()}, for content {decision.digest[:8]}.{with_it}"


def _accept(request: HttpRequest, proposal: Proposal, person: Person) -> str:
    kernel = accepting.accept(proposal.pk, person, request.POST.get("digest", ""), request.POST.get("text", ""))
    return f"Accepted: {proposal.problem} on {proposal.device} uses it from now on ({kernel})."


def _decline(request: HttpRequest, proposal: Proposal, person: Person) -> str:
    accepting.decline(proposal.pk, person, request.POST.get("text", ""))
    return "Declined. It is kept with its record."


def _withdraw(request: HttpRequest, proposal: Proposal, person: Person) -> str:
    proposing.withdraw(proposal.pk, person, request.POST.get("text", ""))
    return "Withdrawn. It is kept with its record."


def _ask(request: HttpRequest, proposal: Proposal, person: Person) -> str:
    keys = [key for key in request.POST.getlist("asked") if key.isdecimal()]
    asked = proposing.ask(proposal.pk, person, Person.objects.filter(pk__in=keys))
    return f"Asked {', '.join(str(one) for one in asked)}."


def _measure(request: HttpRequest, proposal: Proposal, person: Person) -> str:
    names = request.POST.getlist("device")
    devices = [one for one in Device.objects.select_related("host").filter(retired=False) if str(one) in names]
    measuring.measure(person, proposal, devices, against_accepted=bool(request.POST.get("against")))
    return f"{', '.join(map(str, devices))} measure{'s' * (len(devices) == 1)} it again; the result shows here."


DEEDS: dict[str, tuple[Action, Callable[[HttpRequest, Proposal, Person], str]]] = {
    "comment": (Action.COMMENT, _comment),
    "rewrite": (Action.COMMENT, _rewrite),
    "discard": (Action.COMMENT, _on_comment(comments.discard, "Your draft is gone.")),
    "publish": (Action.COMMENT, _on_comment(comments.publish, "Sent.")),
    "resolve": (Action.COMMENT, _on_comment(comments.resolve, "Resolved.")),
    "reopen": (Action.COMMENT, _on_comment(comments.reopen, "Open again.")),
    "vote": (Action.COMMENT, _vote),
    "accept": (Action.ACCEPT, _accept),
    "decline": (Action.ACCEPT, _decline),
    "withdraw": (Action.PROPOSE, _withdraw),
    "ask": (Action.PROPOSE, _ask),
    "measure": (Action.REMEASURE, _measure),
}
