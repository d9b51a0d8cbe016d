"""Asking a model: streamed, paid for, interrupted, tried again, and never with a key in what is heard."""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Event
from time import monotonic

from apps.agents.gateway import provider
from apps.agents.gateway.faults import CallFailed, Fault, fault_of
from apps.agents.gateway.purse import Call, Message, OpenPurse, OverLimit, Purse, Question
from apps.agents.gateway.secret import ScrubbedStream, Scrubber
from apps.agents.gateway.settings import ModelSettings
from apps.agents.gateway.streaming import Broken, Finish, Heed, Silent, Stream, TooLong
from apps.agents.ports import Say, Stopped
from apps.agents.words import Usage

# A stream shows reasoning between these, as many models write it themselves; a page may fold what lies between.
THINKS, THOUGHT = "<think>\n", "\n</think>\n\n"
_FIRST_PAUSE = 2.0  # seconds before the second try; doubled before each further one
_HEED_EVERY = 0.25  # seconds


@dataclass(frozen=True)
class Answer:
    """What a model said. Not `complete`: it was cut short, and `why_cut` says by what."""

    text: str
    reasoning: str
    usage: Usage
    complete: bool = True
    why_cut: str = ""


class Gateway:
    """One model as a run uses it.

    `heed` is called several times a second while a call is on its way or waited for, in the thread that asks; what it
    raises ends the call at once and passes through (`Stopped` with what was said and spent until then).
    """

    def __init__(self, settings: ModelSettings, *, heed: Heed = lambda: None, purse: Purse | None = None) -> None:
        self.settings = settings
        self.scrubber = Scrubber(settings.secrets)
        self._heed = heed
        self._purse = purse or OpenPurse()

    @property
    def terms(self) -> provider.Terms:
        """What the model takes and costs."""
        return provider.terms(self.settings)

    def ask(self, question: Question, say: Say) -> Answer:
        """The model's answer, its text said as it comes.

        A stream that breaks off after it began to answer is an answer that is not complete. What may pass is tried again,
        after the pause that the server asks for. Raises `CallFailed`, with the usage of all tries.
        """
        spent = Usage()
        for tried in range(1, self.settings.tries + 1):
            try:
                answer = self._once(question, say)
                return replace(answer, usage=provider.added(spent, answer.usage))
            except CallFailed as failed:
                spent = failed.usage = provider.added(spent, failed.usage)
                pause = self._pause(failed, tried)
                if pause is None:
                    raise
                say(f"\n[{failed} Trying again in {pause:.0f} s.]\n")
                self._wait(pause, spent)
            except Stopped as stopped:
                stopped.usage = provider.added(spent, stopped.usage)
                raise
        raise AssertionError("the last try returns or raises")

    def _once(self, question: Question, say: Say) -> Answer:
        try:
            largest = provider.largest(self.settings, question)
            token = self._purse.reserve(self.settings.name, question.purpose, largest)
        except OverLimit as over:
            raise CallFailed(Fault.LIMIT, str(over)) from None
        hearing = _Hearing(self.settings, question, self.scrubber, say)
        failure: str | None = "The call was ended."
        fault: Fault | None = None
        try:
            answer = hearing.hear(self._heed)
            failure = None
            return answer
        except CallFailed as failed:
            failure, fault = str(failed), failed.fault
            raise
        except Stopped as stopped:
            failure, stopped.usage, stopped.text = str(stopped), hearing.usage, hearing.said
            raise
        finally:
            self._purse.settle(token, hearing.call(failure, fault))

    def _pause(self, failed: CallFailed, tried: int) -> float | None:
        """Seconds until the next try, or None where there is none."""
        if not failed.may_pass or tried >= self.settings.tries:
            return None
        pause = failed.wait if failed.wait is not None else _FIRST_PAUSE * 2 ** (tried - 1)
        if pause > self.settings.longest_wait_seconds:
            failed.args = (f"{failed} It asks to wait {pause:.0f} s, longer than a run waits.",)
            return None
        return pause

    def _wait(self, seconds: float, spent: Usage) -> None:
        until = monotonic() + seconds
        try:
            while (left := until - monotonic()) > 0:
                self._heed()
                Event().wait(min(left, _HEED_EVERY))
        except Stopped as stopped:
            stopped.usage = spent
            raise


class _Hearing:
    """One try: what was heard so far, scrubbed and said, and what it took."""

    def __init__(self, settings: ModelSettings, question: Question, scrubber: Scrubber, say: Say) -> None:
        self._settings = settings
        self._question = question
        self._scrubber = scrubber
        self._say = say
        self._reasoning = _Voice(scrubber)
        self._answer = _Voice(scrubber)
        self._finish: Finish | None = None
        self._stream: Stream | None = None
        self._made = False
        self.why_cut = ""
        self.said = ""

    @property
    def usage(self) -> Usage:
        """What the try took: the server's count or, where there is none, an estimate. A refused call takes nothing."""
        seconds = round(self._stream.seconds, 3) if self._stream else 0.0
        if self._finish is not None and self._finish.counted is not None:
            return provider.usage_of(self._settings, self._finish.counted, seconds)
        if not self._made:
            return Usage(seconds, self._settings.name, 0, 0, 0.0)
        heard = len(self._reasoning.text) + len(self._answer.text)
        return provider.estimated(self._settings, self._question.characters, heard, seconds)

    @property
    def _was_counted(self) -> bool:
        """Whether the server counted tokens: then it is a model's, though it said nothing. (litellm makes a regular end up.)"""
        return self._finish is not None and self._finish.counted is not None

    def hear(self, heed: Heed) -> Answer:
        """The whole answer. Raises `CallFailed`, and what `heed` raises."""
        self._stream = Stream(self._settings, self._question, heed)
        failed: CallFailed | None = None
        try:
            for piece in self._stream:
                self._made = True
                self._voice(self._reasoning.feed(piece.reasoning), self._answer.feed(piece.answer))
        except (Silent, TooLong) as late:
            self._made = True  # it may have been thinking all the while, and that is paid for
            failed = self._late(late)
        except Stopped:
            self._made = True
            raise
        except Broken as broken:
            failed = fault_of(broken.problem, self._settings, self._scrubber)
        if failed is not None:  # raised out here, so that it drags no unscrubbed text along as its context
            self._broken(failed)
        self._voice(self._reasoning.flush(), self._answer.flush())
        self._finish = self._stream.finish
        self._made = self._made or self._was_counted
        return self._checked()

    def call(self, failure: str | None, fault: Fault | None) -> Call:
        """The try as accounts keep it."""
        messages = tuple(
            Message(message.role, self._scrubber.without_secrets(message.text)) for message in self._question.messages
        )
        return Call(
            self._settings.name,
            replace(self._question, messages=messages),
            self._reasoning.text,
            self._answer.text,
            failure is None and not self.why_cut,
            self.usage,
            failure,
            fault.value if fault is not None else None,
        )

    def _checked(self) -> Answer:
        reason = self._finish.reason if self._finish else None
        if reason == "length":
            longest = provider.longest_answer(self._settings, self._question)
            self.why_cut = f"it reached the limit of {longest} tokens"
        if reason == "content_filter":
            raise CallFailed(Fault.REFUSED, f"{self._settings.name} refuses to answer this.", usage=self.usage)
        if not self._answer.text.strip():
            raise CallFailed(Fault.EMPTY, self._nothing(), usage=self.usage, text=self.said)
        return Answer(self._answer.text, self._reasoning.text, self.usage, not self.why_cut, self.why_cut)

    def _nothing(self) -> str:
        name, address = self._settings.name, self._settings.address
        if self.why_cut:
            return f"{name} gave no answer: {self.why_cut} while it was still reasoning. Let it answer at more length."
        if not self._made:
            return f"{address} sent nothing that is an answer. Check that it is the address of a model's server."
        return f"{name} ended without an answer."

    def _broken(self, failed: CallFailed) -> None:
        """Keep an answer that had begun; otherwise there is none."""
        self._voice(self._reasoning.flush(), self._answer.flush())
        if not self._answer.text.strip():
            failed.usage, failed.text = self.usage, self.said
            raise failed
        self.why_cut = str(failed).rstrip(".")

    def _late(self, late: TimeoutError) -> CallFailed:
        address = self._settings.address
        if isinstance(late, TooLong):
            limit = self._settings.wall_seconds
            message = f"Time-out: the answer from {address} was not done after {limit:g} s."
            return CallFailed(Fault.TIME_OUT, message, again=False)
        limit = self._settings.read_seconds
        return CallFailed(Fault.TIME_OUT, f"Time-out: nothing came from {address} for {limit:g} s.")

    def _voice(self, reasoning: str, answer: str) -> None:
        """Say what is new, reasoning between its marks."""
        text = ""
        if reasoning:
            text += THINKS if self._reasoning.begins() else ""
            text += reasoning
        if answer:
            text += THOUGHT if self._answer.begins() and self._reasoning.text else ""
            text += answer
        if text:
            self.said += text
            self._say(text)


class _Voice:
    """One of a stream's two texts, scrubbed."""

    def __init__(self, scrubber: Scrubber) -> None:
        self._stream = ScrubbedStream(scrubber)
        self._begun = False
        self.text = ""

    def begins(self) -> bool:
        """Whether this is the first time."""
        first, self._begun = not self._begun, True
        return first

    def feed(self, piece: str) -> str:
        new = self._stream.feed(piece) if piece else ""
        self.text += new
        return new

    def flush(self) -> str:
        new = self._stream.flush()
        self.text += new
        return new
