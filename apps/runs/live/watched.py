"""One run that sockets watch: what they were sent last, and what is new for them."""

from __future__ import annotations

import itertools

from apps.runs import wire
from apps.runs.live import measures
from apps.runs.live.reading import OpenText, Snapshot
from apps.runs.live.subscription import Subscription


class Watched:
    """A watched run. `tail` is the number of the last event sent; lives in the tailer's event loop."""

    def __init__(self, run_id: int, first: Snapshot) -> None:
        self.run_id = run_id
        self.subscriptions: set[Subscription] = set()
        self.tail = first.status.last_seq
        self.status = first.status
        self.drafts = dict(first.drafts)

    def take(self, snapshot: Snapshot) -> None:
        """Send on what is new: events, drafts that ended, text of the open ones, the status."""
        messages = []
        events = [event for event in snapshot.events if event.seq > self.tail]
        if events:
            messages.append(wire.events_message(events))
            measures.note_sent(events)
            self.tail = events[-1].seq
        ended = {event.step for event in events if event.kind == "step_ended"}
        is_open = {step: text for step, text in snapshot.drafts.items() if step not in ended}
        messages += [wire.draft_end_message(step) for step in self.drafts if step not in is_open]
        messages += [message for step, text in is_open.items() if (message := self._news(step, text))]
        self.drafts = is_open
        if snapshot.status != self.status:
            self.status = snapshot.status
            messages.append(wire.status_message(snapshot.status))
        for subscription in self.subscriptions:
            for message in messages:
                subscription.offer(message)

    def _news(self, step: str, now: OpenText) -> str | None:
        before = self.drafts.get(step)
        if before == now:
            return None
        kept = _kept(before.text, now.text) if before is not None else ""
        return wire.draft_message(step, now.agent, now.iteration, wire.utf16_length(kept), now.text[len(kept) :])

    def open_drafts(self) -> list[str]:
        """Each open draft whole, as it was sent so far to the others."""
        return [
            wire.draft_message(step, text.agent, text.iteration, 0, text.text) for step, text in self.drafts.items()
        ]


def _kept(before: str, now: str) -> str:
    """What two texts begin with alike: all of the earlier one, unless the step was begun anew."""
    if now.startswith(before):
        return before
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(before, now, strict=False))
    return "".join(character for character, _ in same)
