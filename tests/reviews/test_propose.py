"""Putting a version up for review."""

from __future__ import annotations

import pytest

from apps.hosts.models import Device, Job
from apps.notices.models import Notice
from apps.people.refusals import Refused
from apps.reviews import evidence, proposing
from apps.reviews.models import AcceptedKernel, Proposal, ProposalState, Revision
from apps.runs.models import Event
from tests.reviews.conftest import Judged, Team, in_full, measured_again, signed_in_as


def address(version) -> str:  # type: ignore[no-untyped-def]
    return f"/reviews/new/?version={version.run_id}.{version.number}"


def test_an_engineer_proposes_a_version_judged_faster_in_full(team: Team, judged: Judged) -> None:
    client = signed_in_as(team.engineer)
    assert "Propose for review" in client.get(judged.faster.get_absolute_url()).content.decode()
    asked = {"note": "one pass", "asked": [team.reviewer.pk]}
    answer = client.post(address(judged.faster), asked)
    proposal = Proposal.objects.get()
    assert answer["Location"] == proposal.get_absolute_url()
    assert (proposal.digest, proposal.state, proposal.device) == (judged.faster.digest, "open", judged.run.device)
    assert [d.kind for d in proposal.decisions.all()] == ["proposed", "asked"]
    assert Revision.objects.get().measurement == judged.faster.measurement
    told = Notice.objects.get()
    assert (told.person, told.kind, told.link) == (team.reviewer, "review_asked", proposal.get_absolute_url())
    assert "proposes v2" in Event.objects.get(run=judged.run).text
    page = client.get(proposal.get_absolute_url()).content.decode()
    assert "one pass" in page
    assert "not voted yet" in page


def test_without_a_full_measurement_it_is_refused_and_one_is_offered(team: Team, judged: Judged) -> None:
    client = signed_in_as(team.engineer)
    page = client.get(address(judged.quick)).content.decode()
    assert "has not been judged in full on here/cpu" in page
    assert "Measure again in full" in page
    answer = client.post(address(judged.quick), {"note": ""})
    assert answer.status_code == 422
    assert not Proposal.objects.exists()
    run, number = judged.quick.run_id, judged.quick.number
    client.post(f"/runs/{run}/v{number}/again/", {"device": "here/cpu"})
    assert Job.objects.get().request["tier"] == "full"
    assert "measures it now" in client.get(address(judged.quick)).content.decode()


@pytest.mark.parametrize(("which", "says"), [("wrong", "judged incorrect"), ("slower", "slower than eager")])
def test_what_is_wrong_or_slower_is_refused(team: Team, judged: Judged, which: str, says: str) -> None:
    with pytest.raises(Refused, match=says if which == "slower" else "judged|Mend"):
        proposing.propose(team.engineer, getattr(judged, which))
    assert not Proposal.objects.exists()


def test_what_lies_within_noise_can_be_discussed(team: Team, judged: Judged) -> None:
    page = signed_in_as(team.engineer).get(address(judged.noise)).content.decode()
    assert "can be discussed, not accepted" in page
    assert proposing.propose(team.engineer, judged.noise).state == ProposalState.OPEN


def test_a_later_measurement_that_calls_it_wrong_counts_wherever_it_was_made(
    team: Team, judged: Judged, other_device: Device
) -> None:
    measured_again(judged.faster, judged_wrong(), other_device)
    assert evidence.evidence_of(judged.faster, judged.run.device).against is not None
    with pytest.raises(Refused, match="there/cpu judged v2 incorrect"):
        proposing.propose(team.engineer, judged.faster)
    measured_again(judged.faster, in_full(0.6), other_device)
    assert proposing.propose(team.engineer, judged.faster).pk


def test_what_was_measured_elsewhere_is_no_evidence_here(team: Team, judged: Judged, other_device: Device) -> None:
    Device.objects.filter(pk=other_device.pk).update(retired=True)
    measured_again(judged.faster, in_full(0.6), other_device)
    other_device.refresh_from_db()
    with pytest.raises(Refused, match="no device of this installation"):
        proposing.propose(team.engineer, judged.faster, other_device)


def test_the_same_text_is_not_reviewed_twice(team: Team, judged: Judged, proposal: Proposal) -> None:
    with pytest.raises(Refused, match=f"under review already: Review {proposal.pk}"):
        proposing.propose(team.engineer, judged.faster)


def test_the_accepted_text_is_not_proposed_again(team: Team, judged: Judged, kernel: AcceptedKernel) -> None:
    with pytest.raises(Refused, match="accepted kernel already"):
        proposing.propose(team.engineer, judged.faster)


def test_a_viewer_proposes_nothing(team: Team, judged: Judged) -> None:
    client = signed_in_as(team.viewer)
    assert "Propose for review" not in client.get(judged.faster.get_absolute_url()).content.decode()
    assert client.post(address(judged.faster), {}).status_code == 403
    assert not Proposal.objects.exists()


def test_only_those_who_may_vote_are_asked(team: Team, judged: Judged) -> None:
    with pytest.raises(Refused, match="can't vote"):
        proposing.propose(team.engineer, judged.faster, asked=[team.viewer])
    assert not Proposal.objects.exists()


def test_who_proposed_it_or_an_admin_withdraws_it(team: Team, proposal: Proposal) -> None:
    with pytest.raises(Refused, match="Only Ada Moss"):
        proposing.withdraw(proposal.pk, team.second)
    signed_in_as(team.engineer).post(f"/reviews/{proposal.pk}/do/", {"do": "withdraw"})
    proposal.refresh_from_db()
    assert proposal.state == ProposalState.WITHDRAWN
    with pytest.raises(Refused, match="was withdrawn"):
        proposing.withdraw(proposal.pk, team.admin)


def test_proposing_by_rest(team: Team, judged: Judged) -> None:
    client = signed_in_as(team.engineer)
    asked = {"run": judged.run.pk, "version": 2, "note": "faster", "asked": ["remy"]}
    answer = client.post("/api/v1/reviews/", asked, content_type="application/json")
    assert answer.status_code == 201, answer.content
    told = answer.json()
    assert (told["state"], told["standing"], told["version"]) == ("open", "waiting", f"{judged.run.pk}.2")
    assert told["source"] == judged.faster.source
    assert told["evidence"]["outcome"] == "faster"
    refused = client.post("/api/v1/reviews/", {**asked, "version": 1}, content_type="application/json")
    assert refused.status_code in (400, 409)
    assert "not been judged in full" in refused.json()["message"]
    listed = signed_in_as(team.reviewer).get("/api/v1/reviews/?waiting=true").json()
    assert [one["id"] for one in listed["results"]] == [told["id"]]
    viewer = signed_in_as(team.viewer)
    assert viewer.post("/api/v1/reviews/", asked, content_type="application/json").status_code == 403


def judged_wrong():  # type: ignore[no-untyped-def]
    from tests.pages import evaluations

    return evaluations.wrong()
