"""Runs as files: export one, take one in, or go through one again without keeping anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.agents.replay import ReplayDiffers, replay
from apps.runs.models import Run
from apps.runs.refusals import Refused
from apps.runs.transcripts import exporting, importing, transcript


class Command(BaseCommand):
    """`transcript export RUN [--out FILE]`, `transcript import FILE`, `transcript replay FILE`."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        """The three things it does."""
        ways = parser.add_subparsers(dest="way", required=True, parser_class=type(parser))
        out = ways.add_parser("export", help="write a finished run's transcript")
        out.add_argument("run", type=int)
        out.add_argument("--out", type=Path, help="a file; standard output where none is named")
        ways.add_parser("import", help="take a transcript in as a run").add_argument("file", type=Path)
        ways.add_parser("replay", help="go through a transcript again, keeping nothing").add_argument("file", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        """See the class."""
        try:
            match options["way"]:
                case "export":
                    self._export(options["run"], options["out"])
                case "import":
                    self._import(options["file"])
                case "replay":
                    self._replay(options["file"])
        except (Refused, ReplayDiffers) as refusal:
            raise CommandError(str(refusal)) from None
        except OSError as problem:
            raise CommandError(f"{problem.filename}: {problem.strerror}") from None

    def _export(self, number: int, out: Path | None) -> None:
        run = Run.objects.select_related("problem", "sizing", "device__host").filter(pk=number).first()
        if run is None:
            raise CommandError(f"There is no run {number}.")
        told = exporting.transcript_of(run)
        if out is None:
            self.stdout.write(transcript.written(told), ending="")
            return
        out.write_text(transcript.written(told))
        self.stdout.write(f"Run {number}: {len(told.steps)} steps in {out}, digest {told.digest}")

    def _import(self, file: Path) -> None:
        run = importing.take_in(None, _bytes(file))
        told = importing.imported(run)
        assert told is not None
        how = f"replayed exactly, digest {told.replayed}" if told.exact else f"replayed otherwise: {told.difference}"
        self.stdout.write(f"Run {run.pk}, {how}")

    def _replay(self, file: Path) -> None:
        told = transcript.read(_bytes(file))
        gone = replay(told.assignment, told.run.coder, [step.record for step in told.steps])
        self.stdout.write(f"{len(gone.records)} steps gone through again, each as recorded. {gone.ended.reason}")


def _bytes(file: Path) -> bytes:
    if file.stat().st_size > transcript.LARGEST:
        raise Refused(transcript.too_large(file.stat().st_size))
    return file.read_bytes()
