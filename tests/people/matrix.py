"""Who may do what, written down a second time: every route with every role, and with nobody.

A new route needs a row here: its name, its method, who gets past it, and what to ask with, so that the answer depends on
the person alone. Words in braces are keys of the `world` of the test beside this file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from apps.people.models import Role

EVERYBODY = frozenset(Role)
ENGINEERS = frozenset({Role.ENGINEER, Role.REVIEWER, Role.ADMIN})
REVIEWERS = frozenset({Role.REVIEWER, Role.ADMIN})
ADMINS = frozenset({Role.ADMIN})
ANYBODY = None  # signed in or not

GET, POST, PUT, PATCH, DELETE = "GET", "POST", "PUT", "PATCH", "DELETE"


@dataclass(frozen=True)
class Row:
    """One way of asking: of a route by its name, with path arguments, a body and a query."""

    name: str
    method: str
    who: frozenset[Role] | None
    args: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)
    query: str = ""


RUN, LIVE = {"pk": "{run}"}, {"pk": "{live}"}
VERSION = {"pk": "{run}", "number": "2"}
API_VERSION = {"run_pk": "{run}", "number": "2"}
HOST, SLUG = {"name": "{host}"}, {"slug": "{slug}"}
REVIEW, KERNEL = {"pk": "{proposal}"}, {"pk": "{kernel}"}
MODEL = {"pk": "{model}"}

BUILDING = (
    Row("healthz", GET, ANYBODY),
    Row("metrics", GET, ANYBODY),  # by address or token, not by role
    Row("api-schema", GET, EVERYBODY),
    Row("api-docs", GET, EVERYBODY),
)
PEOPLE = (
    Row("sign-in", GET, ANYBODY),
    Row("sign-out", POST, ANYBODY),
    Row("password-forgotten", GET, ANYBODY),
    Row("choose-password", GET, ANYBODY, {"uidb64": "x", "token": "y"}),
    Row("theme", POST, ANYBODY, body={"theme": "dark"}),
    Row("link", GET, ANYBODY),
    Row("settings", GET, EVERYBODY),
    Row("settings-profile", GET, EVERYBODY),
    Row("settings-profile", POST, EVERYBODY, body={"first_name": "A"}),
    Row("settings-password", POST, EVERYBODY, body={"old_password": "x"}),
    Row("settings-sessions", GET, EVERYBODY),
    Row("settings-session-end", POST, EVERYBODY, {"pk": "{own_session}"}),
    Row("settings-sessions-others", POST, EVERYBODY),
    Row("settings-tokens", GET, EVERYBODY),
    Row("settings-tokens", POST, EVERYBODY, body={"name": "ci", "days": "30"}),
    Row("settings-token-revoke", POST, EVERYBODY, {"pk": "{own_token}"}),
    Row("settings-members", GET, EVERYBODY),
    Row("settings-members", POST, ADMINS, body={"username": "new", "role": "viewer"}),
    Row("settings-member", POST, ADMINS, {"pk": "{other}"}, {"do": "role", "role": "viewer"}),
    Row("settings-member", POST, ADMINS, {"pk": "{other}"}, {"do": "deactivate"}),
    Row("settings-member", POST, ADMINS, {"pk": "{other}"}, {"do": "reactivate"}),
    Row("settings-member", POST, ADMINS, {"pk": "{other}"}, {"do": "link"}),
    Row("settings-audit", GET, ADMINS),
    Row("api-me-list", GET, EVERYBODY),
    Row("api-me-list", PATCH, EVERYBODY, body={"first_name": "A"}),
    Row("api-me-password", POST, EVERYBODY, body={"old_password": "x", "new_password": "y"}),
    Row("api-member-list", GET, EVERYBODY),
    Row("api-member-list", POST, ADMINS, body={"username": "new", "role": "viewer"}),
    Row("api-member-detail", GET, EVERYBODY, {"username": "{other_name}"}),
    Row("api-member-detail", PATCH, ADMINS, {"username": "{other_name}"}, {"role": "viewer"}),
    Row("api-member-password-link", POST, ADMINS, {"username": "{other_name}"}),
    Row("api-session-list", GET, EVERYBODY),
    Row("api-session-detail", DELETE, EVERYBODY, {"pk": "{own_session}"}),
    Row("api-session-end-others", POST, EVERYBODY),
    Row("api-token-list", GET, EVERYBODY),
    Row("api-token-list", POST, EVERYBODY, body={"name": "ci", "days": 30}),
    Row("api-token-detail", DELETE, EVERYBODY, {"pk": "{own_token}"}),
    Row("api-audit-list", GET, ADMINS),
)
NOTICES = (
    Row("notices", GET, EVERYBODY),
    Row("notices-read", POST, EVERYBODY),
    Row("notice-open", POST, EVERYBODY, {"pk": "{own_notice}"}),
    Row("settings-notifications", GET, EVERYBODY),
    Row("settings-notifications", POST, EVERYBODY),
    Row("settings-webhooks", POST, EVERYBODY, body={"url": "https://198.51.100.7/hook"}),
    Row("settings-webhook", POST, EVERYBODY, {"pk": "{own_hook}"}, {"do": "remove"}),
    Row("settings-webhook", POST, EVERYBODY, {"pk": "{own_hook}"}, {"do": "try"}),
    *(Row("settings-webhook", POST, ADMINS, {"pk": "{own_hook}"}, {"do": do}) for do in ("allow", "forbid")),
    Row("api-notice-list", GET, EVERYBODY),
    Row("api-notice-detail", GET, EVERYBODY, {"pk": "{own_notice}"}),
    Row("api-notice-read-all", POST, EVERYBODY),
    Row("api-notice-read-one", POST, EVERYBODY, {"pk": "{own_notice}"}),
    Row("api-notice-choice-list", GET, EVERYBODY),
    Row("api-notice-choice-list", POST, EVERYBODY, body={"choices": []}),
    Row("api-webhook-list", GET, EVERYBODY),
    Row("api-webhook-list", POST, EVERYBODY, body={"url": "https://198.51.100.7/hook"}),
    Row("api-webhook-detail", DELETE, EVERYBODY, {"pk": "{own_hook}"}),
    Row("api-webhook-try-out", POST, EVERYBODY, {"pk": "{own_hook}"}),
    Row("api-webhook-private", POST, ADMINS, {"pk": "{own_hook}"}, {"allowed": True}),
)
HOSTS = (
    Row("hosts", GET, EVERYBODY),
    Row("host", GET, EVERYBODY, HOST),
    *(Row("host-operate", POST, ENGINEERS, HOST, {"do": do}) for do in ("drain", "enable", "measure", "nothing")),
    *(Row("host-operate", POST, ADMINS, HOST, {"do": do}) for do in ("allow-weak", "forbid-weak")),
    Row("api-host-list", GET, EVERYBODY),
    Row("api-host-detail", GET, EVERYBODY, HOST),
    Row("api-host-queue", GET, EVERYBODY, HOST),
    Row("api-host-faults", GET, EVERYBODY, HOST),
    Row("api-host-drain", POST, ENGINEERS, HOST),
    Row("api-host-enable", POST, ENGINEERS, HOST),
    Row("api-host-measure", POST, ENGINEERS, HOST),
    Row("api-host-isolation", POST, ADMINS, HOST, {"allowed": True}),
)
LEDGER = (
    Row("run-calls", GET, EVERYBODY, {"run": "{run}"}),
    Row("settings-models", GET, EVERYBODY),
    Row("settings-model-new", GET, ADMINS),
    Row("settings-model-new", POST, ADMINS),
    Row("settings-model", GET, ADMINS, MODEL),
    Row("settings-model", POST, ADMINS, MODEL),
    *(Row("settings-model-change", POST, ADMINS, MODEL, {"do": do}) for do in ("on", "off", "remove")),
    Row("settings-model-test", POST, ENGINEERS, MODEL),
    Row("settings-model-trial", GET, EVERYBODY, {"pk": "{trial}"}),
    Row("settings-limits", GET, EVERYBODY),
    Row("settings-limits", POST, ADMINS),
    Row("settings-person-limit", POST, ADMINS, {"pk": "{other}"}, {"month_usd": "1"}),
    Row("api-model-list", GET, EVERYBODY),
    Row("api-model-detail", GET, EVERYBODY, {"name": "{model_name}"}),
    Row("api-model-list", POST, ADMINS, body={"name": "new", "model_id": "openai/new"}),
    Row("api-model-detail", PATCH, ADMINS, {"name": "{model_name}"}, {"enabled": False}),
    Row("api-model-detail", DELETE, ADMINS, {"name": "{model_name}"}),
    Row("api-call-list", GET, EVERYBODY),
    Row("api-trial-list", POST, ENGINEERS, body={"model": "{model_name}"}),
    Row("api-trial-detail", GET, EVERYBODY, {"pk": "{trial}"}),
    Row("api-limits", GET, EVERYBODY),
    Row("api-limits", PATCH, ADMINS, body={"run_usd": "1"}),
    Row("api-person-limit", PUT, ADMINS, {"username": "{other_name}"}, {"month_usd": "1"}),
)
RUNS = (
    Row("runs", GET, EVERYBODY),
    Row("runs-csv", GET, EVERYBODY),
    Row("runs-view", POST, EVERYBODY, body={"name": "mine", "query": "state=running"}),
    Row("runs-bulk", POST, ENGINEERS, body={"do": "stop", "run": "{live}"}),
    Row("runs-bulk", POST, ENGINEERS, body={"do": "again", "run": "{run}"}),
    Row("runs-import", POST, ENGINEERS),
    Row("launch", GET, ENGINEERS),
    Row("launch", POST, ENGINEERS, body={"problem": "{slug}"}),
    Row("launch-preview", POST, ENGINEERS, body={"problem": "{slug}"}),
    Row("run", GET, EVERYBODY, RUN),
    Row("run-part", GET, EVERYBODY, {"pk": "{run}", "name": "head"}),
    Row("run-notes", POST, ENGINEERS, RUN, {"notes": "x"}),
    Row("run-said", GET, EVERYBODY, {"pk": "{live}", "seq": "1"}),
    *(
        Row("run-order", POST, ENGINEERS, LIVE, {"do": do, "text": "x"})
        for do in ("stop", "pause", "resume", "hint", "limits")
    ),
    Row("run-log", GET, EVERYBODY, RUN),
    Row("run-transcript", GET, EVERYBODY, RUN),
    Row("version", GET, EVERYBODY, VERSION),
    Row("version-again", POST, ENGINEERS, VERSION, {"device": "{device}"}),
    Row("version-source", GET, EVERYBODY, VERSION),
    Row("compare", GET, EVERYBODY, query="b={run}.2"),
    Row("compare-runs", GET, EVERYBODY, query="runs={run},{live}"),
    Row("compare-versions", GET, EVERYBODY, query="v={run}.1,{run}.2"),
    Row("problems", GET, EVERYBODY),
    Row("problem", GET, EVERYBODY, SLUG),
    Row("problem-source", GET, EVERYBODY, SLUG),
    Row("api-problem-list", GET, EVERYBODY),
    Row("api-problem-list", POST, ENGINEERS, body={"source": "x"}),
    Row("api-problem-detail", GET, EVERYBODY, SLUG),
    Row("api-problem-sizings", POST, ENGINEERS, SLUG, {"overrides": {}}),
    Row("api-run-list", GET, EVERYBODY),
    Row("api-run-list", POST, ENGINEERS, body={"problem": "{slug}", "device": "{device}"}),
    Row("api-run-take-in", POST, ENGINEERS),
    Row("api-run-estimate", POST, ENGINEERS, body={"problem": "{slug}", "device": "{device}"}),
    Row("api-run-detail", GET, EVERYBODY, RUN),
    Row("api-run-detail", PATCH, ENGINEERS, RUN, {"notes": "x"}),
    Row("api-run-events", GET, EVERYBODY, RUN, query="after=3"),
    Row("api-run-transcript", GET, EVERYBODY, RUN),
    Row("api-run-again", POST, ENGINEERS, RUN),
    *(
        Row(f"api-run-{do}", POST, ENGINEERS, LIVE, {"text": "x", "iterations": 4})
        for do in ("stop", "pause", "resume", "hint", "limits")
    ),
    Row("api-version-list", GET, EVERYBODY, {"run_pk": "{run}"}),
    Row("api-version-detail", GET, EVERYBODY, API_VERSION),
    Row("api-version-measurements", GET, EVERYBODY, API_VERSION),
    Row("api-version-measurements", POST, ENGINEERS, API_VERSION, {"device": "{device}"}),
    Row("api-saved-view-list", GET, EVERYBODY),
    Row("api-saved-view-list", POST, EVERYBODY, body={"name": "mine", "query": "state=running"}),
    Row("api-saved-view-detail", DELETE, EVERYBODY, {"pk": "{own_view}"}),
    Row("api-evaluation-list", GET, EVERYBODY),
    Row("api-evaluation-detail", GET, EVERYBODY, {"pk": "{measurement}"}),
    Row("api-compare-list", GET, EVERYBODY, query="b={run}.2"),
    Row("api-compare-versions", GET, EVERYBODY, query="v={run}.1,{run}.2"),
)
DIGEST = {"digest": "{digest}", "text": "why not"}
REVIEWS = (
    Row("reviews", GET, EVERYBODY),
    Row("propose", GET, ENGINEERS, query="version={run}.3"),
    Row("propose", POST, ENGINEERS, query="version={run}.3"),
    Row("review", GET, EVERYBODY, REVIEW),
    *(
        Row("review-do", POST, ENGINEERS, REVIEW, {"do": do, "text": "x"})
        for do in ("comment", "vote", "ask", "measure")
    ),
    *(
        Row("review-do", POST, ENGINEERS, REVIEW, {"do": do})
        for do in ("withdraw", "discard", "publish", "resolve", "reopen")
    ),
    Row("review-do", POST, ENGINEERS, REVIEW, {"do": "rewrite"}),
    *(Row("review-do", POST, REVIEWERS, REVIEW, {"do": do, **DIGEST}) for do in ("accept", "decline")),
    Row("review-composer", GET, ENGINEERS, REVIEW, query="first=1"),
    Row("review-pulse", GET, EVERYBODY, REVIEW),
    Row("review-rules", GET, ADMINS),
    Row("review-rules", POST, ADMINS, body={"approvals": "2"}),
    Row("kernels", GET, EVERYBODY),
    Row("kernel-client", GET, EVERYBODY),
    Row("kernel", GET, EVERYBODY, KERNEL),
    Row("kernel-do", POST, REVIEWERS, KERNEL, {"do": "revoke", "reason": "x"}),
    Row("kernel-do", POST, ENGINEERS, KERNEL, {"do": "verify"}),
    Row("kernel-file", GET, EVERYBODY, KERNEL),
    Row("kernel-bundle", GET, EVERYBODY, KERNEL),
    Row("api-review-list", GET, EVERYBODY),
    Row("api-review-list", POST, ENGINEERS, body={"run": "{run}", "version": 3}),
    Row("api-review-rules", GET, EVERYBODY),
    Row("api-review-rules", PUT, ADMINS, body={"approvals": 2, "own_approval": False}),
    Row("api-review-detail", GET, EVERYBODY, REVIEW),
    Row("api-review-accept", POST, REVIEWERS, REVIEW, DIGEST),
    Row("api-review-decline", POST, REVIEWERS, REVIEW, DIGEST),
    Row("api-review-ask", POST, ENGINEERS, REVIEW, {"asked": []}),
    Row("api-review-revise", POST, ENGINEERS, REVIEW, {"run": "{run}", "version": 3}),
    Row("api-review-measure", POST, ENGINEERS, REVIEW, {"devices": ["{device}"]}),
    Row("api-review-vote", POST, ENGINEERS, REVIEW, {"vote": "comment", **DIGEST}),
    Row("api-review-withdraw", POST, ENGINEERS, REVIEW, {"text": "x"}),
    Row("api-kernel-list", GET, EVERYBODY),
    Row("api-kernel-in-use", GET, EVERYBODY, query="problem={slug}&device={device}"),
    Row("api-kernel-detail", GET, EVERYBODY, KERNEL),
    Row("api-kernel-bundle", GET, EVERYBODY, KERNEL),
    Row("api-kernel-revoke", POST, REVIEWERS, KERNEL, {"reason": "x"}),
    Row("api-kernel-verify", POST, ENGINEERS, KERNEL),
    Row("api-comments", GET, EVERYBODY, {"review_pk": "{proposal}"}),
    Row("api-comments", POST, ENGINEERS, {"review_pk": "{proposal}"}, {"text": "x"}),
    Row("api-comment", PATCH, ENGINEERS, {"review_pk": "{proposal}", "pk": "{own_comment}"}, {"text": "y"}),
    Row("api-comment", DELETE, ENGINEERS, {"review_pk": "{proposal}", "pk": "{own_comment}"}),
)
ROWS = (*BUILDING, *PEOPLE, *NOTICES, *HOSTS, *LEDGER, *RUNS, *REVIEWS)

# Forms that anybody may send, signed in or not: nothing is asked of whom they are.
FORMS_OF_NOBODY = frozenset({"password-forgotten"})
# Words that stand in a view's cases and are no deeds of its form: tabs, and what only goes somewhere.
NO_DEEDS = frozenset({"compare"})

# What a client may send on a run's socket, and which sockets there are.
SOCKETS = {"ws/notices": EVERYBODY, "ws/runs": EVERYBODY, "ws/runs/<int:run_id>": EVERYBODY}
COMMANDS = dict.fromkeys(("stop", "pause", "resume", "hint"), ENGINEERS)
