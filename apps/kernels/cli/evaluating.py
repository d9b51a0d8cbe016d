"""`evaluate PROBLEM.py CANDIDATE.py`: judge one candidate."""

from __future__ import annotations

import json
from argparse import Namespace

from apps.kernels.candidate import BadCandidate, detect_language, read_candidate
from apps.kernels.cli.complete import complete
from apps.kernels.cli.evaluation_text import described
from apps.kernels.cli.exit_codes import GOOD, OTHER_VERDICT, BadInput, Ending, HostFailed
from apps.kernels.cli.inputs import log, read_settings, read_source
from apps.kernels.evaluation import Evaluation, EvaluationRequest, Language, Policy, Tier, Verdict
from apps.kernels.host.report import host_report
from apps.kernels.jail import JailFailed, Zygote, ZygoteFailed
from apps.kernels.judge import HostCannotJudge, ProblemRefused, evaluate
from apps.kernels.plain import Plain
from apps.kernels.problem import BadProblem, read_problem


def run(options: Namespace) -> int:
    """Judge and print; 0 for the verdict correct, 1 for any other."""
    try:
        evaluation = _judged(_request(options))
    except Ending as ending:
        if options.json:
            print(json.dumps(evaluation_json(None, str(ending))))
        raise
    print(json.dumps(evaluation_json(evaluation)) if options.json else described(evaluation))
    return GOOD if evaluation.verdict is Verdict.CORRECT else OTHER_VERDICT


def evaluation_json(evaluation: Evaluation | None, error: str | None = None) -> Plain:
    """The object that `--json` prints. Every key is always there; `error` says why there is no verdict, else null."""
    return {**complete(evaluation, Evaluation), "error": error}


def _request(options: Namespace) -> EvaluationRequest:
    problem, candidate = read_source(options.problem), read_source(options.candidate)
    overrides = read_settings(options.set)
    try:
        read_problem(problem, overrides)
    except BadProblem as fault:
        raise BadInput(f"{options.problem}: {fault}") from None
    _check_candidate(options.candidate, candidate)
    language = Language(options.language) if options.language else detect_language(candidate)
    if language is not Language.CPP:
        raise BadInput(f"the language {language.value} can't be judged yet; this version judges cpp.")
    return EvaluationRequest(
        problem=problem,
        candidate=candidate,
        language=language,
        policy=Policy(options.policy),
        tier=Tier(options.tier),
        overrides=overrides,
        profile=not options.no_profile,
        allow_weak_isolation=options.allow_weak_isolation,
    )


def _check_candidate(path: str, source: str) -> None:
    """A text that can't be a candidate is bad input; a candidate that doesn't build is a verdict."""
    try:
        read_candidate(source)
    except BadCandidate as fault:
        raise BadInput(f"{path}: {fault}") from None


def _judged(request: EvaluationRequest) -> Evaluation:
    try:
        with Zygote() as zygote:
            # the floor of a full judgement needs what memory reaches here, profile or not; measured once, then kept
            host = host_report(quick=not request.profile and request.tier is Tier.QUICK, observe=log)
            return evaluate(request, zygote=zygote, host=host, observe=log)
    except ProblemRefused as refusal:
        raise BadInput(f"the problem can't be judged: {refusal}") from None
    except (HostCannotJudge, JailFailed, ZygoteFailed) as failure:
        raise HostFailed(f"this host could not judge: {failure}") from None
