"""Tags and filters that every page uses: figures, times, the address with one thing changed, the theme."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from django import template
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from apps.kernels.machine import mix_in_words, peak_in_words
from apps.people.models import Person
from apps.people.permissions import Action, may
from apps.runs.presentation import extensions, figures, metrics

register = template.Library()

_FILTERS: dict[str, Callable[..., str]] = {
    "bytes": figures.size,
    "count": figures.count,
    "duration": figures.duration,
    "milliseconds": figures.milliseconds,
    "metric": metrics.label_of,
    "mix": mix_in_words,
    "money": figures.money,
    "peak": peak_in_words,
    "percent": figures.percent,
    "ratio": figures.ratio,
    "significant": figures.significant,
    "small": lambda value: figures.significant(value, 2),
}


def _known(figure: Callable[..., str]) -> Callable[[Any], str]:
    """The same figure where a template's path leads nowhere, which Django gives as an empty string."""
    return lambda value: figure(None if value == "" else value)


for _name, _function in _FILTERS.items():
    register.filter(_name, _known(_function))


@register.simple_tag(takes_context=True)
def when(context: dict[str, Any], at: datetime | None, style: str = "relative") -> str | SafeString:
    """A time as people say it ("3 minutes ago"), the exact one on hover, in the viewer's zone."""
    if at is None:
        return figures.NOT_KNOWN
    person = getattr(context.get("request"), "user", None)
    zone = format_html(' time-zone="{}"', person.time_zone) if isinstance(person, Person) and person.time_zone else ""
    exact = at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    moment = at.isoformat(timespec="milliseconds")  # ECMAScript's dates know no more digits
    if style == "clock":
        return format_html('<time datetime="{}"{} data-clock>{}</time>', moment, zone, f"{at.astimezone(UTC):%H:%M:%S}")
    return format_html(
        '<relative-time datetime="{}" tense="past" format="{}"{}>{}</relative-time>', moment, style, zone, exact
    )


@register.simple_tag(takes_context=True)
def with_query(context: dict[str, Any], **changes: Any) -> str:
    """The page's own address with some of its query changed; None or "" takes a name out. Pages start over."""
    query = context["request"].GET.copy()
    query.pop("page", None)
    for name, value in changes.items():
        if value in (None, ""):
            query.pop(name, None)
        else:
            query[name] = value
    return f"?{query.urlencode()}" if query else "?"


@register.simple_tag
def interval(low: float | None, high: float | None) -> str:
    """The interval beside a speed-up, empty where none is known."""
    return figures.interval(low, high)


@register.simple_tag(takes_context=True)
def theme(context: dict[str, Any]) -> str | SafeString:
    """The theme attribute of the page: what the person chose, else what this browser chose, else the system's."""
    request: HttpRequest | None = context.get("request")
    if request is None:
        return ""
    person = getattr(request, "user", None)
    chosen = person.theme if isinstance(person, Person) else request.COOKIES.get("theme", "")
    return format_html(' data-theme="{}"', chosen) if chosen in ("light", "dark") else ""


@register.inclusion_tag("parts/nav_link.html", takes_context=True)
def nav_link(
    context: dict[str, Any],
    name: str,
    title: str,
    also: str = "",
    hotkey: str = "",
    count: int = 0,
    count_say: str = "",
) -> dict[str, Any]:
    """A link of the main menu, marked where the page shown belongs to it; `count` of what waits there stands beside it."""
    match = getattr(context.get("request"), "resolver_match", None)
    here = match is not None and match.url_name in {name, *also.split()}
    told = {"address": reverse(name), "title": title, "here": here, "hotkey": hotkey}
    return {**told, "count": count, "count_say": count_say}


@register.simple_tag(takes_context=True)
def allowed(context: dict[str, Any], action: str, thing: object = None) -> bool:
    """Whether the viewer may do `action` to `thing`, so that pages offer only what will be let through."""
    return may(context["request"].user, Action(action), thing)


@register.simple_tag(takes_context=True)
def panels(context: dict[str, Any], place: str, thing: object = None) -> SafeString:
    """What rooms above show in this place of a page about `thing`."""
    request: HttpRequest = context["request"]
    shown = []
    for panel in extensions.panels.values():
        given = panel.context(request, thing) if panel.place == place else None
        if given is not None:
            shown.append(render_to_string(panel.template, given, request))
    return mark_safe("".join(shown))  # noqa: S308 - each part is a template that escapes what it is given
