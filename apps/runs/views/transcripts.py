"""A run's transcript as a file, and the run that such a file holds."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from apps.people.permissions import Action
from apps.runs.models import Run
from apps.runs.refusals import Refused
from apps.runs.transcripts import exporting, importing, transcript
from apps.runs.views.asking import person_who_may


def export(request: HttpRequest, pk: int) -> HttpResponse:
    """The transcript of a run that is over, or back to the run with the reason why there is none."""
    run = get_object_or_404(Run.objects.select_related("problem", "sizing", "device__host"), pk=pk)
    person_who_may(request, Action.VIEW, run)
    try:
        text = transcript.written(exporting.transcript_of(run))
    except Refused as refusal:
        messages.error(request, refusal.message, "bad")
        return redirect(run)
    answer = HttpResponse(text, content_type="application/json; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="pragma-run-{pk}.transcript.json"'
    return answer


@require_POST
def take_in(request: HttpRequest) -> HttpResponse:
    """Takes an uploaded transcript in and shows its run, or goes back to the list with what is wrong with it."""
    person = person_who_may(request, Action.ADD_PROBLEM)
    upload = request.FILES.get("file")
    try:
        if upload is None:
            raise Refused("Choose a transcript's file first: a run's page exports one.")
        if (upload.size or 0) > transcript.LARGEST:
            raise Refused(transcript.too_large(upload.size or 0))
        run = importing.take_in(person, upload.read())
    except Refused as refusal:
        messages.error(request, refusal.message, "bad")
        return redirect("runs")
    told = importing.imported(run)
    exact = told is not None and told.exact
    how = "and replayed exactly" if exact else "; its replay differs from the record, as its page says"
    messages.success(request, f"Taken in as run {run.pk}{' ' if exact else ''}{how}.", "good" if exact else "warn")
    return redirect(run)
