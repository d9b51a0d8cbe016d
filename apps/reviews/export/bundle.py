"""A kernel and everything that is known of it as one zip: what an engineer elsewhere needs to trust it, or to doubt it."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import dataclass

from apps.agents.gateway.secret import Scrubber
from apps.kernels.plain import Plain, to_plain
from apps.kernels.problem import read_problem
from apps.people.refusals import Refused
from apps.reviews.export.contents import Contents, contents_of
from apps.reviews.export.standalone import needs, one_line, standalone
from apps.reviews.models import AcceptedKernel
from apps.reviews.record import record_of
from apps.runs.transcripts import exporting, transcript


@dataclass(frozen=True)
class Bundle:
    """The zip's name and its bytes: the same for the same state of the kernel's record."""

    name: str
    content: bytes


def bundle(kernel: AcceptedKernel, address: str) -> Bundle:
    """The kernel as one zip. Names in it are ours, whatever problem or host are called."""
    contents = contents_of(kernel, address)
    files = _files(kernel, contents)
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(files.items()))
    files["SHA256SUMS"] = sums.encode()
    return Bundle(f"{contents.stem}.zip", _zipped(contents, files))


def _files(kernel: AcceptedKernel, contents: Contents) -> dict[str, bytes]:
    evaluation = contents.evaluation
    problem = read_problem(contents.problem_source, contents.overrides).source
    files = {
        "kernel.py": standalone(contents).text.encode(),
        "candidate.py": contents.source.encode(),
        "problem.py": problem.encode(),
    }
    told = {
        "evaluation.json": evaluation,
        "profile.json": evaluation.get("profile"),
        "environment.json": {"host": contents.environment, "evaluation": evaluation.get("environment")},
        "decision.json": to_plain(record_of(kernel.proposal)),
    }
    # Compilers and people say what they like; a key of this installation leaves it in no file.
    scrubber = Scrubber(())
    files |= {name: scrubber.without_secrets(_json(value)).encode() for name, value in told.items()}
    try:
        transcribed = transcript.written(exporting.transcript_of(kernel.version.run))
    except Refused as refusal:
        files["transcript.txt"] = f"There is no transcript of the run: {refusal.message}\n".encode()
    else:
        files["transcript.json"] = transcribed.encode()
    files["README.md"] = _readme(kernel, contents, files).encode()
    return files


def _json(value: Plain) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


_WHAT = {
    "kernel.py": "the kernel as one file: `from kernel import ModelNew`; `python kernel.py` compares and times it",
    "candidate.py": "the text that was accepted, byte for byte; its SHA-256 is the content hash",
    "problem.py": "the reference it was judged against, at the sizes it was accepted for",
    "evaluation.json": "the full evaluation it was accepted on",
    "profile.json": "the profile of that evaluation",
    "environment.json": "what its host was then, and what it was judged with",
    "decision.json": "who proposed, said, approved and accepted what, and when",
    "transcript.json": "the run it comes from, step by step",
    "transcript.txt": "why the run has no transcript",
}


def _readme(kernel: AcceptedKernel, contents: Contents, files: dict[str, bytes]) -> str:
    told = "\n".join(f"- `{name}`: {_WHAT[name]}" for name in files)
    return f"""# {_escaped(contents.title)}

A kernel in {contents.language}, {contents.speedup} over eager on {_escaped(contents.device_model)}
({_escaped(contents.device)}), accepted by {_escaped(contents.accepted_by)} on {contents.accepted_at:%Y-%m-%d}.
It is {kernel.get_state_display().lower()}. Content SHA-256 `{contents.digest}`.

From {_escaped(contents.address)}

{told}

`sha256sum -c SHA256SUMS` checks the files. The kernel needs {needs(contents.source)}, nothing of PRAGMA. The speed-up holds
for the device it was measured on and is no promise for another one: `python kernel.py` says what it is here.
"""


def _escaped(text: str) -> str:
    """A text on one line that Markdown takes literally."""
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]<>()#+-!|&" else letter for letter in one_line(text))


def _zipped(contents: Contents, files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(f"{contents.stem}/{name}", contents.accepted_at.timetuple()[:6])
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, data)
    return packed.getvalue()
