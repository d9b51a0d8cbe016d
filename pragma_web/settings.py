"""Settings, from the environment. Each process needs only what docs/deployment.md names for it."""

from __future__ import annotations

import os
from pathlib import Path

import dj_database_url
from csp.constants import NONCE, NONE, SELF

from pragma_web.place import run_directory

BASE = Path(__file__).resolve().parent.parent
# Everything this installation writes: database, logs, secrets, sockets, caches.
VAR = Path(os.environ.get("PRAGMA_VAR", BASE / "var"))


def _pragma_key() -> str:
    """`PRAGMA_KEY`, or the one that the first start wrote beside the database; empty where there is neither."""
    if key := os.environ.get("PRAGMA_KEY"):
        return key
    path = VAR / "secret"
    return path.read_text().strip() if path.exists() else ""


# Sessions, and the keys of models at rest (apps/ledger/sealing.py), depend on it; old ones only open such keys.
PRAGMA_KEY = _pragma_key()
PRAGMA_OLD_KEYS = [key for key in os.environ.get("PRAGMA_OLD_KEYS", "").split(",") if key]
SECRET_KEY = PRAGMA_KEY or "only-for-commands-that-need-no-secret"
SECRET_KEY_FALLBACKS = PRAGMA_OLD_KEYS
DEBUG = os.environ.get("PRAGMA_DEBUG") == "1"
ALLOWED_HOSTS = os.environ.get("PRAGMA_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]").split(",")
CSRF_TRUSTED_ORIGINS = [o for o in os.environ.get("PRAGMA_TRUSTED_ORIGINS", "").split(",") if o]
VERSION = "0.1.0"

INSTALLED_APPS = [
    "pragma_web",
    "apps.people",
    "apps.notices",
    "apps.hosts",
    "apps.ledger",
    "apps.runs",
    "apps.reviews",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "channels",
    "django_htmx",
    "django_filters",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "axes",
    "csp",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "apps.people.middleware.SignInFirst",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "apps.people.middleware.AuditOrigin",
    "axes.middleware.AxesMiddleware",
    "apps.people.middleware.SaysWhatWasTaken",
]
ROOT_URLCONF = "pragma_web.urls"
ASGI_APPLICATION = "pragma_web.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
            ],
        },
    }
]

DATABASES = {"default": dj_database_url.config(default=f"sqlite:///{VAR / 'pragma.sqlite3'}", conn_max_age=60)}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # Writers wait for each other instead of failing: without IMMEDIATE a quarter of concurrent transactions did fail.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-65536;",
    }
else:
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True

# The broker, and the bell of live views (apps/runs/bell.py). No channel layer: sockets are fed from the database alone.
RUN = run_directory(VAR)
REDIS_URL = os.environ.get("REDIS_URL", f"unix://{RUN / 'broker.sock'}")
AUTH_USER_MODEL = "people.Person"
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "runs"
LOGOUT_REDIRECT_URL = "sign-in"
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_VERBOSE = False
AXES_LOCKOUT_TEMPLATE = "people/locked_out.html"

# Links in invitations and for forgotten passwords work once, within this many seconds.
PASSWORD_RESET_TIMEOUT = 3 * 24 * 3600

# Only the server worker sees the mail server's settings; the web process sees the sender, which says that there is one.
MAIL_FROM = os.environ.get("DEFAULT_FROM_EMAIL", "")
DEFAULT_FROM_EMAIL = MAIL_FROM or "pragma@localhost"
EMAIL_BACKEND = os.environ.get("EMAIL_BACKEND", "django.core.mail.backends.smtp.EmailBackend")
EMAIL_HOST = os.environ.get("EMAIL_HOST", "localhost")
EMAIL_PORT = int(os.environ.get("EMAIL_PORT", "25"))
EMAIL_HOST_USER = os.environ.get("EMAIL_HOST_USER", "")
EMAIL_HOST_PASSWORD = os.environ.get("EMAIL_HOST_PASSWORD", "")
EMAIL_USE_TLS = os.environ.get("EMAIL_USE_TLS") == "1"
EMAIL_USE_SSL = os.environ.get("EMAIL_USE_SSL") == "1"
EMAIL_TIMEOUT = 20
# Where people reach this server, for links in what it sends. The supervisor fills it in.
ADDRESS = os.environ.get("PRAGMA_ADDRESS", "http://127.0.0.1:8000").rstrip("/")

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

STATIC_URL = "static/"
STATIC_ROOT = VAR / "static"
# npm packages are served as they came, each under its name: {% static "npm/chart.js/chart.umd.min.js" %}.
NPM_STATIC = {
    "chart.js": "chart.js/dist",
    "chartjs-plugin-annotation": "chartjs-plugin-annotation/dist",
    "chartjs-plugin-zoom": "chartjs-plugin-zoom/dist",
    "diff2html": "diff2html/bundles",
    "hammerjs": "hammerjs",
    "hotkey": "@github/hotkey/dist",
    "inter": "@fontsource-variable/inter",
    "jetbrains-mono": "@fontsource-variable/jetbrains-mono",
    "partysocket": "partysocket/dist",
    "relative-time-element": "@github/relative-time-element/dist",
    "virtual-core": "@tanstack/virtual-core/dist/esm",
}
STATICFILES_DIRS: list[str | Path | tuple[str, str | Path]] = [BASE / "static"]
STATICFILES_DIRS += [
    (f"npm/{name}", BASE / "node_modules" / path)
    for name, path in NPM_STATIC.items()
    if (BASE / "node_modules" / path).is_dir()
]

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF, NONCE],
        "style-src": [SELF, "'unsafe-inline'"],  # Chart.js and plot marks place themselves by style attributes
        "img-src": [SELF, "data:"],
        "connect-src": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [SELF],
        "form-action": [SELF],
        "object-src": [NONE],
    }
}
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
if os.environ.get("PRAGMA_HTTPS") == "1":
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_HSTS_SECONDS = 31536000
# Who may read /metrics: whoever brings this as a bearer token; without one, this machine alone.
METRICS_TOKEN = os.environ.get("PRAGMA_METRICS_TOKEN", "")
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024

REST_FRAMEWORK = {
    # The token comes first, so that who brings neither gets a 401 that says what to bring.
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "apps.people.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_PAGINATION_CLASS": "apps.people.api.paging.Paging",
    "PAGE_SIZE": 50,
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "EXCEPTION_HANDLER": "apps.people.api.errors.answer",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "PRAGMA",
    "VERSION": VERSION,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SERVE_INCLUDE_SCHEMA": False,
    "ENUM_NAME_OVERRIDES": {
        "RunStateEnum": "apps.runs.models.RunState",
        "SizingStateEnum": "apps.runs.models.SizingState",
        "JobStateEnum": "apps.hosts.models.JobState",
        "JobKindEnum": "apps.hosts.models.JobKind",
        "ProposalStateEnum": "apps.reviews.models.ProposalState",
        "KernelStateEnum": "apps.reviews.models.KernelState",
        "NoticeKindEnum": "apps.notices.models.Kind",
        "OutcomeEnum": [("faster", "faster"), ("slower", "slower"), ("within_noise", "within noise")],
        "CallOutcomeEnum": "apps.ledger.models.Outcome",
    },
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAuthenticated"],
}
