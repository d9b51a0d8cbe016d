"""Browsers of several people."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from apps.people.models import Person, Role
from tests.conftest import PASSWORD


@pytest.fixture
def browser_of() -> Callable[[Person], Client]:
    """A browser in which that person has signed in."""

    def sign_in(person: Person) -> Client:
        client = Client()
        client.force_login(person)
        return client

    return sign_in


@pytest.fixture
def admins_browser(admin: Person, browser_of: Callable[[Person], Client]) -> Client:
    """The admin's."""
    return browser_of(admin)


@pytest.fixture
def viewer(db: None) -> Person:
    """Somebody who may look."""
    return Person.objects.create_user("vera", password=PASSWORD, role=Role.VIEWER)
