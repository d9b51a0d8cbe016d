"""The whole database, in one transaction."""

from __future__ import annotations

from dataclasses import dataclass

from django.core.management.color import no_style
from django.db import connection, transaction

from apps.hosts.models import Job
from apps.runs.models import Measurement, Run, Version
from bench.large import reviews, runs, team, world
from bench.large.size import Size
from bench.large.world import World


@dataclass(frozen=True)
class Large:
    """What addresses are made of."""

    world: World
    runs: runs.Built
    reviews: reviews.Reviewed


def build(size: Size) -> Large:
    """Fill a database that has none of it yet."""
    with transaction.atomic():
        found = world.build(size)
        made = runs.build(size, found)
        for statement in connection.ops.sequence_reset_sql(no_style(), [Run, Version, Job, Measurement]):
            with connection.cursor() as cursor:
                cursor.execute(statement)
        team.build(size, found, made)
        reviewed = reviews.build(size, found, made)
    return Large(found, made, reviewed)
