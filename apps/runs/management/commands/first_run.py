"""manage.py first_run: launches the first real run once this machine can judge, and prints its address."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.hosts.models import Device
from apps.kernels.evaluation import Language
from apps.people.models import Person, Role
from apps.runs import launch
from apps.runs.launch import LaunchOrder
from apps.runs.models import Origin, Problem, Run
from apps.runs.refusals import Refused

_LOOK_EVERY = 0.5


class Command(BaseCommand):
    """Launches one run on a fresh installation, so that there is something to see."""

    help = "Launch the first run when a host is ready, unless there is a run already."

    def add_arguments(self, parser: CommandParser) -> None:
        """How long to wait, and where pages are served."""
        parser.add_argument("--wait", type=float, default=180.0, help="seconds to wait for a host (default 180)")
        parser.add_argument("--address", default="http://127.0.0.1:8000", help="where pages are served")

    def handle(self, *args: Any, wait: float, address: str, **options: Any) -> None:
        """Launch and print the address; says so and does nothing where there is a run."""
        if Run.objects.exists():
            self.stdout.write("There are runs already.")
            return
        problem = Problem.objects.filter(origin=Origin.STARTER, hidden=False).order_by("pk").first()
        if problem is None:
            raise CommandError("There are no problems yet. Load them: python manage.py load_problems")
        run = self._launched(problem, time.monotonic() + wait)
        self.stdout.write(f"{address.rstrip('/')}/runs/{run.pk}/")

    def _launched(self, problem: Problem, until: float) -> Run:
        owner = Person.objects.filter(role=Role.ADMIN, is_active=True).order_by("pk").first()
        refusal = Refused("No host has joined yet: start a station (python -m apps.station).")
        while time.monotonic() < until:
            for device in Device.objects.select_related("host").filter(retired=False):
                try:
                    if not launch.why_not(device, Language.CPP):
                        return launch.launch(owner, LaunchOrder(problem, str(device)))
                except Refused as reason:
                    refusal = reason
            time.sleep(_LOOK_EVERY)
        raise CommandError(f"No first run yet. {refusal.message}")
