"""The second baseline: what PyTorch's compiler makes of a reference, or why it makes nothing."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from runner.commands.evaluate import _against_compiled
from runner.engine.compiled import CACHES, CompiledReferences

CASE = {"task": "relu", "case": "small-odd", "seed": 7}


@pytest.fixture(autouse=True)
def caches_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*CACHES, "TORCHINDUCTOR_COMPILE_THREADS"):
        monkeypatch.setenv(name, "")


def test_a_reference_that_compiles_can_be_called_like_the_eager_one() -> None:
    compiled = CompiledReferences("cpu", "eager")
    assert compiled.compile(CASE, [])["reason"] == ""
    from benchmark import suite

    task = suite.get("relu")
    arguments = task.arguments(task.case("small-odd"), 8, "cpu")
    call = compiled.call_of("relu", "small-odd")
    torch.testing.assert_close(call(arguments), task.reference(arguments))


def wrong(_graph: Any, _inputs: Any) -> Callable:
    return lambda *inputs: [tensor + 1 for tensor in inputs if torch.is_tensor(tensor)]


def broken(_graph: Any, _inputs: Any) -> Callable:
    raise RuntimeError("no such luck")


@pytest.mark.parametrize(("backend", "words"), [(wrong, "wrong-values"), (broken, "no such luck")])
def test_what_does_not_compile_or_computes_wrong_is_no_baseline(backend, words) -> None:
    compiled = CompiledReferences("cpu", backend)
    assert words in compiled.compile(CASE, [])["reason"]
    with pytest.raises(KeyError):
        compiled.call_of("relu", "small-odd")


def row(candidate: float | None, compiled: float | None = None, detail: str = "") -> dict:
    return {"candidate_ms": candidate, "compiled_ms": compiled, "compiled_detail": detail}


@pytest.mark.parametrize(
    ("cases", "shown"),
    [
        ([row(1.0), row(None)], ""),
        ([row(1.0, 2.0), row(1.0, 8.0), row(None)], "4.000"),
        ([row(1.0, 2.0), row(1.0, None, "it failed")], "2.000, failed on 1 of 2"),
        ([row(1.0, None, "it failed")], "failed on 1 of 1"),
    ],
)
def test_a_failure_is_shown_beside_what_was_measured(cases, shown) -> None:
    assert _against_compiled(cases) == shown
