"""Who hears what of an accepted kernel that its host puts in doubt: everyone who answers for it, in plain words."""

from __future__ import annotations

from dataclasses import replace

from apps.kernels.evaluation import Outcome, Tier
from apps.notices.models import Notice
from apps.reviews import accepting, verifying, votes
from apps.reviews.models import AcceptedKernel, Proposal
from tests.pages import evaluations
from tests.reviews.conftest import Team, in_full, measured_again, signed_in_as


def heard(kernel: AcceptedKernel) -> list[tuple[str, str]]:
    found = Notice.objects.filter(link=kernel.get_absolute_url()).order_by("id")
    return [(one.person.username, one.title.partition(":")[0]) for one in found]


def test_a_changed_host_and_a_kernel_that_no_longer_holds(team: Team, kernel: AcceptedKernel) -> None:
    AcceptedKernel.objects.filter(pk=kernel.pk).update(environment={"torch": "2.6.0"})
    kernel.refresh_from_db()
    verifying.look_at(kernel)
    assert sorted(heard(kernel)) == [
        (name, "PRAGMA flagged it, its host has changed") for name in sorted((team.engineer.username, "remy"))
    ]
    Notice.objects.all().delete()
    measured_again(kernel.version, replace(evaluations.wrong(), tier=Tier.FULL))
    assert {words for _, words in heard(kernel)} == {"PRAGMA judged it again, and it no longer holds"}
    page = signed_in_as(team.viewer).get(kernel.get_absolute_url()).content.decode()
    assert "no longer holds" in page and "✕ did not hold" in page


def test_one_that_is_slower_now_is_told_too(team: Team, kernel: AcceptedKernel) -> None:
    measured_again(kernel.version, in_full(2.4, Outcome.SLOWER))
    assert {name for name, _ in heard(kernel)} == {team.engineer.username, "remy"}
    kernel.refresh_from_db()
    assert "slower" in kernel.doubt_detail


def test_who_accepted_it_without_a_vote_hears_of_it(team: Team, proposal: Proposal) -> None:
    votes.vote(proposal.pk, team.reviewer, "approve", proposal.digest)
    kernel = accepting.accept(proposal.pk, team.second, proposal.digest)
    measured_again(kernel.version, in_full(2.4, Outcome.SLOWER))
    assert "sol" in {name for name, _ in heard(kernel)}
