import pytest
from django.http import Http404

from leaderboard.filters import read_choice
from leaderboard.rows import GpuRow

GPUS = [GpuRow(1, "h200", "H200", "sm_90", True, 5), GpuRow(2, "a100", "A100", "sm_80", True, 1)]


def test_nothing_asked_is_the_first_gpu_and_everything_else_open():
    choice = read_choice({}, GPUS)
    assert choice.gpu.slug == "h200"
    assert choice.query == "gpu=h200"
    assert (choice.category, choice.round, choice.lane) == ("", None, "measured")


def test_the_query_says_the_choice_again():
    asked = {
        "gpu": "a100",
        "category": "fusion",
        "difficulty": "3",
        "round": "0",
        "lane": "claimed",
    }
    choice = read_choice(asked, GPUS)
    assert choice.query == "gpu=a100&category=fusion&difficulty=3&round=0&lane=claimed"


def test_final_and_empty_rounds_are_the_same():
    assert read_choice({"round": "final"}, GPUS) == read_choice({"round": ""}, GPUS)


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ({"gpu": "h20"}, "h200"),
        ({"category": "fusoin"}, "fusion"),
        ({"dtype": "float31"}, "float32"),
        ({"difficulty": "9"}, "1, 2, 3, 4, 5"),
        ({"lane": "mesured"}, "measured"),
        ({"round": "last"}, "final"),
        ({"round": "-1"}, "final"),
        ({"round": "٣"}, "final"),
        ({"round": "1000000"}, "final"),
    ],
)
def test_an_unknown_value_is_a_404_that_names_what_is_near(asked, hint):
    with pytest.raises(Http404, match=hint):
        read_choice(asked, GPUS)


def test_a_site_without_gpus_has_no_choice_but_still_refuses_nonsense():
    assert read_choice({}, []) is None
    with pytest.raises(Http404):
        read_choice({"gpu": "h200"}, [])
