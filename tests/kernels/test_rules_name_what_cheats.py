"""Static rules name the rule, the line and what to do instead."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from apps.kernels.candidate import BadCandidate, detect_language, read_candidate, static_rules
from apps.kernels.evaluation import Language, Policy


def _neighbour(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


candidate = _neighbour("test_rules_leave_honest_code_alone").candidate

COMPUTES = {
    "torch function": "return torch.relu(x)",
    "functional": "return F.softmax(x, dim=1)",
    "full name": "return torch.nn.functional.gelu(x)",
    "tensor method": "x = x.contiguous()\nreturn x.exp()",
    "in place": "x = x.contiguous()\nreturn x.mul_(2)",
    "operator": "x = x.contiguous()\nreturn x * 2",
    "through a name": "y = x.contiguous().view(-1)\nz = y\nreturn z / (1 + z)",
    "augmented": "y = torch.empty_like(x)\ny += 1\nreturn y",
    "negation": "y = torch.empty_like(x)\nreturn -y",
    "a parameter": "return LIB.f(x.data_ptr()) or self.weight + 1",
    "a fallback": "try:\n    return LIB.f(x.data_ptr())\nexcept Exception:\n    return torch.sigmoid(x)",
    "aten by name": "return torch.ops.aten.relu.default(x)",
    "a layer": "self.act = nn.ReLU()\nreturn self.act(x)",
}
LIBRARY = {
    "a product": "return torch.matmul(x, self.weight)",
    "by operator": "x = x.contiguous()\nreturn x @ self.weight",
    "a layer": "return self.linear(x)",
    "a convolution": "return F.conv2d(x, self.weight)",
}
TRICKS = {
    "torch compiles": [
        "FAST = torch.compile(lambda x: x)",
        "@torch.jit.script\ndef f(x: int):\n    return x",
        "from torch._inductor import config",
        "import torch._dynamo\ntorch._dynamo.config.suppress_errors = True",
    ],
    "looks into frames": [
        "import gc\nFOUND = gc.get_objects()",
        "import sys\nF_ = sys._getframe(1)",
        "import inspect\nF_ = inspect.currentframe().f_back",
        "FRAME = (lambda g: g.gi_frame)(x for x in ())",
    ],
    "patches": [
        "torch.empty = None",
        "torch.Tensor.__eq__ = lambda a, b: True",
        "import time\ntime.perf_counter = lambda: 0.0",
        "setattr(torch, 'allclose', lambda *a, **k: True)",
        "import sys\nsys.modules['torch'] = None",
        "nn.Module.__call__ = None",
    ],
    "process state": [
        "torch.set_flush_denormal(True)",
        "torch.backends.cuda.matmul.allow_tf32 = True",
        "torch.set_float32_matmul_precision('medium')",
    ],
    "work beside the call": [
        "import threading\nT = threading.Thread(target=print)",
        "os.fork()",
        "from concurrent.futures import ThreadPoolExecutor\nP = ThreadPoolExecutor(1)",
        "S = torch.cuda.Stream()",
    ],
    "imports the reference": ["from problem import Model as Reference", "import reference"],
    "another library computes": [
        "import scipy.linalg",
        "BLAS = ctypes.CDLL('libopenblas.so.0')",
        "FLAGS = ['-O3', '-lmkl_rt']",
    ],
    "hidden code": ["exec(open('x').read())", "WHICH = getattr(torch, 're' + 'lu')"],
    "tensor subclass": [
        "class Lazy(torch.Tensor):\n    pass",
        "class Any_:\n    def __torch_function__(self, *a):\n        pass",
    ],
    "fast-math when linking": [
        "FLAGS = ['-Ofast', '-shared']",
        "FLAGS = ['-Ofast', '-shared']\nassert '-O3' not in FLAGS\nRUN = ['g++', *FLAGS]",
        "COMMAND = 'g++ -O3 -ffast-math -shared k.cpp'",
    ],
}
IN_A_CALL = {
    "watches the clock": "import time\nt = time.perf_counter()\nreturn LIB.f(x, t)",
    "files in a call": "return LIB.f(open('/tmp/answer').read())",
    "work beside the call": "subprocess.run(['true'])\nreturn LIB.f(x)",
}
CPP = {
    "torch computes": [
        "torch::Tensor f(torch::Tensor x) { return torch::relu(x); }",
        "at::Tensor f(const at::Tensor& x) { return x.softmax(1); }",
        "torch::Tensor f(torch::Tensor x) { return at::native::relu(x); }",
        "torch::Tensor f(torch::Tensor x) { auto y = torch::empty_like(x); y.add_(1); return y; }",
        "torch::Tensor f(torch::Tensor a, torch::Tensor b) { return torch::mm(a, b); }",
    ],
    "another library computes": ["void f() { cblas_sgemm(1); }", "#include <mkl.h>", "void f() { sgemm_(1); }"],
    "work beside the call": [
        "void f() { fork(); }",
        "void f() { std::thread t([]{}); t.detach(); }",
        "void f() { std::thread([] { work(1, 2); }).detach(); }",
        "void f() { pthread_detach(t); }",
        "void f() { std::system(0); }",
    ],
    "hidden code": ["void f() { dlsym(0, 0); }"],
    "process state": ["void f() { _MM_SET_FLUSH_ZERO_MODE(1); }"],
    "looks into frames": ["void f() { PyEval_GetFrame(); }"],
}


def rules(source: str, policy: Policy = Policy.KERNEL) -> set[str]:
    return {rejection.rule for rejection in static_rules(source, Language.CPP, policy)}


@pytest.mark.parametrize("name", COMPUTES)
@pytest.mark.parametrize("policy", [*Policy])
def test_torch_computing_in_a_call_is_refused_under_either_policy(name: str, policy: Policy) -> None:
    assert "torch computes" in rules(candidate(COMPUTES[name]), policy)


@pytest.mark.parametrize("name", LIBRARY)
def test_products_are_refused_under_kernel_and_listed_under_library(name: str) -> None:
    source = candidate(LIBRARY[name])
    assert rules(source, Policy.KERNEL) == {"torch computes"}
    read = read_candidate(source, Policy.LIBRARY)
    assert read.rejections == ()
    assert len(read.library_calls) == 1


@pytest.mark.parametrize(("rule", "around"), [(rule, text) for rule, texts in TRICKS.items() for text in texts])
def test_tricks_are_named(rule: str, around: str) -> None:
    assert rule in rules(candidate(around=around))


@pytest.mark.parametrize("rule", IN_A_CALL)
def test_what_is_fine_in_set_up_is_not_in_a_call(rule: str) -> None:
    assert rules(candidate(IN_A_CALL[rule])) == {rule}


@pytest.mark.parametrize(("rule", "cpp"), [(rule, text) for rule, texts in CPP.items() for text in texts])
def test_cpp_is_read_too(rule: str, cpp: str) -> None:
    assert rules(candidate(cpp=cpp)) == {rule}


def test_a_helper_that_forward_calls_runs_in_a_call() -> None:
    around = "def finish(y: torch.Tensor):\n    return y.relu()"
    assert rules(candidate("return finish(x)", around)) == {"torch computes"}
    assert rules(candidate("return LIB.f(x)", around)) == set()


def test_a_subclass_of_the_reference_is_refused() -> None:
    source = (
        "import torch\nfrom torch import nn\nclass Model(nn.Module):\n    def forward(self, x):\n        return x\n"
    )
    assert rules(source + "class ModelNew(Model):\n    def forward(self, x):\n        return x\n") == {
        "uses the reference"
    }


def test_the_line_is_that_of_the_candidate_also_inside_its_cpp() -> None:
    source = candidate(cpp="// one\n\nvoid f() { fork(); }")
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "fork()" in text)
    (rejection,) = static_rules(source, Language.CPP, Policy.KERNEL)
    assert rejection.where == f"line {line}"
    assert "fork" in rejection.detail


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("def f(:\n    pass\n", "Syntax error in line 1"),
        ("class Model:\n    pass\n", "name it ModelNew"),
        ("import torch\n", "no class ModelNew"),
        ("from torch import nn\nclass ModelNew(nn.Module):\n    pass\n", "no forward"),
    ],
)
def test_what_is_no_candidate_is_said_so(source: str, says: str) -> None:
    with pytest.raises(BadCandidate, match=says):
        read_candidate(source)


def test_the_language_is_read_from_the_source() -> None:
    assert detect_language(candidate()) is Language.CPP
    assert detect_language(candidate(cpp="__global__ void k(float* x) {}")) is Language.CUDA
    assert detect_language(candidate(cpp="// __global__ is CUDA's word")) is Language.CPP
    triton = "import triton\nimport triton.language as tl\n@triton.jit\ndef k(x):\n    pass\n"
    assert detect_language(candidate(around=triton)) is Language.TRITON
