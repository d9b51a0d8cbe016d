"""What reviews add to the pages of runs and problems, and to the settings."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from apps.people import settings_tabs
from apps.people.permissions import Action, may
from apps.reviews import proposing
from apps.reviews.models import AcceptedKernel, KernelState, Proposal
from apps.reviews.presentation import kernels_page
from apps.reviews.presentation.chips import proposal_chip
from apps.runs.models import Problem, Version
from apps.runs.presentation import extensions


def register() -> None:
    """Called once, when the app is ready."""
    extensions.add_anchor(extensions.Anchor("accepted", "the accepted one", accepted_for))
    extensions.add_panel(extensions.Panel("version", "reviews/panels/version.html", of_version))
    extensions.add_panel(extensions.Panel("problem", "reviews/panels/problem.html", of_problem))
    extensions.add_problem_column(extensions.ProblemColumn("accepted", "Accepted", kernels_page.cells))
    tab = settings_tabs.Tab("review-rules", "Reviews", Action.ADMINISTER, 60)
    settings_tabs.register(tab)


def accepted_for(version: Version) -> Version | None:
    """The accepted kernel in use for what this version's run was about."""
    accepted = proposing.Slot.of(version, version.run.device).accepted()
    return accepted.version if accepted else None


def of_version(request: HttpRequest, version: Version) -> dict[str, Any] | None:
    """The reviews of a version, and whether the viewer may put it up for one."""
    found = Proposal.objects.filter(revisions__version=version).distinct().select_related("kernel")
    return {
        "version": version,
        "proposals": [(proposal, proposal_chip(proposal)) for proposal in found],
        "may_propose": may(request.user, Action.PROPOSE, version),
    }


def of_problem(request: HttpRequest, problem: Problem) -> dict[str, Any] | None:
    """Its accepted kernels in use; nothing where there are none."""
    rows = kernels_page.rows(AcceptedKernel.objects.filter(problem=problem, state=KernelState.CURRENT))
    return {"problem": problem, "rows": rows} if rows else None
