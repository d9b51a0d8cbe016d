"""Other strides and shapes: tried after everything that decides, shown, and without a say in the verdict."""

from __future__ import annotations

import pytest

from apps.kernels.evaluation import EvaluationRequest, Robustness, Tier
from apps.kernels.jail import Zygote
from apps.kernels.judge import generality
from apps.kernels.judge.checking import runner_for_checks
from apps.kernels.judge.findings import Findings
from apps.kernels.judge.session import Session
from apps.kernels.problem import read_problem
from apps.kernels.sizes import other_sizes

from .house import candidate

HEAD = "import torch\nfrom torch import nn\n"
LINEAR = f"""{HEAD}
rows, features_in = 24, 40
features_out = 32
class Model(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.linear = nn.Linear(i, o)
    def forward(self, x): return torch.relu(self.linear(x))
def get_inputs(): return [torch.randn(rows, features_in)]
def get_init_inputs(): return [features_in, features_out]
"""
PRODUCT = """
extern "C" void pack(const float* w, float* t, int64_t n, int64_t k) {
  for (int64_t j = 0; j < n; ++j) for (int64_t l = 0; l < k; ++l) t[l * n + j] = w[j * k + l]; }
extern "C" void product(const float* x, const float* t, const float* b, float* y, int64_t m, int64_t n, int64_t k) {
  for (int64_t i = 0; i < m; ++i) for (int64_t j = 0; j < n; ++j) { double s = b[j];
    for (int64_t l = 0; l < k; ++l) s += (double)x[i * k + l] * t[l * n + j];
    y[i * n + j] = s > 0 ? s : 0; } }
"""
PACKED = candidate(
    PRODUCT,
    """
x = x.contiguous()
(m, k), n = x.shape, self.linear.weight.shape[0]
y = torch.empty(m, n)
LIB.product(P(x), P(self.packed), P(self.linear.bias), P(y), N(m), N(n), N(k))
return y
""",
    init="self.linear = nn.Linear(*init)",
    methods="""
def prepare(self):
    n, k = self.linear.weight.shape
    self.packed = torch.empty(k, n)
    LIB.pack(P(self.linear.weight), P(self.packed), N(n), N(k))
""",
)


def beyond(zygote: Zygote, problem: str, source: str) -> dict[str, Robustness]:
    """What is found of a candidate, without judging it before."""
    request = EvaluationRequest(problem, source, tier=Tier.FULL, profile=False)
    findings = Findings(request)
    with Session(request, problem, zygote, lambda _progress: None) as session:
        session.oracle.draw(0)
        session.oracle.set_state()
        with runner_for_checks(session, first=True):
            pass
    generality.beyond(session, findings, 0.001)
    return {row.name: row for row in findings.robustness}


@pytest.mark.judge
def test_weights_are_loaded_and_prepared_anew_at_other_sizes(zygote: Zygote) -> None:
    found = beyond(zygote, LINEAR, PACKED)
    assert [found[name].word for name in ("strides", "shapes")] == ["holds", "holds"], found
    assert "rows 3, features_in 5, features_out 7" in found["shapes"].detail
    assert "expanded" in found["strides"].detail


@pytest.mark.judge
def test_what_the_reference_does_not_take_is_not_held_against_a_kernel(zygote: Zygote) -> None:
    flat = LINEAR.replace("(self, x): return", "(self, x): x = x.view(-1).view(rows, -1); return")
    row = beyond(zygote, flat, PACKED)["strides"]
    assert row.word == "holds" and "transposed" not in row.detail
    fixed = f"{LINEAR}\nassert (rows, features_in) == (24, 40)\n"
    found = beyond(zygote, fixed, PACKED)
    assert found["shapes"].word == "not tried" and not found["shapes"].specialised
    assert "the reference can't be run so" in found["shapes"].detail and "rows 3" in found["shapes"].detail


@pytest.mark.judge
def test_sizes_that_are_no_constants_are_not_tried(zygote: Zygote) -> None:
    written = LINEAR.replace("torch.randn(rows, features_in)", "torch.randn(24, 40)")
    row = beyond(zygote, written, PACKED)["shapes"]
    assert row.word == "not tried" and "no constant" in row.detail


@pytest.mark.judge
def test_how_it_failed_is_told_once_for_all_that_failed_alike(zygote: Zygote) -> None:
    raising = PACKED.replace("x = x.contiguous()", "assert x.is_contiguous(), 'rows without gaps, please'")
    row = beyond(zygote, LINEAR, raising)["strides"]
    assert row.specialised and row.detail.count("it raised AssertionError: rows without gaps, please") == 1


@pytest.mark.judge
def test_one_that_kills_itself_and_one_that_forges_are_only_shown(zygote: Zygote) -> None:
    odd = "if x.shape[0] != 24 or not x.is_contiguous(): "
    for deed in ("os.abort()", "os._exit(0)", "[os.write(fd, b'x' * 64) for fd in range(3, 20)]"):
        found = beyond(zygote, LINEAR, PACKED.replace("x = x.contiguous()", f"{odd}{deed}\n        x = x.contiguous()"))
        assert found["shapes"].specialised and found["strides"].specialised, (deed, found)


def sizes(source: str) -> list[dict[str, int]]:
    return [kind.choices[0] for kind in other_sizes(read_problem(source))]


def test_windows_and_steps_stay_as_they_are() -> None:
    source = LINEAR.replace("features_out = 32", "features_out = 32\nkernel = 3\neps = 0.5\nname = 'x'\nwhether = True")
    tiny, odd, larger = sizes(source.replace("[features_in, features_out]", "[features_in, features_out, kernel]"))
    assert tiny == {"rows": 3, "features_in": 5, "features_out": 7}
    assert odd == {"rows": 11, "features_in": 19, "features_out": 15}
    assert larger == {"features_in": 51}


def test_constants_behind_other_names_count_and_others_do_not() -> None:
    source = LINEAR.replace("features_out = 32", "features_out = 32\nshape = (rows, features_in)\nunused = 64")
    tiny, *_ = sizes(source.replace("torch.randn(rows, features_in)", "torch.randn(*shape)"))
    assert set(tiny) == {"rows", "features_in", "features_out"}


@pytest.mark.parametrize(
    "how", ["transposed storage", "every second element", "cut out of a larger tensor", "expanded"]
)
def test_storage_differs_and_values_do_not(how: str) -> None:
    import torch

    from apps.kernels.inside.layouts import laid_out, written_once

    for shape in ((), (1,), (7,), (5, 6), (2, 3, 4, 5), (1, 9), (0, 3)):
        tensor = torch.randn(shape)
        found = laid_out(tensor, how)
        wanted = tensor[:1].expand(shape) if how == "expanded" and tensor.ndim > 1 and shape[0] > 1 else tensor
        assert torch.equal(found, wanted)
        once = written_once(found)
        once.copy_(once.clone())  # torch refuses to write where places are shared
    grid = laid_out(torch.randn(5, 6), how)
    assert not grid.is_contiguous()


def test_the_default_word_of_rows_recorded_before_is_kept() -> None:
    from apps.kernels.plain import from_plain

    row = from_plain(Robustness, {"name": "subnormal", "holds": False, "detail": "1 of 4 elements are off"})
    assert row.word == "specialised" and row.specialised
