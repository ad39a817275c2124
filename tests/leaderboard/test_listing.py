"""A listing says what Python reads: nothing unseen in it, nothing that turns its order around."""

import html
import re
import unicodedata

import pytest

from benchmark import vocabulary
from benchmark.models import Candidate
from leaderboard import listing as listings
from leaderboard.listing import listing, unseen
from tests.leaderboard import factories

# Trojan source: a comment that reads as one and a condition that runs.
TROJAN = "if is_admin:  # \u202e } \u2066if is_admin\u2069 \u2066 begin\n    pass\n"
TAG = re.compile(r"<[^>]*>")


def text_of(source: str) -> str:
    """The code column as a reader gets it."""
    code = str(listing(source)).partition('<td class="code">')[2]
    return html.unescape(TAG.sub("", code))


@pytest.mark.parametrize(
    ("one", "written"),
    [
        ("\u202e", "U+202E"),  # right-to-left override
        ("\u2067", "U+2067"),
        ("\u200f", "U+200F"),
        ("\u200b", "U+200B"),  # zero width
        ("\u00ad", "U+00AD"),
        ("\ufeff", "U+FEFF"),
        ("\u3164", "U+3164"),  # a letter that is blank: a name of its own in Python
        ("\u2028", "U+2028"),
        ("\u00a0", "U+00A0"),
        ("\x0c", "U+000C"),
        ("\x1b", "U+001B"),
        ("\ufe0f", "U+FE0F"),
        ("\U000e0041", "U+E0041"),
        ("\U000e0100", "U+E0100"),
        ("\ue000", "U+E000"),
    ],
)
@pytest.mark.parametrize("around", ["{}x = 1\n", "x = '{}'\n", "x = 1  # a{}b\n", "x{} = 1\n"])
def test_what_is_not_seen_is_written_out_where_it_stands(one, written, around):
    source = around.format(one)
    assert one not in str(listing(source))
    assert text_of(source).strip() == source.replace(one, written).strip()
    assert [(row.code, row.count) for row in unseen(source)] == [(written, 1)]


def test_no_character_of_unicode_is_unseen_and_not_said():
    """Over all of it: what has no width or picture by its category is written out."""
    hidden = [
        one
        for one in map(chr, range(0x110000))
        if unicodedata.category(one) in ("Cc", "Cf", "Zl", "Zp") and one not in "\n\r\t"
    ]
    assert {row.code for row in unseen("".join(hidden))} == {f"U+{ord(one):04X}" for one in hidden}


def test_repeated_ones_are_counted():
    assert "U+200B \N{MULTIPLICATION SIGN} 3" in text_of("x = '\u200b\u200b\u200b'\n")
    assert unseen("\u200b\u200b\u200b x \u200b")[0].count == 4


@pytest.mark.parametrize(
    "source", ["x = 'é, 漢字, ø'  # \N{GREEK SMALL LETTER MU}\n\ty\n", "a\r\nb\r\n", "a\rb\n"]
)
def test_letters_and_line_ends_of_others_are_left_alone(source):
    assert unseen(source) == []
    assert "U+" not in listing(source)
    assert text_of(source).split() == source.split()


def test_those_that_change_the_order_come_first():
    rows = unseen("\u00a0" + TROJAN)
    assert [row.reorders for row in rows] == [True] * 3 + [False]
    assert rows[0].name == "right-to-left override"


def test_markup_of_strangers_stays_text():
    assert "<b>" not in listing("x = '<b>\u202e<script>'\n")


def test_a_listing_is_made_once_for_each_text_and_anchor():
    listings._kept.cache_clear()
    made = listing("x = 1\n")
    assert listing("x = 1\n") is made
    assert listing("x = 1\n", "P") != made
    listing("x" * (listings.LONGEST_KEPT + 1))  # strangers' long texts take no memory
    assert listings._kept.cache_info().currsize == 2


def test_a_runs_page_warns_and_the_download_is_as_it_was(client, site):
    plain = client.get(f"/runs/{site.fast.uuid}/").content.decode()
    assert 'id="unseen"' not in plain
    source = factories.source(TROJAN)
    run = factories.run(site.beta, site.gelu, site.h200, verdict=vocabulary.TIMEOUT, stage="call")
    Candidate.objects.filter(pk=run.candidate_id).update(source=source)
    page = client.get(f"/runs/{run.uuid}/").content.decode()
    assert "It may not read as it runs." in page
    assert "right-to-left override, 1 time<" in page
    assert not {"\u202e", "\u2066", "\u2069"} & {*page}
    assert client.get(f"/runs/{run.uuid}/source.py").content.decode() == TROJAN
