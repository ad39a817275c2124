"""The URL is the state: GET parameters read into one frozen choice; an unknown value is a 404."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import urlencode

from django.http import Http404

from benchmark import vocabulary
from leaderboard.rows import GpuRow

FINAL = "final"
MAX_ROUND = 99  # a URL can't ask for more; methods iterate a handful of times


@dataclass(frozen=True, slots=True)
class Choice:
    """What a board shows. `round`: "final" (the last a method offered for a task) or a number."""

    gpu: GpuRow
    category: str = ""
    dtype: str = ""
    difficulty: int | None = None
    round: int | None = None
    lane: str = vocabulary.MEASURED

    @property
    def query(self) -> str:
        """The shortest query string that says it all. It names the GPU: the default may change."""
        pairs = [
            ("gpu", self.gpu.slug),
            ("category", self.category),
            ("dtype", self.dtype),
            ("difficulty", self.difficulty or ""),
            ("round", "" if self.round is None else self.round),
            ("lane", "" if self.lane == vocabulary.MEASURED else self.lane),
        ]
        return urlencode([(name, value) for name, value in pairs if value != ""])

    @property
    def round_text(self) -> str:
        return "final round" if self.round is None else f"round {self.round}"

    @property
    def lane_text(self) -> str:
        return vocabulary.ORIGINS[self.lane]

    @property
    def category_label(self) -> str:
        return vocabulary.CATEGORY_BY_SLUG[self.category].label if self.category else ""

    def on(self, gpu: GpuRow) -> "Choice":
        return replace(self, gpu=gpu)

    def within(self, category: str) -> "Choice":
        return replace(self, category=category)


def read_choice(parameters: Mapping[str, str], gpus: Sequence[GpuRow]) -> Choice | None:
    """The choice that GET parameters make; None while the site knows no GPU and none was asked for.

    Raises Http404, whose text names the parameter, the value and near misses.
    """
    by_slug = {gpu.slug: gpu for gpu in gpus}
    slug = _one_of(parameters, "gpu", by_slug)
    difficulty = _one_of(parameters, "difficulty", map(str, vocabulary.DIFFICULTIES))
    asked = partial(
        Choice,
        category=_one_of(parameters, "category", vocabulary.CATEGORY_BY_SLUG),
        dtype=_one_of(parameters, "dtype", vocabulary.DTYPES),
        difficulty=int(difficulty) if difficulty else None,
        round=_round(parameters.get("round", "")),
        lane=_one_of(parameters, "lane", vocabulary.ORIGINS) or vocabulary.MEASURED,
    )
    if not gpus:
        return None
    return asked(gpu=by_slug[slug] if slug else gpus[0])


def unknown(what: str, value: str, known: Iterable[str]) -> Http404:
    """The 404 for a value that isn't there, with near misses or, where few exist, all of them."""
    words = sorted(known)
    near = difflib.get_close_matches(value.lower(), words, n=3, cutoff=0.5)
    shown = value if len(value) <= 60 else value[:60] + "…"
    text = f"There is no {what} “{shown}” here."
    if near:
        return Http404(f"{text} Did you mean {' or '.join(near)}?")
    if 0 < len(words) <= 15:
        return Http404(f"{text} Known: {', '.join(words)}.")
    return Http404(text)


def _one_of(parameters: Mapping[str, str], name: str, known: Iterable[str]) -> str:
    value, words = parameters.get(name, ""), list(known)
    if value and value not in words:
        raise unknown("GPU" if name == "gpu" else name, value, words)
    return value


def _round(value: str) -> int | None:
    if value in ("", FINAL):
        return None
    # Of a text with thousands of digits, `int` makes no number but an error.
    if not (value.isascii() and value.isdigit() and len(value) <= 4 and int(value) <= MAX_ROUND):
        raise Http404(f"There is no round “{value[:20]}”: use “final” or a number from 0.")
    return int(value)
