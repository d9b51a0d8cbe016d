"""Votes: for one content, by those who may, never for one's own; what was decided is never altered."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, connection, transaction

from apps.notices.models import Notice
from apps.people.append_only import NeverAltered
from apps.people.refusals import Refused
from apps.reviews import proposing, rules, votes
from apps.reviews.models import Decision, Proposal, Revision, Standing
from apps.reviews.presentation.queue import waiting_for
from tests.reviews.conftest import Judged, Team, signed_in_as


def vote(person, proposal: Proposal, word: str, **fields: object):  # type: ignore[no-untyped-def]
    asked = {"do": "vote", "vote": word, "digest": proposal.digest, **fields}
    return signed_in_as(person).post(f"/reviews/{proposal.pk}/do/", asked, follow=True)


def test_a_reviewer_approves(team: Team, proposal: Proposal) -> None:
    page = vote(team.reviewer, proposal, "approve", text="Clean.").content.decode()
    proposal.refresh_from_db()
    assert proposal.standing == Standing.APPROVED
    assert "approved" in page
    assert "Clean." in page
    told = Notice.objects.filter(person=team.engineer).get()
    assert (told.kind, told.text) == ("decision", "Clean.")
    said = Decision.objects.get(kind="approved")
    assert (said.digest, said.data["needed"]) == (proposal.digest, 1)


def test_a_vote_holds_for_one_content_and_a_new_version_asks_again(
    team: Team, judged: Judged, proposal: Proposal
) -> None:
    votes.vote(proposal.pk, team.second, "approve", proposal.digest)
    old = proposal.digest
    signed_in_as(team.engineer).post(
        f"/reviews/new/?version={judged.run.pk}.3", {"into": proposal.pk, "note": "streams now"}
    )
    proposal.refresh_from_db()
    assert (proposal.revision, proposal.digest, proposal.standing) == (2, judged.better.digest, Standing.WAITING)
    assert set(proposal.asked.all()) == {team.reviewer, team.second}
    assert proposal in waiting_for(team.second)
    page = signed_in_as(team.second).get(proposal.get_absolute_url()).content.decode()
    assert "You approved revision 1" in page
    assert "approved revision 1; asked again" in page
    changed = signed_in_as(team.second).get(proposal.get_absolute_url() + "?base=r1").content.decode()
    assert "_mm512_stream_ps" in changed
    with pytest.raises(Refused, match="A new version was proposed while you were looking"):
        votes.vote(proposal.pk, team.second, "approve", old)


def test_one_does_not_approve_one_s_own(team: Team, judged: Judged) -> None:
    own = proposing.propose(team.reviewer, judged.faster)
    page = vote(team.reviewer, own, "approve").content.decode()
    assert "somebody else has to approve it" in page
    assert not Decision.objects.filter(kind="approved").exists()
    rules.change(team.admin, approvals=1, own_approval=True)
    vote(team.reviewer, own, "approve")
    own.refresh_from_db()
    assert own.standing == Standing.APPROVED
    rules.change(team.admin, approvals=1, own_approval=False)
    own.refresh_from_db()
    assert own.standing == Standing.WAITING


def test_as_many_approvals_as_the_team_asks_for(team: Team, proposal: Proposal) -> None:
    rules.change(team.admin, approvals=2, own_approval=False)
    votes.vote(proposal.pk, team.reviewer, "approve", proposal.digest)
    votes.vote(proposal.pk, team.reviewer, "approve", proposal.digest)
    proposal.refresh_from_db()
    assert proposal.standing == Standing.WAITING
    assert "1 of 2 approvals" in signed_in_as(team.engineer).get(proposal.get_absolute_url()).content.decode()
    votes.vote(proposal.pk, team.second, "approve", proposal.digest)
    proposal.refresh_from_db()
    assert proposal.standing == Standing.APPROVED


def test_a_request_for_changes_outweighs_approvals_until_it_is_taken_back(team: Team, proposal: Proposal) -> None:
    votes.vote(proposal.pk, team.second, "approve", proposal.digest)
    with pytest.raises(Refused, match="what has to change"):
        votes.vote(proposal.pk, team.reviewer, "changes", proposal.digest)
    votes.vote(proposal.pk, team.reviewer, "changes", proposal.digest, "Handle odd sizes.")
    proposal.refresh_from_db()
    assert proposal.standing == Standing.CHANGES
    votes.vote(proposal.pk, team.reviewer, "approve", proposal.digest)
    proposal.refresh_from_db()
    assert proposal.standing == Standing.APPROVED


def test_an_engineer_comments_but_has_no_vote(team: Team, proposal: Proposal) -> None:
    other = signed_in_as(team.engineer)
    page = vote(team.engineer, proposal, "changes", text="no").content.decode()
    assert "Your role does not allow you to vote" in page
    assert "Approve</button>" not in other.get(proposal.get_absolute_url()).content.decode()
    vote(team.engineer, proposal, "comment", text="a word")
    assert [d.kind for d in Decision.objects.filter(by=team.engineer)][-1] == "commented"
    assert vote(team.viewer, proposal, "comment", text="a word").status_code == 403


def test_what_is_over_is_voted_on_no_more(team: Team, proposal: Proposal) -> None:
    proposing.withdraw(proposal.pk, team.engineer)
    with pytest.raises(Refused, match="was withdrawn, so you can't vote on it"):
        votes.vote(proposal.pk, team.reviewer, "approve", proposal.digest)


def test_voting_by_rest(team: Team, proposal: Proposal) -> None:
    address = f"/api/v1/reviews/{proposal.pk}/vote/"
    stale = {"vote": "approve", "digest": "0" * 64}
    client = signed_in_as(team.reviewer)
    assert client.post(address, stale, content_type="application/json").status_code == 409
    good = {"vote": "approve", "digest": proposal.digest, "text": "ok"}
    told = client.post(address, good, content_type="application/json").json()
    assert (told["standing"], told["approvals"], told["approvals_needed"]) == ("approved", 1, 1)
    assert told["record"]["decisions"][-1]["kind"] == "approved"


def test_nothing_that_was_decided_is_altered(team: Team, proposal: Proposal) -> None:
    decision = votes.vote(proposal.pk, team.reviewer, "approve", proposal.digest)
    decision.text = "forged"
    for deed in (
        decision.save,
        decision.delete,
        lambda: Decision.objects.filter(pk=decision.pk).update(text="forged"),
        Decision.objects.all().delete,
        lambda: Decision.objects.bulk_update([decision], ["text"]),
        lambda: Revision.objects.update(digest="0"),
    ):
        with pytest.raises(NeverAltered):
            deed()


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE reviews_decision SET text = 'forged'",
        "DELETE FROM reviews_decision",
        "UPDATE reviews_revision SET digest = ''",
        "DELETE FROM reviews_revision",
    ],
)
def test_the_database_itself_refuses(team: Team, proposal: Proposal, sql: str) -> None:
    with pytest.raises(DatabaseError, match="kept as it was written"):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql)


def test_the_rules_are_an_admin_s(team: Team) -> None:
    assert signed_in_as(team.reviewer).post("/settings/reviews/", {"approvals": 1}).status_code == 403
    client = signed_in_as(team.admin)
    assert client.post("/settings/reviews/", {"approvals": "3", "own_approval": "on"}).status_code == 302
    assert (rules.current().approvals, rules.current().own_approval) == (3, True)
    assert "between 1 and 9" in client.post("/settings/reviews/", {"approvals": "0"}).content.decode()
    assert client.get("/api/v1/reviews/rules/").json() == {"approvals": 3, "own_approval": True}
