"""Revoking: with a reason, by those who may, once."""

from __future__ import annotations

import pytest

from apps.people.refusals import Refused
from apps.reviews import proposing, revoking, verifying
from apps.reviews.export import fetching
from apps.reviews.models import AcceptedKernel, KernelState
from apps.reviews.proposing import Slot
from tests.reviews.conftest import Judged, Team, signed_in_as


def test_a_reviewer_revokes_with_a_reason(team: Team, judged: Judged, kernel: AcceptedKernel) -> None:
    client = signed_in_as(team.reviewer)
    page = client.post(f"/kernels/{kernel.pk}/do/", {"do": "revoke", "reason": "Wrong for NaN."}, follow=True)
    assert "Wrong for NaN." in page.content.decode()
    kernel.refresh_from_db()
    assert (kernel.state, kernel.reason) == (KernelState.REVOKED, "Wrong for NaN.")
    assert kernel.proposal.decisions.last().kind == "revoked"
    assert Slot.of(judged.faster, judged.run.device).accepted() is None
    with pytest.raises(fetching.NoneInUse):
        fetching.in_use(kernel.problem, "here/cpu", "cpp")
    assert proposing.propose(team.engineer, judged.faster).pk


def test_without_a_reason_it_stays(team: Team, kernel: AcceptedKernel) -> None:
    page = signed_in_as(team.reviewer).post(f"/kernels/{kernel.pk}/do/", {"do": "revoke", "reason": " "}, follow=True)
    assert "Say why" in page.content.decode()
    kernel.refresh_from_db()
    assert kernel.is_current


def test_it_is_revoked_once_and_verified_no_more(team: Team, kernel: AcceptedKernel) -> None:
    revoking.revoke(kernel.pk, team.reviewer, "Wrong.")
    with pytest.raises(Refused, match="revoked already: Wrong"):
        revoking.revoke(kernel.pk, team.admin, "Again.")
    kernel.refresh_from_db()
    with pytest.raises(Refused, match="is revoked"):
        verifying.verify(kernel, team.engineer)


def test_an_engineer_revokes_nothing(team: Team, kernel: AcceptedKernel) -> None:
    client = signed_in_as(team.engineer)
    assert "Revoke…" not in client.get(kernel.get_absolute_url()).content.decode()
    assert client.post(f"/kernels/{kernel.pk}/do/", {"do": "revoke", "reason": "x"}).status_code == 403
    rest = f"/api/v1/kernels/{kernel.pk}/revoke/"
    assert client.post(rest, {"reason": "x"}, content_type="application/json").status_code == 403
    kernel.refresh_from_db()
    assert kernel.is_current
    good = signed_in_as(team.reviewer).post(rest, {"reason": "x"}, content_type="application/json")
    assert good.json()["state"] == "revoked"
