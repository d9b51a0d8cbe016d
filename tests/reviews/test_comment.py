"""Comments on lines: drafts, threads, and lines that move."""

from __future__ import annotations

import pytest

from apps.people.refusals import Refused
from apps.reviews import comments, proposing, votes
from apps.reviews.comments import OldSide
from apps.reviews.models import Comment, Proposal, Revision, Side
from apps.reviews.presentation.threads import Place, carried, threads_of
from tests.pages import factories
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
    now = line_of(judged.better.source, "class ModelNew")
    assert first.place == Place(Side.NEW, now, now)
    assert now != kept
    assert second.place is None
    assert "#pragma omp" in second.excerpt
    page = signed_in_as(team.engineer).get(f"{proposal.get_absolute_url()}?view=code").content.decode()
    assert f"?rev=1#c{second.root.pk}" in page
    # Held against the revision it was written on, its line is among those that went.
    _, second = threads_of(proposal, shown, team.engineer, judged.faster.source)
    assert second.place == Place(Side.OLD, gone, gone)


@pytest.fixture
def on_removed(team: Team, judged: Judged, proposal: Proposal) -> Comment:
    """What somebody says of two lines that the version removed from its parent."""
    line = len(judged.quick.source.splitlines())
    fields = {"first": line - 1, "last": line, "base": f"{judged.run.pk}.1", "revision": 1, "now": 1}
    post(team.reviewer, proposal, do="comment", text="Why did this go?", **fields)
    return Comment.objects.get(text="Why did this go?")


def test_lines_that_were_removed_can_be_commented_on(
    team: Team, judged: Judged, proposal: Proposal, on_removed: Comment
) -> None:
    line = len(judged.quick.source.splitlines())
    assert (on_removed.side, on_removed.base, on_removed.last_line) == ("old", judged.quick, line)
    client, address = signed_in_as(team.engineer), proposal.get_absolute_url()
    for view in ("split", "unified"):
        page = client.get(f"{address}?view={view}").content.decode()
        shown = page[page.index(f'id="O{line}"') :]
        assert f"Comment on removed line {line}" in shown
        assert shown.index("Why did this go?") < shown.index("</section>"), "below its line, not in the conversation"
        assert f"on removed lines {line - 1}–{line} of run {judged.run.pk} v1" in shown
    whole = client.get(f"{address}?view=code").content.decode()
    talk = whole[whole.index('id="review-talk"') :]
    assert "which is not what is shown here" in talk
    there = f"?rev=1&amp;view=split&amp;base={judged.run.pk}.1#c{on_removed.pk}"
    assert there in talk
    assert f'id="O{line}"' in client.get(address + there.replace("&amp;", "&").partition("#")[0]).content.decode()


def test_a_comment_on_removed_lines_after_a_new_version(
    team: Team, judged: Judged, proposal: Proposal, on_removed: Comment
) -> None:
    proposing.revise(proposal.pk, team.engineer, judged.better)
    proposal.refresh_from_db()
    client, address = signed_in_as(team.engineer), proposal.get_absolute_url()
    page = client.get(address).content.decode()
    assert f"base={judged.run.pk}.1#c{on_removed.pk}" in page, "v3 has another parent: it says where it belongs"
    assert f'<option value="{judged.run.pk}.1"' in page, "and that text can be chosen"
    against = client.get(f"{address}?base={judged.run.pk}.1").content.decode()
    assert against.index(f'id="c{on_removed.pk}"') < against.index('id="review-talk"')


def test_a_composer_for_a_removed_line_keeps_which_text_it_is_of(
    team: Team, judged: Judged, proposal: Proposal
) -> None:
    client, address = signed_in_as(team.reviewer), proposal.get_absolute_url()
    form = client.get(f"{address}composer/?at=o3&base={judged.run.pk}.1&rev=1").content.decode()
    assert f'name="base" value="{judged.run.pk}.1"' in form
    assert client.get(f"{address}composer/?at=o3&base=999.1&rev=1").status_code == 404
    last = len(judged.quick.source.splitlines())
    plain = client.get(f"{address}?at=o{last}").content.decode()
    assert f'name="base" value="{judged.run.pk}.1"' in plain, "the same without a script"


def test_removed_lines_over_rest(team: Team, judged: Judged, proposal: Proposal) -> None:
    client, address = signed_in_as(team.reviewer), f"/api/v1/reviews/{proposal.pk}/comments/"

    def write(**fields: object):  # type: ignore[no-untyped-def]
        return client.post(address, {"text": "hm", "side": "old", **fields}, content_type="application/json")

    said = write(base="reference", first_line=1, publish=True).json()
    assert (said["side"], said["base"], said["first_line"], said["last_line"]) == ("old", "reference", 1, 1)
    assert client.get(f"/api/v1/reviews/{proposal.pk}/").json()["record"]["comments"][0]["base"] == "reference"
    assert "no version" in write(first_line=1).json()["message"]
    assert "Lines go from 1 to" in write(base="reference", first_line=9999).json()["message"]
    assert "first_line" in write(base="reference").json()["message"]


def test_a_version_of_another_problem_is_no_old_side(team: Team, judged: Judged, proposal: Proposal) -> None:
    other = factories.ProblemFactory.create()
    type(judged.run).objects.filter(pk=judged.run.pk).update(problem=other)
    with pytest.raises(Refused, match="another problem"):
        comments.write(proposal.pk, team.reviewer, "x", lines=(1, 1), old=OldSide.named(f"{judged.run.pk}.1"))


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
