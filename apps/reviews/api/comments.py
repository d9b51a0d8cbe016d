"""The REST views of comments of a review."""

from __future__ import annotations

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.people.api.asking import AskingViews, ask
from apps.people.api.errors import Complaint
from apps.people.permissions import Action
from apps.people.refusals import Refused
from apps.reviews import comments
from apps.reviews.api import serializers as shapes
from apps.reviews.models import Comment, Proposal, Side


class CommentViews(AskingViews):
    """Comments of a review."""

    serializer_class = shapes.CommentSerializer
    queryset = Comment.objects.none()
    lookup_value_regex = r"\d+"

    @extend_schema(responses=shapes.CommentSerializer(many=True))
    def list(self, request: Request, review_pk: str) -> Response:
        """What is published, and one's own drafts."""
        proposal = self._proposal(review_pk)
        found = proposal.comments.select_related("by", "revision", "resolved_by", "base")
        mine = [one for one in found if not one.is_draft or one.by_id == self.person.pk]
        return Response(shapes.CommentSerializer(mine, many=True).data)

    @extend_schema(request=shapes.NewComment, responses={201: shapes.CommentSerializer, 400: Complaint})
    def create(self, request: Request, review_pk: str) -> Response:
        """Write one: on lines, on the whole, or in reply."""
        proposal = self._proposal(review_pk)
        ask(self.person, Action.COMMENT, proposal)
        fields = self.read(shapes.NewComment).validated_data
        first, last = fields["first_line"], fields["last_line"]
        lines = (first, last if last is not None else first) if first is not None else None
        comment = comments.write(
            proposal.pk,
            self.person,
            fields["text"],
            lines=lines,
            old=self._old_side(fields, lines),
            parent=fields["reply_to"],
            revision=fields["revision"],
        )
        if fields["publish"]:
            comment = comments.publish(comment.pk, self.person)
        return Response(shapes.CommentSerializer(comment).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=shapes.ChangedComment, responses={200: shapes.CommentSerializer, 409: Complaint})
    def partial_update(self, request: Request, review_pk: str, pk: str) -> Response:
        """Change one's own draft, or publish it; resolve or reopen a thread."""
        comment = self._comment(review_pk, pk)
        fields = self.read(shapes.ChangedComment).validated_data
        if "text" in fields:
            comment = comments.rewrite(comment.pk, self.person, fields["text"])
        deeds = {"publish": comments.publish, "resolve": comments.resolve, "reopen": comments.reopen}
        if deed := deeds.get(fields.get("do", "")):
            comment = deed(comment.pk, self.person)
        return Response(shapes.CommentSerializer(comment).data)

    @extend_schema(responses={204: None, 409: Complaint})
    def destroy(self, request: Request, review_pk: str, pk: str) -> Response:
        """Throw one's own draft away."""
        comments.discard(self._comment(review_pk, pk).pk, self.person)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _old_side(self, fields: dict[str, Any], lines: tuple[int, int] | None) -> comments.OldSide | None:
        if fields["side"] == Side.NEW:
            return None
        if lines is None:
            raise Refused("A side has lines: give first_line.", "first_line")
        return comments.OldSide.named(fields["base"] or "")

    def _proposal(self, pk: str) -> Proposal:
        return get_object_or_404(Proposal, pk=pk)

    def _comment(self, review_pk: str, pk: str) -> Comment:
        proposal = self._proposal(review_pk)
        ask(self.person, Action.COMMENT, proposal)
        found = get_object_or_404(proposal.comments.select_related("revision", "by"), pk=pk)
        if found.is_draft and found.by_id != self.person.pk:
            raise Refused("There is no such draft of yours.")
        return found
