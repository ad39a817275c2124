"""Static portability end to end: real processes, real compilers, no GPU."""

import time
from collections.abc import Iterator

import pytest

from benchmark.architectures import ARCHITECTURE_BY_SLUG, ARCHITECTURES
from runner.engine.compiling import MAX_CONFIGURATIONS, Compilation, Compiler
from runner.engine.model import Candidate, Limits
from runner.engine.portability import Build, target_facts
from tests.engine.conftest import ROOT

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n"
COPY = """
@triton.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.maximum(tl.load(x + at, mask=at < n), 0.0), mask=at < n)
"""
RELU = """
def relu(input, inplace=False):
    out = torch.empty_like(input)
    n = input.numel()
    copy[(triton.cdiv(n, 128),)](input, out, n, BLOCK=128)
    return out
"""


@pytest.fixture(scope="module")
def compiler() -> Iterator[Compiler]:
    limits = Limits(load=30, call=10, check=60, proof=0, time=0, answer=1 << 20)
    with Compiler(trust_candidates=True, limits=limits) as compiler:
        yield compiler


def compiled(compiler: Compiler, source: str, *slugs: str, task: str = "relu") -> dict[str, Build]:
    chosen = [ARCHITECTURE_BY_SLUG[slug] for slug in slugs or ("sm_90",)]
    _, builds = compiler.compile(Candidate(task, source), (), chosen)
    return {build.architecture: build for build in builds}


def only(compiler: Compiler, source: str, task: str = "relu") -> Build:
    return compiled(compiler, source, task=task)["sm_90"]


def sample(name: str) -> str:
    return next((ROOT / "samples" / "plain").rglob(f"{name}.py")).read_text(encoding="utf-8")


def test_a_plain_kernel_builds_for_every_architecture(compiler: Compiler) -> None:
    case, builds = compiler.compile(Candidate("matmul", sample("matmul")))
    assert case.startswith("timed")
    assert [build.architecture for build in builds] == [one.slug for one in ARCHITECTURES]
    for build, one in zip(builds, ARCHITECTURES, strict=True):
        assert (build.state, build.reason) == ("built", "")
        assert 16 < (build.most("registers") or 0) <= one.register_limit
        assert 0 < (build.most("shared_bytes") or 0) <= one.shared_limit
    assert compiler.triton_version.startswith("3.")


DOT = """
@triton.jit
def product(a, b, out, K, SIZE: tl.constexpr, STEP: tl.constexpr):
    rows, cols, deep = tl.arange(0, 128), tl.arange(0, SIZE), tl.arange(0, STEP)
    total = tl.zeros((128, SIZE), tl.float32)
    for k in range(0, K, STEP):
        left = tl.load(a + rows[:, None] * K + (k + deep)[None, :]).to(tl.float16)
        right = tl.load(b + (k + deep)[:, None] * SIZE + cols[None, :]).to(tl.float16)
        total += tl.dot(left, right)
    tl.store(out + rows[:, None] * SIZE + cols[None, :], total)


def relu(input, inplace=False):
    x = input.half()
    product[(1,)](x, x, torch.empty_like(input), 4096, SIZE=256, STEP=64, num_warps=8, num_stages=4)
    return input
"""


def test_shared_memory_is_held_against_each_architectures_limit(compiler: Compiler) -> None:
    found = compiled(compiler, HEAD + DOT, "sm_89", "sm_90")
    assert found["sm_90"].state == "built"
    assert (found["sm_90"].most("shared_bytes") or 0) > ARCHITECTURE_BY_SLUG["sm_89"].shared_limit
    assert found["sm_89"].state == "failed"
    assert "bytes of shared memory; a block on sm_89 has 101376" in found["sm_89"].reason
    assert found["sm_89"].most("registers") is not None


FP8 = """
@triton.jit
def shrink(x, out):
    at = tl.arange(0, 128)
    tl.store(out + at, tl.load(x + at).to(tl.float8e4nv).to(tl.float32))


def relu(input, inplace=False):
    out = torch.empty_like(input)
    shrink[(1,)](input.float(), out)
    return out
"""


def test_a_dtype_that_an_architecture_lacks_is_refused_there_only(compiler: Compiler) -> None:
    found = compiled(compiler, HEAD + FP8, "sm_80", "sm_90")
    assert (found["sm_80"].state, found["sm_90"].state) == ("failed", "built")
    assert "fp8e4nv" in found["sm_80"].reason


TUNED = """
configurations = [triton.Config({"BLOCK": 2**n}, num_warps=4) for n in range(5, 12)]
copy = triton.autotune(configurations, key=["n"])(copy)


def relu(input, inplace=False):
    out = torch.empty_like(input)
    copy[lambda meta: (triton.cdiv(input.numel(), meta["BLOCK"]),)](input, out, input.numel())
    return out
"""


def test_a_few_of_an_autotuners_configurations_are_compiled_and_it_is_said(
    compiler: Compiler,
) -> None:
    [kernel] = only(compiler, HEAD + COPY + TUNED).kernels
    assert (kernel.configurations, kernel.tried) == (7, MAX_CONFIGURATIONS)
    assert kernel.fitting == MAX_CONFIGURATIONS
    assert "BLOCK=32" in kernel.configuration


def test_an_option_of_one_vendor_is_an_error_for_the_other(compiler: Compiler) -> None:
    source = HEAD + COPY + RELU.replace("BLOCK=128)", "BLOCK=128, waves_per_eu=2)")
    found = compiled(compiler, source, "sm_90", "gfx942")
    assert (found["sm_90"].state, found["gfx942"].state) == ("failed", "built")
    assert "waves_per_eu" in found["sm_90"].reason


def test_a_kernel_that_is_wrong_fails_with_its_place(compiler: Compiler) -> None:
    build = only(compiler, HEAD + COPY.replace("tl.maximum(", "tl.nothing_like_it(") + RELU)
    assert build.state == "failed"
    assert "nothing_like_it" in build.reason
    assert build.reason.startswith("copy: ")


def test_spills_are_counted(compiler: Compiler) -> None:
    """One warp holds a tile of 128 x 256 numbers: 1024 a thread."""
    build = only(compiler, HEAD + DOT.replace("num_warps=8, num_stages=4", "num_warps=1"))
    assert (build.most("registers"), build.state) == (255, "built")
    assert (build.most("spills") or 0) > 0


BOARD = """
def relu(input, inplace=False):
    assert input.is_cuda and input.device.type == "cuda"
    out = torch.zeros(input.shape, dtype=input.dtype, device="cuda")
    kernel = copy.warmup(input, out, input.numel(), BLOCK=128, grid=(1,))
    kernel._init_handles()
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    programs = processors * max(1, 65536 // (kernel.n_regs * 128)) + kernel.metadata.shared
    kernel[(programs, 1, 1)](input, out, input.numel())
    return out.cuda()
"""


def test_a_source_that_asks_for_a_board_is_traced_without_one(compiler: Compiler) -> None:
    assert only(compiler, HEAD + COPY + BOARD).state == "built"


UNTRACED = {
    "raises": ("def relu(input):\n    raise ValueError('not today')\n", "not today"),
    "launches-nothing": ("def relu(input):\n    return input\n", "launches no Triton kernel"),
    "ends-its-process": ("import os\ndef relu(input):\n    os._exit(0)\n", "exit code 0"),
    "import-fails": ("import nowhere_at_all\ndef relu(x):\n    return x\n", "nowhere_at_all"),
    "endless": ("def relu(input):\n    while True: pass\n", "did not end within 10 s"),
    "judge-imported": ("import runner\ndef relu(x):\n    return x\n", "can't be imported"),
    "no-entry": ("def gelu(input):\n    return input\n", "no top-level function `relu`"),
}


@pytest.mark.parametrize("name", UNTRACED)
def test_what_cannot_be_traced_is_no_failure(compiler: Compiler, name: str) -> None:
    source, why = UNTRACED[name]
    build = only(compiler, HEAD + COPY + source)
    assert build.state == "untraced"
    assert why in build.reason


def test_what_was_launched_before_the_end_is_shown_but_proves_nothing(compiler: Compiler) -> None:
    build = only(compiler, HEAD + COPY + RELU.replace("return out", "raise ValueError('late')"))
    assert (build.state, len(build.kernels)) == ("untraced", 1)
    assert "after 1 launches: ValueError: late" in build.reason


def test_a_small_case_serves_where_the_timed_one_does_not(compiler: Compiler) -> None:
    refuse = "    if input.numel() > 10**6: raise MemoryError('too large')\n    out ="
    source = HEAD + COPY + RELU.replace("    out =", refuse)
    case, [build] = compiler.compile(Candidate("relu", source), (), [ARCHITECTURE_BY_SLUG["sm_90"]])
    assert (build.state, case.startswith("small")) == ("built", True)


@pytest.mark.parametrize("name", ["replies_ahead", "forged_reply"])
def test_a_forged_answer_is_no_build(compiler: Compiler, name: str) -> None:
    source = (ROOT / "tests" / "exploits" / f"{name}.py").read_text(encoding="utf-8")
    assert only(compiler, source).state != "built"


def test_a_source_that_kills_what_it_can_harms_nobody(compiler: Compiler) -> None:
    only(compiler, (ROOT / "tests" / "exploits" / "kills_parents.py").read_text(encoding="utf-8"))
    assert only(compiler, HEAD + COPY + RELU).state == "built"


def test_ir_that_is_none_is_refused_and_the_next_is_built(compiler: Compiler) -> None:
    """A candidate's process may send any text for IR."""
    target = {"sm_90": target_facts(ARCHITECTURE_BY_SLUG["sm_90"])}
    until = time.monotonic() + 120
    compilation = Compilation(compiler.ready(), compiler.options, target, until)
    try:
        refused = compilation.build("sm_90", "module { this is no IR }", {})
        assert refused["ok"] is False
        assert refused["reason"]
        built = compilation.build("sm_90", IR, {"num_warps": 2})
        assert (built["ok"], built["threads"]) == (True, 64)
    finally:
        compilation.close()


IR = """
module {
  tt.func public @k(%out: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %one = arith.constant 1.0 : f32
    tt.store %out, %one : !tt.ptr<f32>
    tt.return
  }
}
"""
