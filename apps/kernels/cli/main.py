"""The command line's grammar: what can be asked, with its defaults; each command is a module of its own."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from importlib.util import find_spec

from apps.kernels.cli import evaluating, hosting, inspecting, selftesting
from apps.kernels.cli.exit_codes import BAD_INPUT, INTERRUPTED, Ending
from apps.kernels.evaluation import Language, Policy, Tier
from apps.kernels.jail.cell import MODES
from apps.kernels.jail.isolation import SETTING

EXIT_CODES = """exit codes of evaluate:
  0  verdict correct
  1  any other verdict
  2  bad usage, unreadable input, a problem that can't be judged
  3  this host could not judge"""


def main(arguments: Sequence[str]) -> int:
    """Do what is asked and give the exit code. Errors go to standard error in a sentence or two."""
    options = _parser().parse_args(arguments)
    run: Callable[[Namespace], int] = options.run
    if options.command != "host" and find_spec("torch") is None:
        why = f"{sys.executable} has no torch. Use .venv/bin/python, which `make setup` makes."
        print(f"{options.command}: {why}", file=sys.stderr)
        return BAD_INPUT
    try:
        return run(options)
    except Ending as ending:
        print(f"{options.command}: {ending}", file=sys.stderr)
        return ending.code
    except BrokenPipeError:
        sys.stderr.close()
        return INTERRUPTED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _parser() -> ArgumentParser:
    from argparse import RawDescriptionHelpFormatter

    parser = ArgumentParser(
        prog="python -m apps.kernels",
        description="Inspect a problem, judge a candidate, describe this host.",
        epilog=EXIT_CODES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    command = commands.add_parser("inspect", help="what is known of a problem: shapes, bytes, FLOPs, graph")
    command.add_argument("problem", metavar="PROBLEM.py", help="the PyTorch reference; - reads standard input")
    _add_settings(command)
    command.set_defaults(run=inspecting.run)

    command = commands.add_parser("evaluate", help="judge a candidate: is it right, is it faster, what holds it back")
    command.add_argument("problem", metavar="PROBLEM.py")
    command.add_argument("candidate", metavar="CANDIDATE.py", help="defines ModelNew with Model's interface")
    command.add_argument("--language", choices=[*Language], help="default: as the candidate's source shows")
    command.add_argument(
        "--policy",
        choices=[*Policy],
        default=Policy.KERNEL,
        help="what it may call: kernel (default: own kernels alone) or library (library products too)",
    )
    command.add_argument("--tier", choices=[*Tier], default=Tier.FULL, help="default: full")
    command.add_argument("--no-profile", action="store_true", help="don't read the hardware's metrics")
    _add_settings(command)
    command.set_defaults(run=evaluating.run)

    command = commands.add_parser("host", help="what this machine is, its ceilings, what isolation it can enforce")
    command.add_argument("--json", action="store_true", help="one JSON object on standard output")
    command.add_argument("--attacks", action="store_true", help="try the jail's attacks: which are contained, by what")
    command.add_argument("--mode", choices=MODES, help="with --attacks: a way to jail other than this host's best")
    command.set_defaults(run=hosting.run)

    command = commands.add_parser(
        "selftest",
        help="try the judge on candidates whose verdict is known, honest and dishonest ones",
        description="Try the judge, here, on candidates whose verdict is known. 0: all as expected; 1: not; 3: this host "
        "can't judge.",
    )
    command.add_argument(
        "only", nargs="*", metavar="KIND[/NAME]", help="only these (cached, 'late/a_*'); default: all of them"
    )
    command.add_argument("--json", action="store_true", help="one JSON object on standard output")
    command.set_defaults(run=selftesting.run)
    return parser


def _add_settings(command: ArgumentParser) -> None:
    command.add_argument(
        "--allow-weak-isolation",
        action="store_true",
        help=f"run it even where this host isolates less than it requires ({SETTING}; see `host`)",
    )
    command.add_argument(
        "--json", action="store_true", help="one JSON object on standard output, logs on standard error"
    )
    command.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], help="override a size constant; may be repeated"
    )
