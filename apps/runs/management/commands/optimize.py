"""manage.py optimize PROBLEM.py: a whole run on this machine, in this process. The same rows as a run of the server's."""

from __future__ import annotations

import ast
import json
import logging
import os
import signal
import sys
from dataclasses import replace
from decimal import Decimal
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from apps.agents.coders import BUILTIN
from apps.agents.words import Seed
from apps.kernels.evaluation import Language, Policy, Progress
from apps.kernels.facts import ProblemFacts
from apps.kernels.host.report import host_report
from apps.kernels.inspect import inspect
from apps.kernels.jail import JailFailed, Zygote, ZygoteFailed
from apps.kernels.plain import to_plain
from apps.ledger.forms import read_temperatures, words_of
from apps.runs import inprocess, launch, problems, seeding, starters, steering, summary
from apps.runs.launch import LaunchOrder
from apps.runs.models import LIVE_RUN_STATES, Event, Level, Origin, Problem, Run, Sizing
from apps.runs.problems import Overrides
from apps.runs.refusals import Refused

_SHOW_EVERY = 0.2
_CLEAR_LINE = "\r\x1b[2K"


class Command(BaseCommand):
    """Optimises one problem here."""

    help = "Find a faster kernel for a problem, on this machine and in this process."
    requires_system_checks = []  # noqa: RUF012 - the base class declares it so
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        """What to optimise and how."""
        parser.add_argument("problem", metavar="PROBLEM.py", type=Path, help="Model, get_inputs and get_init_inputs")
        parser.add_argument("--language", default=Language.CPP.value, help="cpp (default)")
        parser.add_argument(
            "--policy",
            default=Policy.LIBRARY.value,
            help="what it may call: library (default: own kernels and library products) or kernel (own kernels alone)",
        )
        parser.add_argument(
            "--coder", default=BUILTIN, help="builtin (default), or a model of Settings › Models by name"
        )
        parser.add_argument("--iterations", type=int, default=8, help="turns of the loop at most (default 8)")
        parser.add_argument("--candidates", type=int, default=1, help="of each iteration (default 1)")
        parser.add_argument("--temperatures", default="", metavar="T,T", help="a model's, one for each candidate")
        parser.add_argument("--goal", type=float, help="stop at this speed-up")
        parser.add_argument("--minutes", type=float, help="stop after so long")
        parser.add_argument("--money", type=Decimal, metavar="USD", help="the most its model may cost")
        parser.add_argument("--tokens", type=int, help="the most tokens its model may take, in and out")
        parser.add_argument("--no-profile", action="store_true", help="the Conductor sees verdict and time only")
        parser.add_argument(
            "--seed", dest="seeds", metavar="FILE", type=Path, action="append", default=[],
            help="a candidate to start from; may be repeated",
        )  # fmt: skip
        parser.add_argument(
            "--builtin-best", action="store_true",
            help="start from the built-in coder's best of this problem here too; its first version where it wrote none yet",
        )  # fmt: skip
        parser.add_argument(
            "--set", dest="overrides", metavar="NAME=VALUE", action="append", default=[],
            help="another size, such as batch_size=4; may be repeated",
        )  # fmt: skip
        parser.add_argument("--json", action="store_true", help="one object on stdout, the log on stderr")
        parser.add_argument("--out", type=Path, metavar="FILE", help="write the resulting kernel there")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run, show, and exit with 0 for a faster verified kernel, 1 for none, 2 for bad usage."""
        self._live = sys.stderr.isatty() and not options["json"]
        try:
            source = _text(options["problem"])
            _check_out(options["out"])
            overrides = _overrides(options["overrides"])
            if options["coder"] != BUILTIN:
                _prepare_database()  # models are rows
            self._check(source, overrides, options)
            _prepare_database()
            _log_to_file()
            run = self._optimised(source, overrides, options)
        except Refused as refusal:
            raise CommandError(refusal.message, returncode=2) from None
        found = summary.summary_of(run)
        if options["json"]:
            self.stdout.write(json.dumps(to_plain(found), indent=2))
        else:
            self.stdout.write("\n" + summary.table(found))
        if options["out"] and found.source is not None:
            options["out"].write_text(found.source)
        sys.exit(0 if found.result is not None else 1)

    def _check(self, source: str, overrides: Overrides, options: dict[str, Any]) -> None:
        """Refuse what can be refused before anything is started or written."""
        problems.read(source, overrides)
        launch.check_order(self._order(Problem(source=source), overrides, options))

    def _order(self, problem: Problem, overrides: Overrides, options: dict[str, Any]) -> LaunchOrder:
        return LaunchOrder(
            problem,
            device="",
            overrides=overrides,
            language=options["language"],
            policy=options["policy"],
            coder=options["coder"],
            iterations=options["iterations"],
            candidates=options["candidates"],
            temperatures=_temperatures(options["temperatures"]),
            goal=options["goal"],
            seconds=options["minutes"] * 60 if options["minutes"] is not None else None,
            money_usd=options["money"],
            tokens=options["tokens"],
            profile=not options["no_profile"],
            seeds=_seeds(options),
        )

    def _optimised(self, source: str, overrides: Overrides, options: dict[str, Any]) -> Run:
        self._say("looking at this machine (its ceilings are measured once)")
        device = inprocess.this_device(host_report(observe=self._news))
        with Zygote() as zygote:
            facts = self._facts(source, overrides, zygote)
            problem, sizing = _rows(options["problem"], source, overrides)
            inprocess.keep_facts(sizing, facts)
            order = replace(self._order(problem, overrides, options), device=str(device))
            order = seeding.asked(None, order, builtin=options["builtin_best"], text="")
            run, claim = inprocess.begin(order, sizing, device)
            worker = inprocess.Worker(claim, zygote)
            stopping = _StopOnInterrupt(run)
            worker.start()
            try:
                self._watch(run, worker, stopping)
            finally:
                stopping.restore()
        return Run.objects.select_related("problem", "sizing", "device__host", "best", "result").get(pk=run.pk)

    def _facts(self, source: str, overrides: Overrides, zygote: Zygote) -> ProblemFacts:
        self._say("looking at the problem")
        try:
            facts = inspect(source, overrides, zygote=zygote, observe=self._news)
        except (JailFailed, ZygoteFailed) as problem:
            raise Refused(f"This machine can't jail the problem's code: {problem}") from None
        if facts.refusal:
            raise Refused(f"This problem can't be judged here: {facts.refusal}", "problem")
        return facts

    # --- display

    def _watch(self, run: Run, worker: inprocess.Worker, stopping: _StopOnInterrupt) -> None:
        seen = 0
        while True:
            alive = worker.is_alive()
            stopping.heed()
            for event in Event.objects.filter(run=run, seq__gt=seen).order_by("seq"):
                seen = event.seq
                self._show(event)
            run.refresh_from_db()
            if not alive:
                return
            if self._live and run.state in LIVE_RUN_STATES:
                self._line(f"  iteration {run.iteration} of {run.iterations}: {run.doing or 'thinking'}")
            worker.join(_SHOW_EVERY)

    def _show(self, event: Event) -> None:
        if event.kind in ("step_began", "launched", "claimed", "hint_taken") or event.level == Level.DEBUG:
            return
        style = {Level.WARNING: self.style.WARNING, Level.ERROR: self.style.ERROR}.get(Level(event.level), str)
        self._say(style(f"{event.agent:<10}{event.text}"))

    def _news(self, progress: Progress) -> None:
        if self._live:
            self._line(f"  {progress.stage}: {progress.message}")

    def _say(self, text: str) -> None:
        self.stderr.write((_CLEAR_LINE if self._live else "") + text, str)

    def _line(self, text: str) -> None:
        self.stderr.write(_CLEAR_LINE + text[:100], str, ending="")
        self.stderr.flush()


class _StopOnInterrupt:
    """Ctrl-C stops the run, which keeps the best and judges it in full; again, it ends at once."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._asked = 0
        self._heeded = 0
        self._before = signal.signal(signal.SIGINT, self._ask)

    def _ask(self, *_: Any) -> None:
        self._asked += 1

    def heed(self) -> None:
        """Carry out what was asked since the last time."""
        while self._heeded < min(self._asked, 2):
            self._heeded += 1
            try:
                steering.stop(self._run, None, at_once=self._heeded == 2)
            except Refused:
                return

    def restore(self) -> None:
        """Give Ctrl-C back."""
        signal.signal(signal.SIGINT, self._before)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as problem:
        raise Refused(f"{path} can't be read: {problem.strerror}.") from None
    except UnicodeDecodeError:
        raise Refused(f"{path} can't be read: it is not UTF-8 text.") from None


def _check_out(path: Path | None) -> None:
    """Refuse a place where the kernel could not be written, before minutes are spent on finding it."""
    if path is None:
        return
    if path.is_dir():
        raise Refused(f"--out {path} is a directory: name a file in it.")
    if not path.parent.is_dir():
        raise Refused(f"--out {path}: there is no directory {path.parent}. Make it first.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise Refused(f"--out {path} can't be written: permission denied.")


def _overrides(words: list[str]) -> Overrides:
    """NAME=VALUE, the value as Python writes it, else as text."""
    found: Overrides = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            raise Refused(f"--set takes NAME=VALUE, not {word!r}.")
        try:
            read = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            read = value
        found[name] = read if isinstance(read, int | float | bool | str) else value
    return found


def _temperatures(text: str) -> tuple[float, ...]:
    try:
        return tuple(read_temperatures(words_of(text)))
    except ValidationError as problem:
        raise Refused(problem.messages[0], "temperatures") from None


def _seeds(options: dict[str, Any]) -> tuple[Seed, ...]:
    """The candidates to start from. Raises `Refused` for a file that holds none."""
    if not options["seeds"]:
        return ()
    language, policy = options["language"], options["policy"]
    if language not in [*Language] or policy not in [*Policy]:
        return ()  # refused with better words by the order's own check
    found = [seeding.own(None, _text(path), Language(language), Policy(policy)) for path in options["seeds"]]
    return seeding.distinct(found)


def _rows(path: Path, source: str, overrides: Overrides) -> tuple[Problem, Sizing]:
    """The problem as a row, under its title if it is one of those PRAGMA comes with."""
    known = {one.path.resolve(): one for one in starters.starters(settings.BASE / "problems")}
    starter = known.get(path.resolve())
    problem = problems.add(
        None,
        source,
        title=starter.title if starter else path.stem.replace("_", " ").capitalize(),
        level=starter.level if starter else None,
        category=starter.category if starter else "",
        origin=Origin.STARTER if starter else Origin.UPLOADED,
        look=False,
    )
    return problem, problems.sizing_of(problem, overrides)


def _prepare_database() -> None:
    """Make the tables where there are none yet. Raises `Refused` for a database of another version.

    Such a one is not touched from here: starting PRAGMA keeps a copy first.
    """
    settings.VAR.mkdir(parents=True, exist_ok=True)
    executor = MigrationExecutor(connection)
    if not executor.migration_plan(executor.loader.graph.leaf_nodes()):
        return
    if executor.loader.applied_migrations:
        raise Refused(
            f"The database in {settings.VAR} is of an older version. Start PRAGMA once (make run), which keeps a copy and "
            "brings it up to date, or name another place in PRAGMA_VAR."
        )
    call_command("migrate", verbosity=0, interactive=False)


def _log_to_file() -> None:
    """What modules log goes beside the other processes' logs: this terminal shows the run."""
    place = settings.VAR / "log"
    place.mkdir(parents=True, exist_ok=True)
    handler = RotatingFileHandler(place / "optimize.log", maxBytes=4_000_000, backupCount=2)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.getLogger().handlers[:] = [handler]
    logging.getLogger().setLevel(logging.INFO)
