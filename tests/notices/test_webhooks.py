"""Webhooks: signed, tried again, kept out of private networks however the address is dressed."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps.notices import addresses, delivering, webhooks
from apps.notices.models import Delivery, Kind, Webhook
from apps.notices.telling import tell
from apps.people.models import AuditEntry, Person
from apps.people.refusals import Refused
from tests.notices.conftest import Receiver


def allowed_hook(person: Person, admin: Person, receiver: Receiver) -> Webhook:
    hook = webhooks.add(person, receiver.url)
    webhooks.allow_private(hook, admin, allowed=True)
    return hook


def test_a_notice_is_posted_with_a_signature_that_can_be_checked(
    person: Person, admin: Person, receiver: Receiver, settings: Any
) -> None:
    settings.ADDRESS = "https://pragma.example.org"
    hook = allowed_hook(person, admin, receiver)
    notice = tell(Kind.RUN_ENDED, [person], "Run 4: 4.52× faster", link="/runs/4/")[0]
    assert delivering.deliver_due() == 1
    [(path, headers, body)] = receiver.calls
    assert path == "/hook?team=a"
    told = json.loads(body)
    assert (told["id"], told["kind"], told["link"]) == (notice.pk, "run_ended", "https://pragma.example.org/runs/4/")
    signed = headers["PRAGMA-Timestamp"].encode() + b"." + body
    expected = hmac.new(hook.secret.encode(), signed, hashlib.sha256).hexdigest()
    assert headers["PRAGMA-Signature"] == f"v1={expected}"
    assert headers["Host"].startswith("localhost:")
    assert hook.secret not in str(list(Webhook.objects.values()))


def test_what_is_not_taken_is_tried_again_with_longer_pauses(
    person: Person, admin: Person, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed_hook(person, admin, receiver)
    tell(Kind.RUN_ENDED, [person], "x")
    clock = [timezone.now()]
    monkeypatch.setattr(delivering.timezone, "now", lambda: clock[0])
    receiver.status, waits = 503, []
    for _ in range(3):
        assert delivering.deliver_due() == 1
        assert delivering.deliver_due() == 0, "not yet due"
        waits.append(Delivery.objects.get().due_at - clock[0])
        clock[0] += waits[-1]
    assert tuple(waits) == delivering.PAUSES[:3]
    assert waits[0] < waits[1] < waits[2]
    assert Delivery.objects.get().error == "HTTP 503"
    receiver.status = 200
    delivering.deliver_due()
    row = Delivery.objects.get()
    assert (row.state, row.attempt, row.error) == ("sent", 4, "")
    assert len({headers["PRAGMA-Delivery"] for _, headers, _ in receiver.calls}) == 1, "so that receivers know it again"


def test_in_the_end_it_is_given_up(person: Person, admin: Person, receiver: Receiver) -> None:
    allowed_hook(person, admin, receiver)
    tell(Kind.RUN_ENDED, [person], "x")
    receiver.status = 500
    for _ in range(len(delivering.PAUSES) + 1):
        Delivery.objects.update(due_at=timezone.now())
        delivering.deliver_due()
    assert Delivery.objects.get().state == "failed"
    Delivery.objects.update(due_at=timezone.now())
    assert delivering.deliver_due() == 0


def test_two_workers_send_it_once(person: Person, admin: Person, receiver: Receiver) -> None:
    allowed_hook(person, admin, receiver)
    tell(Kind.RUN_ENDED, [person], "x")
    assert delivering.take(timezone.now()) is not None
    assert delivering.take(timezone.now()) is None
    Delivery.objects.update(due_at=timezone.now())
    assert delivering.take(timezone.now()) is not None, "the first worker died on the way"


def test_no_redirect_is_followed(person: Person, admin: Person, receiver: Receiver) -> None:
    hook = allowed_hook(person, admin, receiver)
    receiver.status, receiver.location = 307, receiver.url.replace("/hook", "/elsewhere")
    with pytest.raises(webhooks.NotTaken, match="HTTP 307"):
        webhooks.try_out(hook, "")
    assert len(receiver.calls) == 1


def test_a_private_address_needs_an_admin_s_word(
    person: Person, admin: Person, receiver: Receiver, signed_in: Client
) -> None:
    page = signed_in.post("/settings/notifications/webhooks/", {"url": receiver.url}, follow=True).content.decode()
    assert "An admin can allow it" in page
    hook = Webhook.objects.get()
    tell(Kind.RUN_ENDED, [person], "x")
    delivering.deliver_due()
    assert not receiver.calls
    assert "private network" in Delivery.objects.get().error
    assert signed_in.post(f"/settings/notifications/webhooks/{hook.pk}/", {"do": "allow"}).status_code == 403
    browser = Client()
    browser.force_login(admin)
    browser.post(f"/settings/notifications/webhooks/{hook.pk}/", {"do": "allow"})
    assert AuditEntry.objects.filter(kind="webhook.private_allowed", who="root").exists()
    said = signed_in.post(f"/settings/notifications/webhooks/{hook.pk}/", {"do": "try"}, follow=True).content.decode()
    assert "took a signed notice" in said and len(receiver.calls) == 1


def test_nobody_sees_or_tries_the_webhook_of_another(person: Person, admin: Person, receiver: Receiver) -> None:
    hook = allowed_hook(admin, admin, receiver)
    browser = Client()
    browser.force_login(person)
    assert browser.post(f"/settings/notifications/webhooks/{hook.pk}/", {"do": "remove"}).status_code == 404
    assert browser.get("/api/v1/webhooks/").json()["results"] == []
    assert hook.secret not in browser.get("/settings/notifications/").content.decode()
    theirs = webhooks.add(person, "https://198.51.100.9/")
    root = Client()
    root.force_login(admin)
    page = root.get("/settings/notifications/").content.decode()
    assert theirs.url in page and theirs.secret not in page


CLOSED = (
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
    "255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "ff02::1", "fec0::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:c0a8:101::1", "fe80::1%eth0",
)  # fmt: skip


@pytest.mark.parametrize("ip", CLOSED)
def test_no_private_address_counts_as_open(ip: str) -> None:
    assert not addresses.is_open(ip)


@pytest.mark.parametrize("ip", ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "64:ff9b::101:101"])
def test_the_open_network_is_open(ip: str) -> None:
    assert addresses.is_open(ip)


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "127.1", "[::ffff:127.0.0.1]", "localhost", "0"])
def test_an_address_in_disguise_is_looked_through(host: str) -> None:
    with pytest.raises(addresses.BadAddress):
        addresses.look_up(f"http://{host}:8000/")


def test_a_name_with_one_private_address_among_others_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, 443)) for ip in ("1.1.1.1", "10.0.0.8")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *words, **options: answers)
    with pytest.raises(addresses.PrivateAddress, match=r"10\.0\.0\.8"):
        addresses.look_up("https://hooks.example.org/")


def test_what_was_looked_at_is_what_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["1.1.1.1", "127.0.0.1"])
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda *words, **options: [(socket.AF_INET, 1, 6, "", (next(answers), 443))]
    )
    target = addresses.look_up("https://hooks.example.org:8443/a?b=c#d")
    assert (target.url, target.host, target.host_header) == (
        "https://1.1.1.1:8443/a?b=c",
        "hooks.example.org",
        "hooks.example.org:8443",
    )


@pytest.mark.parametrize(
    "url",
    ["", "ftp://x.org/", "https://", "https://a b.org/", "https://u:p@x.org/", "javascript:alert(1)", "https://x:0/",
     "https://x:99999/", "http://[::1", "https://x.org/\r\nX: y", "https://x.org/" + "a" * 600],
)  # fmt: skip
def test_what_is_no_address_is_refused(person: Person, url: str) -> None:
    with pytest.raises(Refused) as refusal:
        webhooks.add(person, url)
    assert refusal.value.field == "url"
