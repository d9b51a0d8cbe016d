"""What the pages can do, REST can, for the same people: every form of every page has its request, or a reason why not."""

from __future__ import annotations

from tests.people.matrix import GET, ROWS, Row

# A page's form (its route, and the deed where it names one) -> the request that does the same.
SAME = {
    "settings-profile": "PATCH api-me-list",
    "settings-password": "POST api-me-password",
    "settings-session-end": "DELETE api-session-detail",
    "settings-sessions-others": "POST api-session-end-others",
    "settings-tokens": "POST api-token-list",
    "settings-token-revoke": "DELETE api-token-detail",
    "settings-members": "POST api-member-list",
    "settings-member role": "PATCH api-member-detail",
    "settings-member deactivate": "PATCH api-member-detail",
    "settings-member reactivate": "PATCH api-member-detail",
    "settings-member link": "POST api-member-password-link",
    "theme": "PATCH api-me-list",
    "notices-read": "POST api-notice-read-all",
    "notice-open": "POST api-notice-read-one",
    "settings-notifications": "POST api-notice-choice-list",
    "settings-webhooks": "POST api-webhook-list",
    "settings-webhook remove": "DELETE api-webhook-detail",
    "settings-webhook try": "POST api-webhook-try-out",
    "settings-webhook allow": "POST api-webhook-private",
    "settings-webhook forbid": "POST api-webhook-private",
    "host-operate drain": "POST api-host-drain",
    "host-operate enable": "POST api-host-enable",
    "host-operate measure": "POST api-host-measure",
    "host-operate allow-weak": "POST api-host-isolation",
    "host-operate forbid-weak": "POST api-host-isolation",
    "settings-model-new": "POST api-model-list",
    "settings-model": "PATCH api-model-detail",
    "settings-model-change on": "PATCH api-model-detail",
    "settings-model-change off": "PATCH api-model-detail",
    "settings-model-change remove": "DELETE api-model-detail",
    "settings-model-test": "POST api-trial-list",
    "settings-limits": "PATCH api-limits",
    "settings-person-limit": "PUT api-person-limit",
    "runs-view": "POST api-saved-view-list",
    "runs-bulk stop": "POST api-run-stop",
    "runs-bulk again": "POST api-run-again",
    "runs-import": "POST api-run-take-in",
    "launch": "POST api-run-list",
    "launch-preview": "POST api-problem-sizings",
    "run-notes": "PATCH api-run-detail",
    "run-order stop": "POST api-run-stop",
    "run-order pause": "POST api-run-pause",
    "run-order resume": "POST api-run-resume",
    "run-order hint": "POST api-run-hint",
    "run-order limits": "POST api-run-limits",
    "version-again": "POST api-version-measurements",
    "propose": "POST api-review-list",
    "review-do comment": "POST api-comments",
    "review-do rewrite": "PATCH api-comment",
    "review-do publish": "PATCH api-comment",
    "review-do resolve": "PATCH api-comment",
    "review-do reopen": "PATCH api-comment",
    "review-do discard": "DELETE api-comment",
    "review-do vote": "POST api-review-vote",
    "review-do ask": "POST api-review-ask",
    "review-do measure": "POST api-review-measure",
    "review-do withdraw": "POST api-review-withdraw",
    "review-do accept": "POST api-review-accept",
    "review-do decline": "POST api-review-decline",
    "review-rules": "PUT api-review-rules",
    "kernel-do revoke": "POST api-kernel-revoke",
    "kernel-do verify": "POST api-kernel-verify",
}
NOT_OVER_REST = {
    "sign-out": "a script has no session to end",
    "host-operate nothing": "no deed: the row tries a word that is none",
}


def name_of(row: Row) -> str:
    deed = row.body.get("do", "")
    return f"{row.name} {deed}".strip()


FORMS = {name_of(row): row for row in ROWS if row.method != GET and not row.name.startswith("api-")}
REQUESTS = {f"{row.method} {row.name}": row for row in ROWS if row.name.startswith("api-")}


def test_every_form_has_its_request() -> None:
    assert set(FORMS) - set(SAME) - set(NOT_OVER_REST) == set(), "forms that REST has nothing for"
    assert (set(SAME) | set(NOT_OVER_REST)) - set(FORMS) == set(), "forms that are gone"


def test_every_request_is_there_and_for_the_same_people() -> None:
    assert set(SAME.values()) - set(REQUESTS) == set()
    other = {
        form: request for form, request in SAME.items() if form != "theme" and FORMS[form].who != REQUESTS[request].who
    }
    assert other == {}
