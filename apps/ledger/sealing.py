"""Keys of models, encrypted where they are stored: Fernet under a key that HKDF derives from `PRAGMA_KEY`.

`PRAGMA_OLD_KEYS` (comma between them) holds what `PRAGMA_KEY` was before; `manage.py reseal_keys` writes all keys anew
under the present one.
"""

from __future__ import annotations

import base64

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from apps.agents.gateway.secret import Secret
from apps.people.refusals import Refused

SHORTEST = 20  # characters of PRAGMA_KEY; HKDF spreads what is secret in it and can't add to it
_PURPOSE = b"pragma: keys of models, 1"


class CannotSeal(Refused):
    """`PRAGMA_KEY` is missing or too short."""


class CannotOpen(Refused):
    """A key was sealed under another `PRAGMA_KEY`."""


def seal(secret: Secret) -> str:
    """The secret as it may be stored. Raises `CannotSeal`."""
    return _box().encrypt(secret.reveal().encode()).decode()


def opened(sealed: str, whose: str) -> Secret:
    """The secret again. Raises `CannotOpen`, and `CannotSeal` where there is no key at all."""
    try:
        return Secret(_box().decrypt(sealed.encode()).decode())
    except InvalidToken:
        raise CannotOpen(
            f"The key of {whose} was encrypted under another PRAGMA_KEY than this process has. If PRAGMA_KEY was changed, "
            "name the old one in PRAGMA_OLD_KEYS and start PRAGMA again; otherwise give web process and agents worker the "
            "same PRAGMA_KEY, or type the model's key in again under Settings › Models."
        ) from None


def resealed(sealed: str, whose: str) -> str:
    """The same secret under the present `PRAGMA_KEY`. Raises as `opened` does."""
    return seal(opened(sealed, whose))


def _box() -> MultiFernet:
    present: str = settings.PRAGMA_KEY
    if not present:
        raise CannotSeal(
            "Keys can't be kept here: this process has no PRAGMA_KEY. make run makes one by itself; elsewhere set it to the "
            "same 32 random characters or more for the web process and the agents worker, or name an environment variable "
            "instead."
        )
    if len(present) < SHORTEST:
        raise CannotSeal(
            f"PRAGMA_KEY is too short to protect keys: it has {len(present)} characters, and needs {SHORTEST} random ones "
            "or more. Set a longer one, for web process and agents worker alike."
        )
    return MultiFernet([_fernet(key) for key in (present, *settings.PRAGMA_OLD_KEYS)])


def _fernet(key: str) -> Fernet:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE).derive(key.encode())
    return Fernet(base64.urlsafe_b64encode(derived))
