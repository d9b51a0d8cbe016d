"""E-mail about accounts. Only the server worker knows the mail server, so letters are handed on to whoever sends them."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings

from apps.people.models import Person

# Puts a letter of that kind (invitation, password) to that person into the post; `address` is where this server is
# reached, as the person who asked for the letter reaches it.
Post = Callable[[Person, str, str], None]
INVITATION, PASSWORD = "invitation", "password"

_posts: list[Post] = []


def mail_is_set_up() -> bool:
    """Whether letters can be sent. The web process sees the sender's address alone (docs/deployment.md)."""
    return bool(settings.MAIL_FROM) and bool(_posts)


def deliver_by(post: Post) -> None:
    """From now on letters go that way. The room that sends them calls this when it is set up."""
    _posts[:] = [post]


def send(person: Person, letter: str, address: str) -> bool:
    """Have a letter sent; whether it could be, which takes a mail server and the person's address."""
    if not (mail_is_set_up() and person.email):
        return False
    _posts[0](person, letter, address)
    return True
