"""What launches and figures mean: pure readings, strangers' nonsense included."""

from dataclasses import replace
from typing import Any

import pytest

from benchmark.architectures import ARCHITECTURE_BY_SLUG
from runner.engine.building import read_usage
from runner.engine.portability import (
    Trace,
    Untraced,
    chosen_configuration,
    count_of,
    essence,
    groups,
    kernel_build,
    read_trace,
    target_facts,
    verdict_of,
)

ADA, HOPPER, CDNA3 = (ARCHITECTURE_BY_SLUG[slug] for slug in ("sm_89", "sm_90", "gfx942"))
FITS = {"ok": True, "registers": 32, "spills": 0, "shared_bytes": 1024, "threads": 128}
LAUNCH = {"name": "k", "group": 0, "configuration": ""}


def reply(**changes: Any) -> dict[str, Any]:
    return {**FITS, "seconds": 0.25, **changes}


def test_a_kernel_that_fits_has_no_reason() -> None:
    built = kernel_build(LAUNCH, reply(), ADA)
    assert (built.reason, built.registers, built.shared_bytes) == ("", 32, 1024)


@pytest.mark.parametrize(
    ("figures", "one", "word"),
    [
        ({"shared_bytes": ADA.shared_limit + 1}, ADA, "shared memory"),
        ({"threads": 2048}, CDNA3, "threads"),
        ({"tensor_memory": 1024}, HOPPER, "tensor memory"),
    ],
)
def test_a_limit_that_is_broken_is_named_with_its_figure(
    figures: dict[str, int], one: Any, word: str
) -> None:
    built = kernel_build(LAUNCH, reply(**figures), one)
    assert word in built.reason
    assert str(next(iter(figures.values()))) in built.reason
    assert verdict_of(one, [built], "").state == "failed"


def test_the_limit_itself_is_allowed() -> None:
    assert not kernel_build(LAUNCH, reply(shared_bytes=ADA.shared_limit, threads=1024), ADA).reason


@pytest.mark.parametrize("nonsense", ["32", None, -1, True, 1.5, 2**31])
def test_a_builder_that_answers_nonsense_proves_nothing(nonsense: Any) -> None:
    with pytest.raises(Untraced, match="makes no sense"):
        kernel_build(LAUNCH, reply(registers=nonsense), ADA)


def alternatives(*changes: dict[str, Any]) -> list[tuple[dict, dict]]:
    return [({**LAUNCH, "configuration": f"B={n}"}, reply(**one)) for n, one in enumerate(changes)]


def test_of_an_autotuned_kernel_the_one_that_fits_and_spills_least_counts() -> None:
    found = chosen_configuration(
        alternatives({"shared_bytes": 10**6}, {"spills": 8}, {"spills": 2}, {"spills": 2}),
        {"0": 9},
        ADA,
    )
    assert (found.configuration, found.spills) == ("B=2", 2)
    assert (found.configurations, found.tried, found.fitting) == (9, 4, 3)
    assert not found.reason


def test_an_autotuned_kernel_of_which_nothing_fits_fails() -> None:
    found = chosen_configuration(alternatives({"shared_bytes": 10**6}), {}, ADA)
    assert "1000000 bytes" in found.reason
    assert found.fitting == 0


def test_failed_outweighs_untraced_and_built_needs_all() -> None:
    good = kernel_build(LAUNCH, reply(), ADA)
    bad = replace(good, reason="no")
    assert verdict_of(ADA, [good, bad], "stopped").state == "failed"
    assert verdict_of(ADA, [good], "stopped").state == "untraced"
    assert verdict_of(ADA, [good], "").state == "built"


def test_figures_are_those_of_the_kernel_that_needs_most() -> None:
    made = [kernel_build(LAUNCH, reply(registers=n, spills=9 - n), ADA) for n in (3, 7)]
    found = verdict_of(ADA, made, "").to_json()
    assert (found["kernel_count"], found["registers"], found["spills"]) == (2, 7, 6)


def test_a_kernel_that_did_not_compile_is_not_counted_among_the_compiled() -> None:
    refused = kernel_build(LAUNCH, {"ok": False, "reason": "no fp8 here"}, ADA)
    found = verdict_of(ADA, [refused], "").to_json()
    assert (found["state"], found["kernel_count"], found["registers"]) == ("failed", 0, None)
    assert found["reason"] == "k: no fp8 here"


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"launches": "all", "alternatives": {}},
        {"launches": [], "alternatives": []},
    ],
)
def test_a_trace_that_makes_no_sense_is_no_trace(answer: dict[str, Any]) -> None:
    with pytest.raises(Untraced):
        read_trace(answer)


def test_strangers_words_are_cut_and_their_numbers_read_as_numbers() -> None:
    launches = [{"name": "k" * 10**5, "group": "x", "configuration": 7}, "nothing"]
    trace = read_trace({"launches": launches, "alternatives": {"0": "many"}, "beyond": 3})
    [launch] = trace.launches
    assert (len(launch["name"]), launch["group"], launch["configuration"]) == (2000, 0, "")
    assert trace.alternatives == {"0": 1}
    assert "3 more kernels" in trace.stopped
    assert count_of({"n": True}, "n") is None


def test_launches_of_one_autotuner_stay_together() -> None:
    launches = tuple({**LAUNCH, "group": group} for group in (4, 2, 4))
    found = groups(Trace("timed", launches, {}))
    assert [[index for index, _ in group] for group in found] == [[0, 2], [1]]


def test_architectures_have_the_names_that_triton_gives_them() -> None:
    assert target_facts(ADA) == {"backend": "cuda", "arch": 89, "warp": 32}
    assert target_facts(CDNA3) == {"backend": "hip", "arch": "gfx942", "warp": 64}


def test_a_long_listing_is_left_out_of_a_reason() -> None:
    text = "CompilationError: at 12:4:\n" + "\n".join(f"line {n}" for n in range(50))
    assert essence(text) == "CompilationError: at 12:4: ... line 46 line 47 line 48 line 49"


def test_addresses_do_not_tell_equal_reasons_apart() -> None:
    assert essence("<block at 0x7feffa8ee630> of 0x1f") == "<block at 0x...> of 0x1f"


def test_usage_is_read_from_the_vendors_own_tool() -> None:
    said = (
        "Resource usage:\n Common:\n  GLOBAL:0\n Function k:\n  REG:96 STACK:40 SHARED:0 LOCAL:0\n"
    )
    assert read_usage(said) == {"registers": 96, "spills": 10, "static_shared": 0}
    with pytest.raises(ValueError, match="names no function"):
        read_usage("cuobjdump fatal")
