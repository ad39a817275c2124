from types import SimpleNamespace

import pytest

from leaderboard.figures import Interval, error_figure, figure, interval, speed_word
from leaderboard.templatetags.figures import prose, without_words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.4159, "1.42"),
        (14.159, "14.2"),
        (141.59, "142"),
        (1415.9, "1,420"),
        (0.014159, "0.0142"),
        (9.996, "10.0"),
        (0.9996, "1.00"),
        (999.6, "1,000"),
        (0, "0"),
        (-1.5, "-1.50"),
        (None, "\N{EN DASH}"),
    ],
)
def test_three_significant_digits(value, text):
    assert figure(value) == text


def test_tiny_errors_have_an_exponent_and_none_is_a_dash():
    assert error_figure(1.234e-7) == "1.23e-07"
    assert error_figure(0.0) == "0"
    assert error_figure(None) == "\N{EN DASH}"


def test_an_interval_is_whole_or_missing():
    assert interval(1.42, 1.31, 1.55) == Interval(1.42, 1.31, 1.55)
    assert Interval(1.42, 1.31, 1.55).ratio == "1.42x [1.31, 1.55]"
    assert interval(1.42, None, 1.55) is None


@pytest.mark.parametrize(
    ("speedup", "word"),
    [
        (1.06, "fast"),
        (1.05, "even"),
        (1.0, "even"),
        (0.96, "even"),
        (0.94, "slow"),
        (None, "correct"),
    ],
)
def test_within_five_percent_is_neither_fast_nor_slow(speedup, word):
    assert speed_word(speedup) == word


def test_a_docstring_flows_and_its_names_are_code_but_never_markup():
    html = prose("Adds `eps`\nto <b>.\n\nThen `x`.")
    assert html == "<p>Adds <code>eps</code> to &lt;b&gt;.</p><p>Then <code>x</code>.</p>"


def test_a_shape_does_not_repeat_the_columns_beside_it():
    case = SimpleNamespace(dtype="float32", family="wide")
    assert without_words("rows=3 float32 wide dim=0", case) == "rows=3 dim=0"
