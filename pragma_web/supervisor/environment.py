"""Which part of the environment each process gets: what its row in docs/deployment.md names and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# Where programs, caches and time zones are; says nothing of this installation.
MACHINE: tuple[str, ...] = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_CACHE_HOME", "VIRTUAL_ENV", "CXX")
MACHINE += ("PRAGMA_MEASUREMENTS", "PRAGMA_LOCKS", "PRAGMA_ISOLATION")
BROKER = ("REDIS_URL",)
DATABASE = ("DATABASE_URL", "PRAGMA_VAR")
KEY = ("PRAGMA_KEY", "PRAGMA_OLD_KEYS")
WEB = ("PRAGMA_ALLOWED_HOSTS", "PRAGMA_TRUSTED_ORIGINS", "PRAGMA_HTTPS", "PRAGMA_DEBUG")
# Where people reach this server, and who its letters come from: that there is a sender says that letters can be sent.
ADDRESS = ("PRAGMA_ADDRESS", "DEFAULT_FROM_EMAIL")
METRICS = ("PRAGMA_METRICS_TOKEN",)
MAIL = ("EMAIL_*",)
# Credentials and addresses as model providers' own clients and litellm read them, and the way out to them.
MODELS: tuple[str, ...] = (
    "*_API_KEY",
    "*_API_BASE",
    "*_BASE_URL",
    "*_API_VERSION",
    "PRAGMA_MODEL*",
    "LITELLM_*",
    "OPENAI_*",
    "AZURE_*",
)
MODELS += (
    "AWS_*",
    "GOOGLE_*",
    "VERTEX*",
    "OLLAMA_*",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
)
MODELS += ("no_proxy", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")


def chosen(everything: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Those variables whose names are named; a star stands for any text before or after."""
    return {name: value for name, value in everything.items() if any(_fits(name, pattern) for pattern in names)}


def _fits(name: str, pattern: str) -> bool:
    if pattern.startswith("*"):
        return name.endswith(pattern[1:])
    if pattern.endswith("*"):
        return name.startswith(pattern[:-1])
    return name == pattern
