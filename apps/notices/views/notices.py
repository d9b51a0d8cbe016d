"""The list behind the bell."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from apps.notices.models import Notice
from apps.people.asking import person_who_may
from apps.people.permissions import Action

PER_PAGE = 50


def notices(request: HttpRequest) -> HttpResponse:
    """One's own notices, newest first; `unread=1` leaves out what was read."""
    person = person_who_may(request, Action.KEEP_ACCOUNT)
    mine = Notice.objects.filter(person=person, shown=True)
    only_unread = request.GET.get("unread") == "1"
    shown = mine.filter(read_at=None) if only_unread else mine
    page = Paginator(shown, PER_PAGE).get_page(request.GET.get("page"))
    return render(
        request,
        "notices/list.html",
        {"page": page, "only_unread": only_unread, "unread": mine.filter(read_at=None).count()},
    )


@require_POST
def open_notice(request: HttpRequest, pk: int) -> HttpResponse:
    """Marks one as read and goes where it leads."""
    person = person_who_may(request, Action.KEEP_ACCOUNT)
    notice = get_object_or_404(Notice, pk=pk, person=person)
    Notice.objects.filter(pk=notice.pk, read_at=None).update(read_at=timezone.now())
    ours = url_has_allowed_host_and_scheme(notice.link, {request.get_host()})
    return redirect(notice.link if notice.link and ours else "notices")


@require_POST
def read_all(request: HttpRequest) -> HttpResponse:
    """Marks everything as read that was there when the page was loaded."""
    person = person_who_may(request, Action.KEEP_ACCOUNT)
    until = request.POST.get("until", "")
    mine = Notice.objects.filter(person=person, read_at=None)
    if until.isdecimal() and len(until) < 19:
        mine = mine.filter(pk__lte=int(until))
    mine.update(read_at=timezone.now())
    return redirect("notices")
