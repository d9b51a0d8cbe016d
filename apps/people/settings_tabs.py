"""The tabs of /settings/. A room adds its own from its AppConfig's `ready`; its page extends `settings/frame.html`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apps.people.permissions import Action, may


@dataclass(frozen=True)
class Tab:
    """One tab: the name of its address, its title, who may open it, and where it stands (smaller goes first).

    `also` are the names of further addresses that belong to it.
    """

    url_name: str
    title: str
    action: Action
    place: int
    also: tuple[str, ...] = ()


_tabs: dict[str, Tab] = {}


def register(tab: Tab) -> None:
    """Add a tab. Registering one again replaces it."""
    _tabs[tab.url_name] = tab


def tabs_for(person: Any) -> list[Tab]:
    """The tabs this person may open, in order."""
    return sorted((tab for tab in _tabs.values() if may(person, tab.action)), key=lambda tab: (tab.place, tab.title))
