"""What people are told of their runs, beyond the page they may not be looking at."""

from __future__ import annotations

from collections.abc import Mapping

from apps.agents.words import Ending
from apps.kernels.plain import Plain
from apps.notices.models import Kind
from apps.notices.telling import tell
from apps.runs.models import Event, Run


def tell_ended(run_id: int, text: str, data: Mapping[str, Plain]) -> None:
    """Tell the run's owner how it ended, unless they stopped it themselves; in the transaction that ends it."""
    run = Run.objects.select_related("owner", "problem").get(pk=run_id)
    if run.owner is None or _stopped_by(run) == str(run.owner):
        return
    kind = Kind.RUN_FAILED if data.get("ending") == Ending.FAILED else Kind.RUN_ENDED
    title = f"{run}, {run.problem}: {text}"
    tell(
        kind,
        [run.owner],
        title,
        text=str(data.get("reason", "")),
        link=run.get_absolute_url(),
        key=f"run:{run_id}:ended",
    )


def _stopped_by(run: Run) -> str:
    asked = Event.objects.filter(run=run, kind="stop_asked").order_by("-seq").first()
    return str(asked.data.get("by", "")) if asked else ""
