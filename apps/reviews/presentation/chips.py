"""States of proposals and kernels as chips."""

from __future__ import annotations

from apps.reviews.models import AcceptedKernel, Doubt, KernelState, Proposal, ProposalState, Standing
from apps.reviews.votes import Tally
from apps.runs.presentation.states import Chip

_CLOSED = {
    ProposalState.ACCEPTED: Chip("accepted", "✓", "good"),
    ProposalState.DECLINED: Chip("declined", "✕", "bad"),
    ProposalState.WITHDRAWN: Chip("withdrawn", "■", ""),
}
_OPEN = {
    Standing.WAITING: Chip("waits for votes", "◔", "warn"),
    Standing.CHANGES: Chip(
        "changes requested", "↺", "bad", False, "A new version, or the same voter's approval, is needed"
    ),
    Standing.APPROVED: Chip("approved", "✓", "good", False, "It can be accepted now"),
}
_KERNELS = {
    KernelState.CURRENT: Chip("in use", "✓", "good"),
    KernelState.SUPERSEDED: Chip("superseded", "■", "", False, "Another kernel took its place; it is kept"),
    KernelState.REVOKED: Chip("revoked", "✕", "bad"),
}


def proposal_chip(proposal: Proposal, tally: Tally | None = None) -> Chip:
    """How a proposal stands; with the votes counted where they are known."""
    if not proposal.is_open:
        return _CLOSED[ProposalState(proposal.state)]
    chip = _OPEN[Standing(proposal.standing)]
    if tally is None or tally.standing is not Standing.WAITING:
        return chip
    return Chip(
        f"{len(tally.approvals)} of {tally.needed} approval{'s' if tally.needed != 1 else ''}", chip.sign, chip.tone
    )


def kernel_chip(kernel: AcceptedKernel) -> Chip:
    """Whether a kernel is in use."""
    return _KERNELS[KernelState(kernel.state)]


def doubt_chip(kernel: AcceptedKernel) -> Chip | None:
    """Why it should be looked at again, if it should."""
    if not kernel.is_current or not kernel.doubt:
        return None
    if kernel.doubt == Doubt.FAILED:
        return Chip("no longer holds", "✕", "bad", False, kernel.doubt_detail)
    return Chip("host has changed", "!", "warn", False, kernel.doubt_detail)
