"""Measuring again from a review: on the hosts chosen, all of them or none, or in pairs against the accepted kernel."""

from __future__ import annotations

from typing import Any

from apps.hosts.models import Device, Job
from apps.reviews import accepting, proposing, votes
from apps.reviews.models import Proposal
from tests.reviews.conftest import Judged, Team, signed_in_as


def post(team: Team, proposal: Proposal, **fields: Any) -> Any:
    address = f"/api/v1/reviews/{proposal.pk}/measure/"
    return signed_in_as(team.engineer).post(address, fields, content_type="application/json")


def test_chosen_hosts_measure_it_and_the_page_says_so(team: Team, proposal: Proposal, other_device: Device) -> None:
    client = signed_in_as(team.engineer)
    here = str(proposal.device)
    page = client.post(
        f"/reviews/{proposal.pk}/do/", {"do": "measure", "device": [here, str(other_device)]}, follow=True
    ).content.decode()
    assert "measure it again; the result shows here" in page
    asked = Job.objects.filter(key__startswith=f"again:{proposal.version_id}:")
    assert sorted(str(job.device) for job in asked) == sorted([here, str(other_device)])
    assert {job.owner for job in asked} == {team.engineer}
    assert f"{here} measures v2 again, asked by" in page


def test_one_that_can_not_leaves_the_others_alone(team: Team, proposal: Proposal, other_device: Device) -> None:
    type(other_device.host).objects.filter(pk=other_device.host_id).update(enabled=False)
    answer = post(team, proposal, devices=[str(proposal.device), str(other_device)])
    assert answer.status_code == 400
    assert "is drained" in answer.json()["message"]
    assert not Job.objects.exists()
    assert post(team, proposal, devices=["nowhere/cpu"]).json()["field"] == "device"
    assert post(team, proposal, devices=[]).status_code == 400


def test_over_rest_each_job_is_told(team: Team, proposal: Proposal) -> None:
    answer = post(team, proposal, devices=[str(proposal.device)] * 2)
    assert answer.status_code == 202
    assert [one["job"] for one in answer.json()] == [Job.objects.get().pk]
    again = post(team, proposal, devices=[str(proposal.device)])
    assert "again already" in again.json()["message"]


def test_in_pairs_against_the_accepted_one(team: Team, judged: Judged, proposal: Proposal) -> None:
    refused = post(team, proposal, devices=[str(proposal.device)], against_accepted=True)
    assert "Nothing else is accepted" in refused.json()["message"]
    votes.vote(proposal.pk, team.reviewer, "approve", proposal.digest)
    accepting.accept(proposal.pk, team.reviewer, proposal.digest)
    rival = proposing.propose(team.engineer, judged.better)
    assert post(team, rival, devices=[str(rival.device)], against_accepted=True).status_code == 202
    job = Job.objects.get()
    assert job.request["against"] == judged.faster.source
    assert job.request["candidate"] == judged.better.source
