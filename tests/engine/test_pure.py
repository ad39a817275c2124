"""The parts without processes: messages, sources, whose work it is, times, floors, slugs."""

import math
import random
import socket
import time

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from runner.engine import figures, physics, profiling, proof, protocol
from runner.engine.devices import gpu_slug
from runner.engine.figures import Pair
from runner.engine.model import JudgeFailure
from runner.engine.operators import kind_of
from runner.engine.protocol import Channel, Closed, Malformed, Overdue
from runner.engine.source import Unloadable, inspect_source
from runner.engine.witness import Witness
from runner.engine.workers import require_interpreter
from runner.intake.cleaning import cut_tests

KERNEL = "import triton\n@triton.jit\ndef k(x): pass\n"


@pytest.fixture
def ends():
    left, right = socket.socketpair()
    yield Channel(left), right
    left.close()
    right.close()


def soon() -> float:
    return time.monotonic() + 5


class TestProtocol:
    def test_a_message_comes_through_in_pieces(self, ends):
        channel, other = ends
        data = protocol.encode({"ok": True, "text": "é" * 1000})
        for index in range(0, len(data), 100):
            other.sendall(data[index : index + 100])
        assert channel.wait(soon()) == {"ok": True, "text": "é" * 1000}

    def test_a_huge_length_is_refused_before_the_body(self, ends):
        channel, other = ends
        other.sendall(b"\xff\xff\xff\xff")
        with pytest.raises(Malformed, match="the limit is"):
            channel.wait(soon())

    @pytest.mark.parametrize(
        "body", [b"[1]", b"{", b'{"a": NaN}', b'{"a": Infinity}', b"[" * 100_000, b"\x80\x04."]
    )
    def test_what_is_no_json_object_is_refused(self, ends, body):
        channel, other = ends
        other.sendall(protocol.HEADER.pack(len(body)) + body)
        with pytest.raises(Malformed):
            channel.wait(soon())

    def test_silence_is_overdue_and_a_hang_up_is_closed(self, ends):
        channel, other = ends
        with pytest.raises(Overdue):
            channel.wait(time.monotonic() + 0.01)
        other.close()
        with pytest.raises(Closed):
            channel.wait(soon())

    def test_nan_is_not_sent(self):
        with pytest.raises(ValueError, match="JSON"):
            protocol.encode({"x": math.nan})


class TestSource:
    def test_kernels_of_every_spelling_are_found(self):
        source = inspect_source(
            KERNEL + "@triton.autotune(configs=[], key=[])\n@triton.jit\ndef b(x): pass\n"
            "from triton import jit\n@jit\ndef c(x): pass\n"
            "@triton.heuristics({})\n@triton.jit\ndef d(x): pass\n"
            "def relu(x): pass\n",
            ["relu"],
        )
        assert source.kernels == ("k", "b", "c", "d")

    @pytest.mark.parametrize(
        "decorator", ["torch.jit.script", "torch.jit", "functools.cache", "numba.jit"]
    )
    def test_other_decorators_are_no_kernels(self, decorator):
        with pytest.raises(Unloadable, match=r"@triton\.jit") as caught:
            inspect_source(f"@{decorator}\ndef relu(x): pass\n", ["relu"])
        assert caught.value.verdict == "forbidden"

    def test_the_first_entry_name_wins(self):
        text = KERNEL + "def kernel_function(x): pass\ndef old_relu(x): pass\n"
        assert inspect_source(text, ["relu", "old_relu"]).entry == "old_relu"
        assert inspect_source(text + "relu = old_relu\n", ["relu", "old_relu"]).entry == "relu"

    def test_findings_explain_and_do_not_decide(self):
        source = inspect_source(
            KERNEL + "import gc\ndef relu(x):\n  try: gc.get_objects()\n  except: pass\n", ["relu"]
        )
        assert {finding.code for finding in source.findings} == {
            "source-uses-frames",
            "source-catches-all",
        }

    @pytest.mark.parametrize("width", [100, 146, 1000])
    def test_everything_from_the_separator_on_is_cut(self, width):
        assert cut_tests(f"a\n{'#' * width}\nb\n{'#' * width}\nc") == "a\n"

    def test_a_short_line_of_hashes_is_a_comment(self):
        text = f"a\n{'#' * 99}\nb"
        assert cut_tests(text) == text


def observed(operators, launches=1, kernel_bytes=0, largest=1000, **more):
    """`operators`: name, calls, numbers in the largest tensor, bytes."""
    message = {
        "operators": [[*one, one[1] * one[2]] for one in operators],
        "launches": {"k": launches} if launches else {},
        "kernel_bytes": kernel_bytes,
        **more,
    }
    return proof.read_observed("case", largest, message)


class TestProof:
    @pytest.mark.parametrize(
        "name",
        [
            "aten::mm",
            "aten::convolution",
            "aten::_softmax",
            "aten::linalg_vector_norm",
            "aten::sort.stable",
            "aten::_scaled_dot_product_flash_attention",
            "aten::embedding",
            "aten::max_pool2d_with_indices",
            "aten::native_layer_norm",
            "aten::_fft_c2c",
            "aten::grid_sampler_2d",
            "aten::upsample_nearest2d",
        ],
    )
    def test_a_heavy_operator_is_forbidden_at_any_size(self, name):
        reason = proof.forbidden([observed([[name, 1, 1, 4]])], (), {})
        assert reason
        assert name in reason

    @pytest.mark.parametrize(
        "name",
        [
            "aten::empty_like",
            "aten::copy_",
            "aten::_to_copy",
            "aten::view",
            "aten::cat",
            "aten::zero_",
        ],
    )
    def test_allocation_views_copies_and_casts_are_free(self, name):
        assert kind_of(name) == "free"
        assert proof.forbidden([observed([[name, 9, 1000, 10**9]])], (), {}) is None

    def test_delegation_is_allowed_where_the_contract_says_so(self):
        seen = [observed([["aten::_linalg_eigh", 1, 1000, 1]], kernel_bytes=1)]
        assert proof.forbidden(seen, ("linalg_eigh",), {}) is None
        assert proof.forbidden(seen, (), {})

    def test_small_glue_is_free_and_full_size_arithmetic_is_weighed(self):
        assert (
            proof.forbidden(
                [observed([["aten::add.Tensor", 1, 249, 3000]], kernel_bytes=1)], (), {}
            )
            is None
        )
        full = ["aten::add.Tensor", 1, 1000, 12_000]
        theirs = {"case": proof.Baseline(bytes=20_000)}
        assert proof.forbidden([observed([full], kernel_bytes=8000)], (), theirs)
        assert proof.forbidden([observed([full], kernel_bytes=20_000)], (), theirs) is None

    def test_doing_all_that_pytorch_does_is_forbidden(self):
        seen = [observed([["aten::relu", 1, 1000, 8000]], kernel_bytes=10**6)]
        one, two = (("aten::relu", 1000),), (("aten::relu", 1000), ("aten::exp", 1000))
        assert proof.forbidden(seen, (), {"case": proof.Baseline(one, 10**6)})
        assert proof.forbidden(seen, (), {"case": proof.Baseline(two, 10**6)}) is None

    def test_slices_of_a_tensor_are_weighed_together(self):
        sliced = ["aten::clamp_min_", 9, 111, 8000]
        theirs = {"case": proof.Baseline(bytes=8000)}
        assert proof.forbidden([observed([sliced], kernel_bytes=8000)], (), theirs)

    def test_copying_more_than_the_task_has_to_touch_is_no_merit(self):
        work = ["aten::clamp_min", 1, 1000, 8000]
        theirs = {"case": proof.Baseline(bytes=8000)}
        reason = proof.forbidden([observed([work], kernel_bytes=10**9)], (), theirs)
        assert reason
        assert "50% of the bytes" in reason

    def test_without_a_launch_it_is_nobodys_work(self):
        assert proof.forbidden([observed([], launches=0)], (), {})
        library = observed([], launches=0, foreign={"lib_kernel": 3})
        reason = proof.forbidden([library], (), {})
        assert reason
        assert "lib_kernel" in reason

    def test_a_constant_answer_needs_no_launch_where_other_cases_have_theirs(self):
        constant = observed([["aten::zeros", 1, 1, 4]], launches=0)
        assert proof.forbidden([constant, observed([])], (), {}) is None
        assert proof.forbidden([constant], (), {})
        copied = observed([["aten::clone", 1, 1000, 4]], launches=0)
        assert proof.forbidden([copied, observed([])], (), {})

    @pytest.mark.parametrize(
        "junk",
        [None, [], 3, {"operators": {"a": 1}, "launches": [1], "events": "x", "kernel_bytes": -1}],
    )
    def test_a_forged_observation_counts_as_nothing_seen(self, junk):
        assert proof.forbidden([proof.read_observed("case", 10**9, junk)], (), {})


class TestProfiling:
    def test_copies_and_fills_do_not_count_and_own_names_win(self):
        rows = [
            ["my_FillFunctor_kernel", True, True, 3, 80.0],
            [
                "void at::native::vectorized_elementwise_kernel<FillFunctor<float>>",
                False,
                True,
                3,
                900.0,
            ],
            ["Memcpy DtoD (Device -> Device)", False, True, 3, 900.0],
            ["sm90_xmma_gemm", False, True, 3, 20.0],
        ]
        assert profiling.own_share(profiling.read_activity(rows)) == pytest.approx(0.8)

    def test_no_activity_is_no_share(self):
        assert (
            profiling.own_share(profiling.read_activity(["x", [1, 2], ["a", True, True, "3", 1.0]]))
            is None
        )


def pairs(
    ratio: float, scatter: float, count: int, milliseconds: float = 0.1, seed: int = 1
) -> list[Pair]:
    draw = random.Random(seed)

    def block(centre: float) -> tuple[float, ...]:
        shift = draw.gauss(0, scatter)
        return tuple(centre * math.exp(shift + draw.gauss(0, 0.05)) for _ in range(20))

    return [Pair(block(milliseconds * ratio), block(milliseconds)) for _ in range(count)]


class TestFigures:
    def test_a_ratio_lies_in_its_interval(self):
        found = figures.speedup_of([pairs(2.0, 0.002, 8)])
        assert found.low < 2.0 < found.high
        assert found.half_width < 0.05

    def test_equal_sides_contain_one_in_at_least_93_of_100(self):
        inside = 0
        for seed in range(100):
            found = figures.speedup_of([pairs(1.0, 0.003, 4, seed=seed)])
            inside += found.low <= 1 <= found.high
        assert inside >= 93

    def test_a_slow_down_of_2_percent_is_seen_in_9_of_10(self):
        seen = 0
        for seed in range(50):
            draw = [
                Pair((0.1 * math.exp(random.Random(f"{seed} {n}").gauss(0, 0.002)),), (0.102,))
                for n in range(4)
            ]
            seen += figures.speedup_of([draw]).high < 1
        assert seen >= 45

    def test_the_mean_over_cases_is_geometric(self):
        found = figures.speedup_of([[Pair((4.0,), (1.0,))] * 4, [Pair((1.0,), (1.0,))] * 4])
        assert found.value == pytest.approx(2.0)

    @pytest.mark.parametrize(
        ("milliseconds", "width"),
        [(0.2, 0.01), (0.05, 0.01), (0.049, 0.02), (0.01, 0.02), (0.004, 0.05)],
    )
    def test_gates(self, milliseconds, width):
        assert figures.gate(milliseconds) == width

    def test_scatter_is_not_narrow_enough(self):
        assert figures.narrow_enough(pairs(1.0, 0.0005, 8))
        assert not figures.narrow_enough(pairs(1.0, 0.2, 8))


class TestPhysics:
    board = physics.Board(bandwidth=4e12, l2=50 << 20, architecture="sm_90")

    def test_bytes_beyond_the_cache_take_time(self):
        assert self.board.floor_ms("float32", None, (50 << 20) + 4e9) == pytest.approx(1.0)
        assert self.board.floor_ms("float32", None, 1000) == 0

    def test_arithmetic_takes_time_where_the_peak_is_known(self):
        assert self.board.floor_ms("float16", 989e9, 0) == pytest.approx(1.0)
        assert self.board.floor_ms("complex64", 989e9, 0) == 0
        assert physics.Board(4e12, 0, "sm_00").floor_ms("float16", 989e9, 0) == 0


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("Tesla T4", "t4"),
        ("", "gpu"),
    ],
)
def test_gpu_slugs(name: str, slug: str) -> None:
    assert gpu_slug(name) == slug


class TestStranger:
    @pytest.fixture
    def ends(self):
        left, right = socket.socketpair()
        yield Channel(left, stranger=True), right
        left.close()
        right.close()

    @pytest.mark.parametrize(
        "body",
        [
            b'{"a": 1e999}',
            b'{"a": [-1e999]}',
            b'{"a": 9223372036854775808}',
            b'{"a": "\\u0000"}',
            b'{"\\ud800": 1}',
            b'{"a": ' + b"[" * 100 + b"]" * 100 + b"}",
        ],
    )
    def test_what_cannot_be_sent_on_or_stored_is_refused(self, ends, body):
        channel, other = ends
        other.sendall(protocol.HEADER.pack(len(body)) + body)
        with pytest.raises(Malformed):
            channel.wait(soon())

    def test_what_it_tells_is_kept_and_is_no_answer(self, ends):
        channel, other = ends
        protocol.send(other, {protocol.TOLD: "frames", "about": "x" * 1000})
        protocol.send(other, {"ok": True})
        assert channel.wait(soon()) == {"ok": True}
        assert channel.told == [("frames", "x" * 200)]

    def test_it_may_tell_at_any_time_and_answer_only_when_asked(self, ends):
        channel, other = ends
        protocol.send(other, {protocol.TOLD: "frames", "about": "sys._getframe"})
        channel.post({"op": "call"})
        protocol.send(other, {"ok": True})
        assert channel.wait(soon())["ok"]
        protocol.send(other, {"ok": True})
        with pytest.raises(Malformed, match="nobody asked for"):
            channel.post({"op": "call"})

    def test_what_moves_a_terminal_is_left_out(self, ends):
        channel, other = ends
        escape, turned = "\x1b]0;title\x07\x1b[31mred", "\u202eright to left"
        protocol.send(other, {"error": {"message": f"{escape}\n\tplain"}, turned: [turned, 1]})
        assert channel.wait(soon()) == {
            "error": {"message": "]0;title[31mred\n\tplain"},
            "right to left": ["right to left", 1],
        }

    def test_endless_telling_is_cut(self, ends):
        channel, other = ends
        for _ in range(protocol.MAX_TOLD + 5):
            protocol.send(other, {protocol.TOLD: "a", "about": "b"})
            with pytest.raises(Overdue):
                channel.wait(time.monotonic() + 0.0001)
        assert len(channel.told) <= protocol.MAX_TOLD


class TestWitness:
    """With the recorder on: what the mode sees is marked, what it does not see is found."""

    @staticmethod
    def watch(call) -> list[str] | None:
        witness = Witness()

        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                with witness.seen():
                    return func(*args, **(kwargs or {}))

        witness.start()
        with Mode():
            call(torch.ones(4, 4))
        return witness.stop()

    def test_what_the_mode_sees_is_no_finding_however_it_is_made_of_others(self):
        def call(x):
            torch.softmax(x @ x.t(), 0).mean().relu()
            torch.nn.functional.dropout(x, 0.5, training=False)
            torch.nn.functional.linear(x, x).to(torch.float64).contiguous()

        assert self.watch(call) == []

    def test_what_it_does_not_see_is(self):
        def call(x):
            with _disable_current_modes():
                torch.relu(x @ x)

        found = self.watch(call)
        assert found is not None
        assert {"aten::mm", "aten::relu"} <= set(found)

    def test_allocation_and_copies_unseen_are_no_work(self):
        def call(x):
            with _disable_current_modes():
                torch.empty_like(x).copy_(x).view(-1)

        assert self.watch(call) == []

    def test_a_recorder_that_was_stopped_is_noticed(self):
        assert self.watch(lambda _: torch._C._autograd._disable_profiler_legacy()) is None


class TestInterpreter:
    """Triton 3.6 with NumPy 2.4 or later raises TypeError for a `range` over an argument."""

    @pytest.mark.parametrize(
        ("triton", "numpy"), [("3.6.0", "2.4.0"), ("3.6.1", "2.10.3"), ("3.6.0+cpu", "3.0.0")]
    )
    def test_one_that_fails_honest_kernels_is_refused_with_the_remedy(self, triton, numpy):
        with pytest.raises(JudgeFailure, match=r"install triton>=3.7, or numpy<2.4"):
            require_interpreter({"triton": triton, "numpy": numpy})

    @pytest.mark.parametrize(
        ("triton", "numpy"), [("3.6.0", "2.3.5"), ("3.7.1", "2.4.6"), ("3.10.0", "2.5.5")]
    )
    def test_others_are_taken(self, triton, numpy):
        require_interpreter({"triton": triton, "numpy": numpy})
