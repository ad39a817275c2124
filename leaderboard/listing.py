"""Source text as highlighted HTML with line numbers. Pygments escapes; nothing is executed.

What a reader can't see, or what makes a line read in another order than it runs, is written out in
the listing, so that it says what Python reads.
"""

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from django.utils.safestring import SafeString, mark_safe
from pygments import highlight  # type: ignore[import-untyped]  # pygments ships no types
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]  # as above
from pygments.lexers import PythonLexer  # type: ignore[import-untyped]  # as above

KEPT_LISTINGS = 128
LONGEST_KEPT = 32 * 1024  # characters; the longest published source has 24 KiB, a listing ten times

BYTE_ORDER_MARK = "\ufeff"
ORDERING = {*"\u061c\u200e\u200f", *map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))}
# Without a picture though Unicode counts them as letters, marks or symbols.
BLANK = {
    *"\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0",
    *map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))),
}
UNSEEN_CATEGORIES = ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs")
NOT_PLAIN = re.compile(r"([^\n\t -~])\1*")  # repeated, too


@dataclass(frozen=True, slots=True)
class Unseen:
    """A character of a source that is written out in its listing, and how often it is there."""

    code: str
    name: str
    reorders: bool
    count: int


def listing(source: str, anchor: str = "L") -> SafeString:
    """A table of line numbers and code; each line can be linked to as #L-12. Kept by the text."""
    make = _kept if len(source) <= LONGEST_KEPT else _made
    return make(source, anchor)


def unseen(source: str) -> list[Unseen]:
    """The characters that the listing writes out, those that change the order first."""
    counts: Counter[str] = Counter()
    for found in NOT_PLAIN.finditer(_lines(source)):
        if _is_unseen(found[1]):
            counts[found[1]] += len(found[0])
    rows = [Unseen(_code(one), _name(one), one in ORDERING, count) for one, count in counts.items()]
    return sorted(rows, key=lambda row: (not row.reorders, row.code))


def _made(source: str, anchor: str) -> SafeString:
    formatter = HtmlFormatter(
        linenos="table", lineanchors=anchor, anchorlinenos=True, cssclass="source", wrapcode=True
    )
    # Pygments drops one mark where a text begins: this one, so that none of the author's is gone.
    html = highlight(BYTE_ORDER_MARK + _lines(source), PythonLexer(stripnl=False), formatter)
    return mark_safe(NOT_PLAIN.sub(_written_out, html))  # noqa: S308  the formatter escapes


_kept = lru_cache(maxsize=KEPT_LISTINGS)(_made)


def _lines(source: str) -> str:
    """With the line ends that Python reads."""
    return source.replace("\r\n", "\n").replace("\r", "\n")


def _written_out(found: re.Match[str]) -> str:
    one, times = found[1], len(found[0])
    if not _is_unseen(one):
        return found[0]
    often = f" \N{MULTIPLICATION SIGN} {times}" if times > 1 else ""
    return f'<span class="unseen" title="{_name(one)}">{_code(one)}{often}</span>'


def _is_unseen(one: str) -> bool:
    return one in BLANK or unicodedata.category(one) in UNSEEN_CATEGORIES


def _code(one: str) -> str:
    return f"U+{ord(one):04X}"


def _name(one: str) -> str:
    """Unicode's name for it; control characters have none there."""
    return unicodedata.name(one, "control character" if ord(one) < 0xA0 else "no character").lower()
