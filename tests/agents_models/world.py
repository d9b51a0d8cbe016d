"""A run whose models are asked over HTTP and whose device is a double: it judges by a comment in the candidate."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apps.agents.coders import coder_named
from apps.agents.facts import RunEnded
from apps.agents.gateway.purse import Purse
from apps.agents.gateway.settings import ModelSettings
from apps.agents.journal import MemoryJournal, to_transcript
from apps.agents.loop import optimise
from apps.agents.steps.course import Team
from apps.agents.words import Assignment, Seed
from apps.kernels.facts import ProblemFacts, TensorFact
from apps.kernels.plain import to_plain
from tests.agents.doubles import Ears, People, ScriptedDevice, Watch, World, an_assignment
from tests.agents_models.server import ECHO, Reply, Request

PROBLEM = Path("problems/normalization/rms_norm.py").read_text()
_JUDGED = re.compile(r"# judged: (.*)")


def a_kernel(judged: str, more: str = "") -> str:
    """A candidate that the device finds to be so."""
    return f'''import torch
from torch import nn

# judged: {judged}
SOURCE = r"""extern "C" void kernel(float* x);{more}"""


class ModelNew(nn.Module):
    def __init__(self, eps):
        super().__init__()

    def forward(self, x):
        return torch.empty_like(x), SOURCE
'''


def answer(judged: str, more: str = "", reasoning: str = "") -> Reply:
    """A model's answer with such a candidate in it; it also says the key it was called with."""
    text = f"Plan: make it {judged}, {ECHO}.\n\n```python\n{a_kernel(judged, more)}# {ECHO}\n```\nDone."
    return Reply(text, reasoning or f"I was given {ECHO} to use.")


def counsel(metric: str = "minor_faults", threshold: float = 1.0, **more: Any) -> Reply:
    """A Conductor's answer."""
    data = {
        "bottleneck": "page faults",
        "evidence": [{"metric": metric, "relation": ">", "threshold": threshold}],
        "change": "Allocate less.",
        "expected": [{"metric": "time_over_reference", "ratio": 0.8, "low": 0.6, "high": 0.95}],
        "why": "Fresh pages cost.",
    }
    return Reply(f"Well:\n```json\n{json.dumps(data | more)}\n```", f"The key is {ECHO}.")


def is_conductor(request: Request) -> bool:
    return request.system.startswith("You read the profile")


def is_verifier(request: Request) -> bool:
    return request.system.startswith("You read why")


def is_coder(request: Request) -> bool:
    return not is_conductor(request) and not is_verifier(request)


def diagnosis(line: object = 5, **more: Any) -> Reply:
    """A Verifier's answer."""
    data = {"wrong": "The last block is not masked.", "line": line, "change": "Mask it."}
    return Reply(f"```json\n{json.dumps(data | more)}\n```", f"The key is {ECHO}.")


def in_turn(
    coder: list[Reply], conductor: Callable[[], Reply] = counsel, verifier: Callable[[], Reply] = diagnosis
) -> Callable[[Request], Reply]:
    """The Coder's answers in order, the last one repeated; the Conductor's and the Verifier's by functions."""
    replies: Iterator[Reply] = iter(coder)
    last = coder[-1]

    def reply(request: Request) -> Reply:
        if is_conductor(request):
            return conductor()
        return verifier() if is_verifier(request) else next(replies, last)

    return reply


class CommentDevice(ScriptedDevice):
    def evaluate(self, key: str, source: str, *arguments: Any, against: str | None = None, **options: Any) -> Any:
        return super().evaluate(
            key, judged(source), *arguments, against=judged(against) if against else None, **options
        )


def judged(source: str) -> str:
    found = _JUDGED.search(source)
    return found.group(1).strip() if found else source


@dataclass
class ModelRun:
    """One run with its world; `records` is its journal."""

    settings: ModelSettings
    heed: Callable[[], None] = lambda: None
    purse: Purse | None = None
    world: World = field(default_factory=lambda: World({}))
    verifier: bool = True

    def start(self, journal: MemoryJournal | None = None, **changes: Any) -> RunEnded:
        self.journal = journal or MemoryJournal(Ears(self.world))
        return optimise(a_model_assignment(**changes), self.team())

    def team(self) -> Team:
        pair = coder_named(self.settings.name, self.settings, heed=self.heed, purse=self.purse)
        device = CommentDevice(self.world)
        people, watch = People(self.world), Watch(self.world)
        return Team(
            pair.coder, pair.conductor, device, self.journal, people, watch, pair.verifier if self.verifier else None
        )

    def everything(self) -> str:
        """All that is kept or shown of the run."""
        shown = [to_plain(fact) for fact in self.world.facts] + [to_plain(text) for text in self.world.texts]
        streamed = "".join(text for _, _, text in self.world.texts)
        return json.dumps(shown) + to_transcript(self.journal.records) + streamed


def a_model_assignment(**changes: Any) -> Assignment:
    facts = ProblemFacts(
        inputs=(TensorFact("x", "input", "float32", (16, 64, 64, 64), (262144, 4096, 64, 1), 16 << 20),),
        outputs=(TensorFact("y", "output", "float32", (16, 64, 64, 64), (262144, 4096, 64, 1), 16 << 20),),
        init_inputs=(1e-5,),
        flops=12_000_000,
        compulsory_bytes=33_554_432,
    )
    seeds = (Seed(a_kernel("correct 1.5"), "builtin"),)
    return an_assignment(**({"problem": PROBLEM, "facts": facts, "seeds": seeds, "repairs": 1} | changes))
