"""The four questions, put together from the prompts' files within `room` characters, the model's context."""

from __future__ import annotations

from apps.agents import verifier
from apps.agents.gateway.purse import Message
from apps.agents.profiler import summary
from apps.agents.words import Advice, Assignment, Attempt, Brief, History
from apps.agents.writers import telling
from apps.agents.writers.excerpt import numbered
from apps.agents.writers.fitting import Keep, Section, fitted
from apps.agents.writers.prompts import Prompts
from apps.kernels.evaluation import Verdict

_PLAIN_FORM = "the whole file in one fenced block that starts with ```python"
_FIRST = "Write a first version: all of the module in as few passes over memory as can be, threaded and vectorised."
_OTHERS = (
    "Other candidates are written at the same time by the most obvious plan. Choose another one.",
    "Other candidates are written at the same time. Choose the plan that reads and writes the least memory.",
    "Other candidates are written at the same time. Choose a plan with intrinsics for the machine's vectors.",
)
_MOST_LINES_OF_ERROR = 60
_MOST_LINES_TO_READ = 400  # of a candidate, for reading why it failed


def to_write(brief: Brief, base: Attempt | None, room: int) -> tuple[Message, ...]:
    """What a Coder is asked for a candidate. `base` is the version to start from. Raises `CannotWrite`."""
    assignment, history = brief.assignment, brief.history
    best = telling.best(base) if base is not None else ""
    sections = [
        *_always(assignment),
        Section("task", _task(brief, base), Keep.ALL),
        Section("advice", telling.advice(brief.advice), Keep.ALL),
        Section("hints", telling.hints(history), Keep.END, 1),
        Section("best", best, Keep.NOTHING, 2),
        Section("failures", telling.failures(history), Keep.END, 4),
    ]
    return _coder(assignment, "coder.md", sections, form_of(base), room)


def to_repair(brief: Brief, failed: Attempt, room: int) -> tuple[Message, ...]:
    """What a Coder is asked for a candidate that failed. Raises `CannotWrite`."""
    assignment, history = brief.assignment, brief.history
    sections = [
        *_always(assignment),
        Section("candidate", failed.writing.source.strip(), Keep.ALL),
        Section("error", _error(failed), Keep.START, 1),
        Section("diagnosis", telling.diagnosis(history.diagnosis(failed.number), failed), Keep.NOTHING, 1),
        Section("advice", telling.advice(brief.advice), Keep.NOTHING, 2),
        Section("hints", telling.hints(history), Keep.END, 1),
        Section("failures", telling.failures(history), Keep.END, 4),
    ]
    return _coder(assignment, "repair.md", sections, form_of(failed), room)


def to_diagnose(assignment: Assignment, failed: Attempt, room: int) -> tuple[Message, ...]:
    """What a Verifier is asked about a candidate that failed. Raises `CannotWrite`.

    What doesn't build fails by itself: of the module only the facts are told then.
    """
    prompts, error = Prompts(assignment.prompts), _error(failed)
    builds = failed.evaluation.verdict is not Verdict.BUILD_FAILED
    problem = f"# The module\n\n```python\n{assignment.problem.strip()}\n```\n\n" if builds else ""
    candidate = "\n".join(numbered(failed.writing.source, error).splitlines()[:_MOST_LINES_TO_READ])
    sections = [
        Section("problem", problem, Keep.ALL),
        Section("facts", telling.facts(assignment.facts, assignment.overrides), Keep.START, 3),
        Section("candidate", candidate, Keep.START, 2),
        Section("error", error, Keep.START, 1),
    ]
    return _messages(prompts, "diagnose.md", prompts.fill("diagnose_system.md"), sections, room)


def to_advise(assignment: Assignment, history: History, best: Attempt, room: int) -> tuple[Message, ...]:
    """What a Conductor is asked about the best version. Raises `CannotWrite`."""
    prompts = Prompts(assignment.prompts)
    profile = best.evaluation.profile
    metrics = telling.metrics(best, history.attempt(best.parent), prompts.metrics(assignment.host))
    open_advices = unfollowed(history)
    before = [one for one in history.advices if one not in open_advices]
    sections = [
        *_always(assignment),
        Section("number", str(best.number), Keep.ALL),
        Section("speed", summary(best.evaluation), Keep.ALL),
        Section("metrics", metrics, Keep.ALL),
        Section("found", telling.found(profile.bottleneck), Keep.ALL),
        Section("given", telling.given(open_advices), Keep.ALL),
        Section("past", telling.past(before, history.holdings, history), Keep.END, 2),
        Section("hints", telling.hints(history), Keep.END, 1),
        Section("best", best.writing.source.strip(), Keep.START, 3),
        Section("failures", telling.failures(history), Keep.END, 4),
    ]
    system = prompts.fill("conductor_system.md")
    return _messages(prompts, "conductor.md", system, sections, room)


def _error(failed: Attempt) -> str:
    return "\n".join(verifier.report(failed.evaluation).splitlines()[:_MOST_LINES_OF_ERROR])


def sent_back(assignment: Assignment, reason: str, form: str) -> str:
    """What a model is told of an answer that can't be used."""
    return Prompts(assignment.prompts).fill("again.md", reason=f"{reason.rstrip('.')}.", form=form)


def unfollowed(history: History) -> tuple[Advice, ...]:
    """The advices given for the coming iteration: those that nothing has come of yet."""
    done = {attempt.advice for attempt in history.attempts} | {dropped.advice for dropped in history.unwritten}
    return tuple(one for one in history.advices if one.number not in done)


def _always(assignment: Assignment) -> list[Section]:
    return [
        Section("problem", assignment.problem.strip(), Keep.ALL),
        Section("facts", telling.facts(assignment.facts, assignment.overrides), Keep.START, 5),
        Section("host", telling.machine(assignment.host), Keep.START, 3),
    ]


def _task(brief: Brief, base: Attempt | None) -> str:
    if brief.advice is not None and base is not None:
        return f"Make the change above, starting from v{base.number}. Keep what is good in it."
    if base is not None:
        return f"Make v{base.number} faster."
    return _FIRST if brief.slot == 0 else f"{_FIRST} {_OTHERS[(brief.slot - 1) % len(_OTHERS)]}"


def form_of(base: Attempt | None) -> str:
    """How a candidate is to be handed over."""
    if base is None:
        return _PLAIN_FORM
    return (
        f"{_PLAIN_FORM}; or, where little of v{base.number} changes, a unified diff against it in one fenced block that "
        "starts with ```diff"
    )


def _coder(assignment: Assignment, name: str, sections: list[Section], form: str, room: int) -> tuple[Message, ...]:
    prompts = Prompts(assignment.prompts)
    house, policy = prompts.house(assignment.language), telling.POLICIES[assignment.policy]
    system = prompts.fill("coder_system.md", house=house, policy=policy)
    return _messages(prompts, name, system, [*sections, Section("form", form, Keep.ALL)], room)


def _messages(prompts: Prompts, name: str, system: str, sections: list[Section], room: int) -> tuple[Message, ...]:
    bare = prompts.fill(name, **{section.name: "" for section in sections})
    texts = fitted(sections, room - len(system) - len(bare))
    return Message("system", system), Message("user", prompts.fill(name, **texts))
