"""People and rows for the pages' tests."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.pages import factories, scenes


@pytest.fixture
def world(db: None) -> dict[str, Any]:
    """Two hosts, three problems, a run in every state."""
    return scenes.world()


@pytest.fixture
def ada(world: dict[str, Any]) -> Client:
    """A browser in which an admin has signed in, beside everything of `world`."""
    client = Client()
    client.force_login(world["person"])
    return client


@pytest.fixture
def newcomer(db: None) -> Client:
    """A browser in which an engineer has signed in to an empty PRAGMA."""
    client = Client()
    client.force_login(factories.PersonFactory.create(username="newcomer"))
    return client
