"""Reviews for pages: one kernel accepted, a better version under review with a conversation on its lines."""

from __future__ import annotations

from typing import Any

from apps.kernels.evaluation import Tier
from apps.people.models import Role
from apps.reviews import accepting, comments, proposing, votes
from apps.runs.models import Purpose
from tests.pages import evaluations, factories


def reviewed(world: dict[str, Any]) -> dict[str, Any]:
    """The world of pages with an accepted kernel (`kernel`) and an open review (`review`) beside its runs."""
    run, admin, engineer = world["done"], world["person"], world["colleague"]
    reviewer = factories.PersonFactory.create(username="remy", first_name="Remy", last_name="Ito", role=Role.REVIEWER)
    plain, third, fourth = (run.versions.get(number=number) for number in (1, 3, 4))
    factories.measure(third, evaluations.correct(0.611, Tier.FULL, vector_bits=256), Purpose.FINAL)
    first = proposing.propose(engineer, third, note="The tail is the loop's own.", asked=[reviewer])
    votes.vote(first.pk, reviewer, "approve", first.digest, "Clean, and no tail to get wrong.")
    kernel = accepting.accept(first.pk, reviewer, first.digest, "For the release.")
    factories.measure(plain, evaluations.correct(1.03, Tier.FULL, vector_bits=256), Purpose.FINAL)
    review = proposing.propose(engineer, plain, note="A plain loop, to begin with.", asked=[admin, reviewer])
    votes.vote(review.pk, admin, "changes", review.digest, "It should stream its stores.")
    proposing.revise(review.pk, engineer, fourth, "Streaming stores, 512-bit vectors, blocks of 8 K.")
    review.refresh_from_db()
    line = next(n for n, text in enumerate(fourth.source.splitlines(), 1) if "_mm512_stream_ps" in text)
    asked = comments.write(
        review.pk,
        reviewer,
        "Streaming stores need y aligned to 64 bytes. What if a caller passes a view?",
        lines=(line, line),
    )
    comments.publish(asked.pk, reviewer)
    answer = comments.write(review.pk, engineer, "ModelNew allocates y itself; see Checks.", parent=asked.pk)
    comments.publish(answer.pk, engineer)
    done = comments.write(review.pk, reviewer, "Say what BLOCK is measured in.", lines=(line - 8, line - 7))
    comments.resolve(comments.publish(done.pk, reviewer).pk, engineer)
    comments.write(review.pk, admin, "Is the fence needed?", lines=(line + 2, line + 2))
    comments.publish(comments.write(review.pk, reviewer, "Which processors was it tried on?").pk, reviewer)
    return {**world, "reviewer": reviewer, "review": review, "kernel": kernel}
