"""Reading JSON that others sent: what is refused, and what is made storable."""

import json
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner.schema import (
    Flag,
    Hex,
    Json,
    List,
    Malformed,
    Number,
    Optional,
    Prose,
    Record,
    Text,
    Whole,
    Word,
)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (Text(3), "abcd"),
        (Text(3), 7),
        (Prose(3), None),
        (Hex(4), "abcG"),
        (Hex(4), "abc"),
        (Word(("a", "b")), "c"),
        (Word(("a", "b")), ["a"]),
        (Number(0, 1), math.nan),
        (Number(0, 1), math.inf),
        (Number(0, 1), 1.5),
        (Number(0, 1), True),
        (Number(0, 1, above=True), 0),
        (Number(0, 1), "1"),
        (Whole(0, 9), 1.0),
        (Whole(0, 9), False),
        (Whole(0, 9), 10),
        (Flag(), 1),
        (List(Flag(), 1), [True, False]),
        (List(Flag(), 1), {"0": True}),
        (Record({"a": Flag()}), {}),
        (Record({"a": Flag()}), []),
        (Optional(Flag()), "yes"),
        (Json(nodes=3), [1, 2, 3]),
        (Json(nodes=99, depth=2), [[[[1]]]]),
        (Json(nodes=99), {"a": math.nan}),
        (Json(nodes=99), {"a": 10**400}),
    ],
)
def test_what_does_not_fit_is_refused(field: Any, value: Any) -> None:
    with pytest.raises((Malformed, OverflowError)) as caught:
        field.read(value, "report.x")
    assert caught.type is Malformed
    assert "report.x" in str(caught.value)


def test_a_record_drops_names_that_it_does_not_know() -> None:
    assert Record({"a": Flag()}).read({"a": True, "later": 1}, "x") == {"a": True}


def test_prose_is_cut_and_names_are_not() -> None:
    cut = Prose(20).read("x" * 50, "x")
    assert len(cut) == 20
    assert cut.endswith("[...]")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=20,
)


# The alphabet of all of Unicode is made at the first draw: seconds on a busy machine.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(JSON)
def test_json_is_refused_or_comes_out_storable(value: Any) -> None:
    """Whatever arrives: no NUL, no half surrogate, no NaN reaches the database."""
    try:
        clean = Json(nodes=50).read(value, "x")
    except Malformed:
        return
    text = json.dumps(clean, allow_nan=False, ensure_ascii=False)
    assert "\0" not in text
    assert "\\u0000" not in text
    text.encode("utf-8")
