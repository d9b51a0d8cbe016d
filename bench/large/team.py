"""What a team leaves behind beside its runs: calls of models, notices, the audit log, tokens, webhooks, deliveries."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from apps.ledger.limits import month_of
from apps.ledger.models import Call, LanguageModel, Limits, Outcome, PersonLimit, Trial, TrialState
from apps.notices.models import Delivery, Kind, Notice, Way, Webhook
from apps.people.models import AuditEntry, Token
from bench.large.runs import Built
from bench.large.size import Size
from bench.large.world import World
from tests.pages.factories import digest

_BATCH = 2000
_DEEDS = ("run.launched", "run.stopped", "host.drained", "member.role_changed", "sign_in.done", "review.accepted")


def build(size: Size, world: World, runs: Built) -> None:
    """All of it: 60,000 calls, 20,000 notices, 30,000 audit entries at 10,000 runs."""
    _calls(size, world, runs)
    _notices(size, world)
    people = world.people
    AuditEntry.objects.bulk_create(
        (
            AuditEntry(
                person=people[n % len(people)],
                who=people[n % len(people)].username,
                kind=_DEEDS[n % len(_DEEDS)],
                about=f"run {n}",
                link=f"/runs/{n}/",
                address=f"192.0.2.{n % 250}",
                through="page",
                at=world.now - timedelta(minutes=n),
            )
            for n in range(size.share(30_000, 6))
        ),
        batch_size=_BATCH,
    )
    Token.objects.bulk_create(
        Token(
            person=people[n % 3],
            name=f"nightly {n}",
            prefix="pragma_abc",
            digest=digest(f"token {n}"),
            scopes=["read", "launch"],
            expires_at=world.now + timedelta(days=90),
            last_used_at=world.now,
        )
        for n in range(size.share(300, 6))
    )


def _calls(size: Size, world: World, runs: Built) -> None:
    chosen = LanguageModel.objects.bulk_create(
        LanguageModel(name=f"model-{n}", model_id=f"openai/model-{n}", usd_per_million_in=3, usd_per_million_out=15)
        for n in range(size.share(20, 4))
    )
    Limits.objects.create(pk=1, team_month_usd=50_000, person_month_usd=5_000)
    PersonLimit.objects.bulk_create(PersonLimit(person=one, month_usd=100) for one in world.people[1:3])
    Trial.objects.bulk_create(
        Trial(model=chosen[n % len(chosen)], asked_by=world.people[0], state=TrialState.DONE, message="It answers.",
              seconds=1.4, ended_at=world.now)
        for n in range(size.share(400, 8))
    )  # fmt: skip
    people = world.people
    Call.objects.bulk_create(
        (
            Call(
                model=chosen[n % len(chosen)],
                run=runs.events if n % 20 == 0 else 1 + n % runs.usual,
                person=people[n % len(people)],
                month=month_of(world.now - timedelta(days=30 * (n % 6))),
                agent="coder",
                step=f"{n % 200}.0.coder.0",
                iteration=n % 200,
                slot=0,
                attempt=0,
                outcome=Outcome.ANSWERED,
                cost_usd=Decimal("0.0412"),
                counted_usd=Decimal("0.0412"),
                tokens_in=5120,
                tokens_out=1840,
                seconds=21.5,
                began_at=world.now - timedelta(minutes=n),
                ended_at=world.now,
                expires_at=world.now,
            )
            for n in range(size.share(60_000, 40))
        ),
        batch_size=_BATCH,
    )


def _notices(size: Size, world: World) -> None:
    people, kinds = world.people, list(Kind)
    notices = Notice.objects.bulk_create(
        (
            Notice(
                person=people[0] if n % 4 == 0 else people[n % len(people)],
                kind=kinds[n % len(kinds)],
                title=f"Run {n}: v4 is 4.52× faster",
                link=f"/runs/{n}/",
                key=f"notice {n}",
                at=world.now - timedelta(minutes=n),
                read_at=world.now if n % 3 else None,
            )
            for n in range(size.share(20_000, 8))
        ),
        batch_size=_BATCH,
    )
    hooks = Webhook.objects.bulk_create(
        Webhook(person=people[n % 4], url=f"https://hooks.example.org/{n}", salt=str(n))
        for n in range(size.share(12, 4))
    )
    Delivery.objects.bulk_create(
        (
            Delivery(person_id=one.person_id, way=Way.WEBHOOK, notice=one, webhook=hooks[0], state="sent")
            for one in notices[: len(notices) // 2]
        ),
        batch_size=_BATCH,
    )
