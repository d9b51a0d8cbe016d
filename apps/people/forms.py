"""Forms about people."""

from __future__ import annotations

from django.contrib.auth.forms import AuthenticationForm


class SignInForm(AuthenticationForm):
    """Name and password, with errors that say what to do."""

    error_messages = {  # noqa: RUF012 - Django declares it so
        "invalid_login": "That name and password don't go together. Check both; capitals count.",
        "inactive": "This account is switched off. Ask an admin of your team.",
    }
