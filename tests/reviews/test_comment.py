"""Comments on lines: drafts, threads, and lines that move."""

from __future__ import annotations

import pytest

from apps.people.refusals import Refused
from apps.reviews import comments, proposing, votes
from apps.reviews.models import Comment, Proposal, Revision
from apps.reviews.presentation.threads import carried, threads_of
from tests.reviews.conftest import Judged, Team, signed_in_as


def post(person, proposal: Proposal, **fields: object):  # type: ignore[no-untyped-def]
    return signed_in_as(person).post(f"/reviews/{proposal.pk}/do/", fields, follow=True)


def test_a_draft_is_its_author_s_alone_until_the_vote(team: Team, proposal: Proposal) -> None:
    post(team.reviewer, proposal, do="comment", first=18, last=20, text="What if n is odd?")
    address = proposal.get_absolute_url()
    assert "What if n is odd?" in signed_in_as(team.reviewer).get(address).content.decode()
    assert "What if n is odd?" not in signed_in_as(team.engineer).get(address).content.decode()
    rest = f"/api/v1/reviews/{proposal.pk}/comments/"
    assert signed_in_as(team.engineer).get(rest).json() == []
    assert "What if n is odd?" not in str(signed_in_as(team.engineer).get(f"/api/v1/reviews/{proposal.pk}/").json())
    votes.vote(proposal.pk, team.reviewer, "changes", proposal.digest)
    assert "What if n is odd?" in signed_in_as(team.engineer).get(address).content.decode()
    assert signed_in_as(team.engineer).get(rest).json()[0]["first_line"] == 18


def test_a_reply_and_a_resolution(team: Team, proposal: Proposal) -> None:
    thread = comments.publish(comments.write(proposal.pk, team.reviewer, "Aligned?", lines=(18, 18)).pk, team.reviewer)
    post(team.engineer, proposal, do="comment", parent=thread.pk, text="Yes: empty_like aligns it.", now=1)
    assert [reply.text for reply in thread.replies.all()] == ["Yes: empty_like aligns it."]
    page = post(team.engineer, proposal, do="resolve", comment=thread.pk).content.decode()
    assert "Resolved by Ada Moss" in page
    with pytest.raises(Refused, match="resolved already"):
        comments.resolve(thread.pk, team.reviewer)
    comments.reopen(thread.pk, team.reviewer)
    assert [d.kind for d in proposal.decisions.all()][-2:] == ["resolved", "reopened"]


@pytest.mark.parametrize("lines", [(0, 1), (5, 4), (1, 9999)])
def test_lines_that_are_not_there_are_refused(team: Team, proposal: Proposal, lines: tuple[int, int]) -> None:
    with pytest.raises(Refused, match="Lines go from 1 to"):
        comments.write(proposal.pk, team.reviewer, "here", lines=lines)
    assert not Comment.objects.exists()


def test_what_is_published_stays_as_it_was_written(team: Team, proposal: Proposal) -> None:
    said = comments.write(proposal.pk, team.reviewer, "Hm.")
    comments.rewrite(said.pk, team.reviewer, "Hm, aligned?")
    comments.publish(said.pk, team.reviewer)
    for deed in (
        lambda: comments.rewrite(said.pk, team.reviewer, "Never mind"),
        lambda: comments.discard(said.pk, team.reviewer),
    ):
        with pytest.raises(Refused, match="stays as it was written"):
            deed()
    assert Comment.objects.get().text == "Hm, aligned?"


def test_nobody_touches_another_s_draft(team: Team, proposal: Proposal) -> None:
    draft = comments.write(proposal.pk, team.reviewer, "mine")
    for deed in (comments.discard, comments.publish):
        with pytest.raises(Refused, match="no such draft of yours"):
            deed(draft.pk, team.admin)
    rest = signed_in_as(team.admin).delete(f"/api/v1/reviews/{proposal.pk}/comments/{draft.pk}/")
    assert rest.status_code == 409
    assert Comment.objects.filter(pk=draft.pk).exists()


def test_a_viewer_writes_nothing(team: Team, proposal: Proposal) -> None:
    client = signed_in_as(team.viewer)
    assert client.post(f"/reviews/{proposal.pk}/do/", {"do": "comment", "text": "hi"}).status_code == 403
    page = client.get(proposal.get_absolute_url()).content.decode()
    assert "Comment on line" not in page
    body = {"text": "hi"}
    rest = client.post(f"/api/v1/reviews/{proposal.pk}/comments/", body, content_type="application/json")
    assert rest.status_code == 403
    assert not Comment.objects.exists()


def test_a_comment_follows_its_lines_into_a_new_version(team: Team, judged: Judged, proposal: Proposal) -> None:
    kept, gone = line_of(judged.faster.source, "class ModelNew"), line_of(judged.faster.source, "#pragma omp")
    comments.publish(comments.write(proposal.pk, team.reviewer, "good name", lines=(kept, kept)).pk, team.reviewer)
    comments.publish(comments.write(proposal.pk, team.reviewer, "why simd?", lines=(gone, gone)).pk, team.reviewer)
    revision = proposing.revise(proposal.pk, team.engineer, judged.better)
    proposal.refresh_from_db()
    shown = Revision.objects.select_related("version").get(pk=revision.pk)
    first, second = threads_of(proposal, shown, team.engineer)
    assert first.last == line_of(judged.better.source, "class ModelNew") != kept
    assert (second.outdated, second.last) == (True, None)
    assert "#pragma omp" in second.excerpt


def test_lines_carried_from_one_text_to_another() -> None:
    old, new = "a\nb\nc\nd\n", "new\na\nb\nC\nd\n"
    assert carried(old, new, 1, 2) == (2, 3)
    assert carried(old, new, 2, 3) is None
    assert carried(old, new, 4, 4) == (5, 5)
    assert carried(old, old, 2, 3) == (2, 3)


def test_what_people_write_is_shown_as_text(team: Team, proposal: Proposal) -> None:
    evil = "<script>alert(1)</script> javascript:alert(2)"
    said = comments.write(proposal.pk, team.reviewer, evil, lines=(3, 3))
    comments.publish(said.pk, team.reviewer)
    for query in ("", "?view=unified", "?view=code", "?tab=history"):
        page = signed_in_as(team.engineer).get(proposal.get_absolute_url() + query).content.decode()
        assert "<script>alert(1)" not in page
        assert 'href="javascript:' not in page


def line_of(source: str, text: str) -> int:
    return next(number for number, line in enumerate(source.splitlines(), 1) if text in line)
