"""Accepting: what is needed, what it supersedes, where it shows, and what a new run makes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.hosts import jobs, registry
from apps.hosts.models import Device, Job, JobKind, JobState
from apps.kernels.evaluation import Outcome
from apps.kernels.machine import HostReport
from apps.kernels.plain import from_plain, to_plain
from apps.people.refusals import Refused
from apps.reviews import accepting, proposing, verifying, votes
from apps.reviews.models import AcceptedKernel, Doubt, KernelState, Proposal, ProposalState
from apps.reviews.proposing import Slot
from apps.runs.models import Run
from tests.reviews.conftest import Judged, Team, in_full, measured_again, signed_in_as


def accept(person, proposal: Proposal, **fields: object):  # type: ignore[no-untyped-def]
    asked = {"do": "accept", "digest": proposal.digest, **fields}
    return signed_in_as(person).post(f"/reviews/{proposal.pk}/do/", asked, follow=True)


def test_what_is_approved_is_accepted_and_shows_where_people_look(
    team: Team, judged: Judged, proposal: Proposal
) -> None:
    votes.vote(proposal.pk, team.second, "approve", proposal.digest)
    page = accept(team.reviewer, proposal, text="For the release.").content.decode()
    assert "uses it from now on" in page
    kernel, speedup = AcceptedKernel.objects.get(), "3.19×"
    assert (kernel.state, kernel.by, kernel.digest) == ("current", team.reviewer, judged.faster.digest)
    assert kernel.measurement == judged.faster.measurement
    assert kernel.environment["torch"] == "2.13.0"
    decided = proposal.decisions.get(kind="accepted")
    assert (decided.text, decided.data["approved_by"]) == ("For the release.", ["Sol"])
    client = signed_in_as(team.viewer)
    for address in ("/kernels/", "/problems/", "/problems/soft-sign/", kernel.get_absolute_url()):
        content = client.get(address).content.decode()
        assert speedup in content, address
    assert f"/kernels/{kernel.pk}/" in client.get("/problems/").content.decode()


@pytest.mark.parametrize("votes_cast", [0, 1])
def test_too_few_approvals(team: Team, proposal: Proposal, votes_cast: int) -> None:
    from apps.reviews import rules

    rules.change(team.admin, approvals=votes_cast + 1, own_approval=False)
    if votes_cast:
        votes.vote(proposal.pk, team.second, "approve", proposal.digest)
    page = accept(team.reviewer, proposal).content.decode()
    assert "It needs 1 more approval of content" in page
    assert not AcceptedKernel.objects.exists()


def test_requested_changes_hold_it_back(team: Team, proposal: Proposal) -> None:
    votes.vote(proposal.pk, team.second, "approve", proposal.digest)
    votes.vote(proposal.pk, team.reviewer, "changes", proposal.digest, "Odd sizes.")
    with pytest.raises(Refused, match="Remy requested changes"):
        accepting.accept(proposal.pk, team.admin, proposal.digest)


def test_nothing_within_noise_is_accepted_however_many_approve(team: Team, judged: Judged) -> None:
    proposal = proposing.propose(team.engineer, judged.noise)
    votes.vote(proposal.pk, team.reviewer, "approve", proposal.digest)
    with pytest.raises(Refused, match="not shown to be faster"):
        accepting.accept(proposal.pk, team.reviewer, proposal.digest)
    measured_again(judged.noise, in_full(1.2))
    assert accepting.accept(proposal.pk, team.reviewer, proposal.digest).is_current


def test_what_was_measured_since_counts(team: Team, judged: Judged, proposal: Proposal) -> None:
    votes.vote(proposal.pk, team.reviewer, "approve", proposal.digest)
    measured_again(judged.faster, in_full(2.3, Outcome.SLOWER))
    with pytest.raises(Refused, match="slower than eager"):
        accepting.accept(proposal.pk, team.reviewer, proposal.digest)


def test_the_content_that_was_looked_at_is_what_is_accepted(team: Team, judged: Judged, proposal: Proposal) -> None:
    votes.vote(proposal.pk, team.reviewer, "approve", proposal.digest)
    proposing.revise(proposal.pk, team.engineer, judged.better)
    with pytest.raises(Refused, match="Another version is proposed by now"):
        accepting.accept(proposal.pk, team.reviewer, judged.faster.digest)


def test_an_engineer_accepts_nothing(team: Team, proposal: Proposal) -> None:
    votes.vote(proposal.pk, team.reviewer, "approve", proposal.digest)
    assert accept(team.engineer, proposal).status_code == 403
    address, body = f"/api/v1/reviews/{proposal.pk}/accept/", {"digest": proposal.digest}
    assert signed_in_as(team.engineer).post(address, body, content_type="application/json").status_code == 403
    made = signed_in_as(team.reviewer).post(address, body, content_type="application/json")
    assert made.status_code == 201, made.content
    assert made.json()["accepted_by"] == "Remy"
    assert signed_in_as(team.reviewer).post(address, body, content_type="application/json").status_code == 409


def test_the_one_before_is_superseded_and_kept(team: Team, judged: Judged, kernel: AcceptedKernel) -> None:
    better = proposing.propose(team.engineer, judged.better)
    page = signed_in_as(team.reviewer).get(better.get_absolute_url()).content.decode()
    assert "in place of accepted run" in page
    assert "of two measurements, beyond noise" in page
    votes.vote(better.pk, team.reviewer, "approve", better.digest)
    new = accepting.accept(better.pk, team.reviewer, better.digest)
    kernel.refresh_from_db()
    assert (kernel.state, kernel.superseded_by) == (KernelState.SUPERSEDED, new)
    assert Slot.of(judged.better, judged.run.device).accepted() == new
    listed = signed_in_as(team.viewer).get("/kernels/?state=superseded").content.decode()
    assert kernel.get_absolute_url() in listed
    assert "Superseded" in signed_in_as(team.viewer).get(kernel.get_absolute_url()).content.decode()
    with pytest.raises(IntegrityError), transaction.atomic():
        AcceptedKernel.objects.filter(pk=kernel.pk).update(state="current")


def test_the_proposed_one_is_timed_against_the_accepted_one_in_pairs(
    team: Team, judged: Judged, kernel: AcceptedKernel
) -> None:
    better = proposing.propose(team.engineer, judged.better)
    client = signed_in_as(team.reviewer)
    asked = {"do": "measure", "device": "here/cpu", "against": "accepted"}
    page = client.post(f"/reviews/{better.pk}/do/", asked, follow=True).content.decode()
    assert "times v3 against the accepted one" in page
    job = Job.objects.get(key__startswith="duel:")
    assert (job.request["candidate"], job.request["against"]) == (judged.better.source, judged.faster.source)
    found = in_full(1.95 / 1.38)  # as the judge says it: the rival's time over the candidate's
    jobs.end(jobs.mark_sent(job) or job, JobState.DONE, result=to_plain(found))
    page = client.get(better.get_absolute_url()).content.decode()
    assert "1.38×" in page
    assert "in pairs: faster" in page
    assert judged.better.measurements.count() == 1


def test_declining_wants_a_reason(team: Team, proposal: Proposal) -> None:
    with pytest.raises(Refused, match="Say why"):
        accepting.decline(proposal.pk, team.reviewer, " ")
    accepting.decline(proposal.pk, team.reviewer, "Too special.")
    proposal.refresh_from_db()
    assert proposal.state == ProposalState.DECLINED


def test_compare_offers_the_accepted_one(team: Team, judged: Judged, kernel: AcceptedKernel) -> None:
    client, key = signed_in_as(team.viewer), f"{judged.run.pk}.3"
    assert "against=accepted" in client.get(f"/compare/?a=reference&b={key}").content.decode()
    page = client.get(f"/compare/?b={key}&against=accepted", follow=True).content.decode()
    assert f"run {judged.run.pk} v2" in page
    assert client.get(f"/api/v1/compare/?b={key}&against=accepted").json()["a"]["key"] == f"{judged.run.pk}.2"
    assert "against=accepted" in client.get(judged.better.get_absolute_url()).content.decode()


def test_a_new_run_starts_from_it(team: Team, judged: Judged, kernel: AcceptedKernel, device: Device) -> None:
    client, seed = signed_in_as(team.engineer), f"{judged.run.pk}.2"
    page = client.get(kernel.get_absolute_url()).content.decode()
    assert f"/launch/?from={judged.run.pk}&amp;seed={seed}" in page
    form = client.get(f"/launch/?from={judged.run.pk}&seed={seed}").content.decode()
    assert f"starts from version {seed}" in form
    order = {"problem": "soft-sign", "language": "cpp", "policy": "library", "device": "here/cpu", "coder": "builtin"}
    order |= {"iterations": "2", "candidates": "1", "profile": "on", "how": "choose", "sized": ""}
    answer = client.post("/launch/", {**order, "seed": "999.9"})
    assert "There is no version 999.9" in answer.content.decode()
    answer = client.post("/launch/", {**order, "seed": seed})
    run = Run.objects.latest("pk")
    assert answer["Location"] == run.get_absolute_url()
    assert run.seeds[0]["source"] == judged.faster.source


def with_torch(host, version: str) -> HostReport:  # type: ignore[no-untyped-def]
    return replace(from_plain(HostReport, host.report), torch=version)


def test_a_host_that_changes_puts_its_kernels_in_doubt_and_has_them_judged_again(
    team: Team, kernel: AcceptedKernel, device: Device
) -> None:
    host = kernel.device.host
    registry.register(host.name, "s", with_torch(host, "2.13.0"))
    kernel.refresh_from_db()
    assert kernel.doubt == Doubt.NONE
    registry.register(host.name, "s", with_torch(host, "2.14.0"))
    kernel.refresh_from_db()
    assert (kernel.doubt, kernel.doubt_detail) == (Doubt.ENVIRONMENT, "here has changed: torch 2.13.0 → 2.14.0")
    job = Job.objects.get(kind=JobKind.EVALUATE)
    assert (job.request["candidate"], job.request["tier"], job.owner) == (kernel.version.source, "full", None)
    registry.register(host.name, "s", with_torch(host, "2.14.0"))
    assert Job.objects.filter(kind=JobKind.EVALUATE).count() == 1
    assert "host has changed" in signed_in_as(team.viewer).get("/kernels/?state=doubted").content.decode()
    measured_again(kernel.version, in_full(0.62))
    kernel.refresh_from_db()
    assert (kernel.doubt, kernel.environment["torch"]) == (Doubt.NONE, "2.14.0")
    assert kernel.checks.get().held


def test_a_kernel_that_no_longer_holds_is_said_to(team: Team, judged: Judged, kernel: AcceptedKernel) -> None:
    client = signed_in_as(team.engineer)
    client.post(f"/kernels/{kernel.pk}/do/", {"do": "verify"})
    assert Job.objects.filter(key__startswith=f"again:{kernel.version_id}:").exists()
    measured_again(kernel.version, in_full(2.5, Outcome.SLOWER))
    kernel.refresh_from_db()
    assert (kernel.doubt, kernel.state) == (Doubt.FAILED, KernelState.CURRENT)
    assert "no longer holds" in client.get("/kernels/").content.decode()
    assert kernel.proposal.decisions.last().kind == "doubted"
    with pytest.raises(Refused, match="measuring v2 again already"):
        verifying.verify(kernel, team.engineer)
    assert signed_in_as(team.viewer).post(f"/kernels/{kernel.pk}/do/", {"do": "verify"}).status_code == 403


def asked(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).status_code == 200
    return len(queries)


TABS = ("waiting", "open", "closed")


@pytest.mark.parametrize(
    ("address", "most"),
    [
        *((f"/reviews/?tab={tab}", 14) for tab in TABS),
        ("/kernels/?state=", 10),
        ("/api/v1/reviews/", 14),
        ("/api/v1/kernels/", 10),
    ],
)
def test_longer_lists_ask_no_more(team: Team, judged: Judged, kernel: AcceptedKernel, address: str, most: int) -> None:
    client: Any = signed_in_as(team.reviewer)
    proposing.propose(team.engineer, judged.noise, asked=[team.reviewer])
    client.get(address)
    before = asked(client, address)
    proposing.propose(team.engineer, judged.better, asked=[team.reviewer, team.second])
    better = Proposal.objects.latest("pk")
    if "closed" in address or "kernels" in address:
        votes.vote(better.pk, team.reviewer, "approve", better.digest)
        accepting.accept(better.pk, team.reviewer, better.digest)
    assert asked(client, address) == before
    assert before <= most
