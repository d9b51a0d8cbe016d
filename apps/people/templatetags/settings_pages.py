"""Tags of the settings' frame."""

from __future__ import annotations

from typing import Any

from django import template
from django.urls import reverse

from apps.people.settings_tabs import tabs_for

register = template.Library()


@register.inclusion_tag("settings/tabs.html", takes_context=True)
def settings_tabs(context: dict[str, Any]) -> dict[str, Any]:
    """The tabs the viewer may open, the one of this page marked."""
    request = context["request"]
    match = request.resolver_match
    here = match.url_name if match else None
    tabs = [(reverse(tab.url_name), tab.title, here in (tab.url_name, *tab.also)) for tab in tabs_for(request.user)]
    return {"tabs": tabs}
