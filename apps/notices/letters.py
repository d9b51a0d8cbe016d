"""What e-mails say. Plain text: readable everywhere, and nothing in it can be markup."""

from __future__ import annotations

from dataclasses import dataclass

from apps.notices.models import Notice
from apps.people import mail, members
from apps.people.models import Person


@dataclass(frozen=True)
class Letter:
    """Subject and body."""

    subject: str
    body: str


def about(notice: Notice, address: str) -> Letter:
    """A notice. `address` is where this server is reached."""
    parts = [notice.title, notice.text, f"{address}{notice.link}" if notice.link else ""]
    foot = f"You get this because you chose to: {address}/settings/notifications/"
    return Letter(f"[PRAGMA] {' '.join(notice.title.split())}", "\n\n".join([*filter(None, parts), f"--\n{foot}\n"]))


def about_account(person: Person, letter: str, address: str) -> Letter:
    """An invitation, or the link for a forgotten password, which is made here and now."""
    link = f"{address}{members.password_link(person)}"
    works = "The link works once, and for three days."
    if letter == mail.INVITATION:
        text = f"You are invited to PRAGMA as {person.username}. Choose a password here:\n\n{link}\n\n{works}\n"
        return Letter("[PRAGMA] You are invited", text)
    ignore = "If you did not ask for it, there is nothing to do: nobody gets in without this link."
    text = f"Choose a new password for {person.username} here:\n\n{link}\n\n{works} {ignore}\n"
    return Letter("[PRAGMA] Choose a new password", text)
