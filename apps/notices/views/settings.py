"""Settings › Notifications."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from apps.notices import choosing, webhooks
from apps.notices.forms import choices_sent, field_name
from apps.notices.models import Delivery, Kind, Way, Webhook
from apps.people.asking import person_who_may
from apps.people.mail import mail_is_set_up
from apps.people.permissions import Action, may
from apps.people.refusals import Refused

_DELIVERIES_SHOWN = 20


def notifications(request: HttpRequest) -> HttpResponse:
    """Which notices by which way; sent, the boxes are kept."""
    person = person_who_may(request, Action.KEEP_ACCOUNT)
    if request.method == "POST":
        choosing.choose(person, choices_sent(request.POST))
        messages.success(request, "Saved.", "good")
        return redirect("settings-notifications")
    mine = choosing.choices_of([person])[person.pk]
    others = Webhook.objects.exclude(person=person).select_related("person", "private_allowed_by")
    context = {
        "rows": [(kind.label, [(way, field_name(kind, way), mine[kind, way]) for way in Way]) for kind in Kind],
        "ways": [way.label for way in Way],
        "hooks": [
            (hook, webhooks.trouble(hook), webhooks.waiting(hook)) for hook in Webhook.objects.filter(person=person)
        ],
        "others": others if may(person, Action.ADMINISTER) else [],
        "mail": mail_is_set_up(),
        "deliveries": Delivery.objects.filter(person=person, notice__isnull=False)
        .select_related("notice", "webhook")
        .order_by("-id")[:_DELIVERIES_SHOWN],
    }
    return render(request, "settings/notifications.html", context)


@require_POST
def add_webhook(request: HttpRequest) -> HttpResponse:
    """One more address that notices are posted to."""
    person = person_who_may(request, Action.KEEP_ACCOUNT)
    try:
        hook = webhooks.add(person, request.POST.get("url", ""))
    except Refused as refusal:
        messages.error(request, refusal.message, "bad")
        return redirect("settings-notifications")
    if trouble := webhooks.trouble(hook):
        messages.warning(request, f"It is kept, but nothing is posted there yet: {trouble}", "warn")
    return redirect("settings-notifications")


@require_POST
def change_webhook(request: HttpRequest, pk: int) -> HttpResponse:
    """Tried, removed; for admins: let into a private network, or no longer."""
    person = person_who_may(request, Action.KEEP_ACCOUNT)
    admin = may(person, Action.ADMINISTER)
    hook = get_object_or_404(Webhook.objects.all() if admin else Webhook.objects.filter(person=person), pk=pk)
    match request.POST.get("do"):
        case "allow" | "forbid" as word:
            person_who_may(request, Action.ADMINISTER)
            webhooks.allow_private(hook, person, allowed=word == "allow")
        case "remove":
            webhooks.remove(hook, person)
            messages.success(request, "Nothing is posted there any more.", "good")
        case "try" if hook.person_id == person.pk:
            try:
                webhooks.try_out(hook, settings.ADDRESS)
                messages.success(request, "It took a signed notice.", "good")
            except webhooks.NotTaken as problem:
                messages.error(request, f"It did not take a notice: {problem}", "bad")
    return redirect("settings-notifications")
