"""Published figures as a document of their own: the form of `leaderboard/data/*.json`, checked.

They are the "published" lane. A paper gives counts by method and category, not verdicts of single
candidates, so its figures can stand beside a ranking but never in one.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark import vocabulary
from leaderboard.findings.attribution import Tally

SCHEMA = "kbx-published/1"
MAX_BYTES = 256 * 1024  # the paper's own tables take 7 KiB
COMPILED, CORRECT = "compiled", "correct"
FOLDER = Path(__file__).resolve().parents[1] / "data"
Value = str | int | float | None


class Malformed(ValueError):  # noqa: N818  says what the document is
    """The document can't be used; the text names the place in it and what to write there."""


@dataclass(frozen=True, slots=True)
class Count:
    """A category's tasks, and how many each method compiled and solved, in the methods' order."""

    category: str
    tasks: int
    compiled: tuple[int, ...]
    correct: tuple[int, ...]

    @property
    def label(self) -> str:
        return vocabulary.CATEGORY_BY_NAME[self.category].label

    @property
    def cells(self) -> tuple[tuple[int, int], ...]:
        """(correct, compiled) of each method."""
        return tuple(zip(self.correct, self.compiled, strict=True))


@dataclass(frozen=True, slots=True)
class PublishedTable:
    slug: str
    title: str
    place: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    note: str


@dataclass(frozen=True, slots=True)
class Published:
    """One publication. `excluded` are methods that its own analyses leave out."""

    slug: str
    title: str
    citation: str
    url: str
    licence: str
    note: str
    methods: tuple[str, ...]
    excluded: tuple[str, ...]
    counts: tuple[Count, ...]
    figures: Mapping[str, float]
    tables: tuple[PublishedTable, ...]

    @property
    def kept(self) -> tuple[str, ...]:
        """The methods that its own analyses keep."""
        return tuple(name for name in self.methods if name not in self.excluded)

    @property
    def tasks(self) -> int:
        return sum(count.tasks for count in self.counts)

    def tallies(self, outcome: str, methods: Sequence[str]) -> tuple[Tally, ...]:
        """Its counts as cells: `outcome` is "compiled" or "correct"."""
        columns = [self.methods.index(name) for name in methods]
        return tuple(
            Tally(count.category, self.methods[i], getattr(count, outcome)[i], count.tasks)
            for count in self.counts
            for i in columns
        )

    def total(self, outcome: str, method: str) -> int:
        i = self.methods.index(method)
        return sum(getattr(count, outcome)[i] for count in self.counts)

    def table(self, slug: str) -> PublishedTable | None:
        return next((table for table in self.tables if table.slug == slug), None)


def read(path: Path) -> Published:
    """Raises `Malformed`, or `OSError` where the file can't be read."""
    if path.stat().st_size > MAX_BYTES:
        raise Malformed(f"{path.name}: larger than {MAX_BYTES // 1024} KiB; figures take far less")
    return parse(load(path.read_bytes()))


def load(content: bytes) -> Any:
    try:
        return json.loads(content, parse_constant=_no_constant)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise Malformed(f"no JSON: {error}; write UTF-8 JSON") from None


def parse(document: Any) -> Published:
    whole = _object(document, "document")
    if whole.get("schema") != SCHEMA:
        raise Malformed(f"schema: write {SCHEMA!r}, the only one that is known")
    methods = _unique(_texts(whole, "methods"), "methods")
    excluded = _texts(whole, "excluded", optional=True)
    for name in excluded:
        if name not in methods:
            raise Malformed(f"excluded: {name!r} is none of the methods; name one of them")
    return Published(
        slug=_slug(_text(whole, "slug"), "slug"),
        title=_text(whole, "title"),
        citation=_text(whole, "citation"),
        url=_url(_text(whole, "url")),
        licence=_text(whole, "licence"),
        note=_text(whole, "note", optional=True),
        methods=methods,
        excluded=excluded,
        counts=tuple(_counts(whole, len(methods))),
        figures=_figures(whole.get("figures", {})),
        tables=tuple(_tables(whole.get("tables", []))),
    )


def _counts(whole: Mapping[str, Any], methods: int) -> Iterable[Count]:
    seen: set[str] = set()
    for i, entry in enumerate(_list(whole.get("counts"), "counts")):
        place = f"counts[{i}]"
        row = _object(entry, place)
        category = row.get("category")
        if category not in vocabulary.CATEGORY_BY_NAME or category in seen:
            known = ", ".join(vocabulary.CATEGORY_BY_NAME)
            raise Malformed(f"{place}.category: write each of these at most once: {known}")
        seen.add(category)
        tasks = _whole(row.get("tasks"), f"{place}.tasks", 1_000_000)
        compiled = _column(row, COMPILED, place, methods, tasks)
        correct = _column(row, CORRECT, place, methods, tasks)
        if any(right > built for right, built in zip(correct, compiled, strict=True)):
            raise Malformed(f"{place}.correct: more are correct than compile; mend one of the two")
        yield Count(category, tasks, compiled, correct)


def _column(
    row: Mapping[str, Any], name: str, place: str, methods: int, tasks: int
) -> tuple[int, ...]:
    values = _list(row.get(name), f"{place}.{name}")
    if len(values) != methods:
        raise Malformed(f"{place}.{name}: {len(values)} counts for {methods} methods; one for each")
    return tuple(_whole(value, f"{place}.{name}[{i}]", tasks) for i, value in enumerate(values))


def _tables(tables: Any) -> Iterable[PublishedTable]:
    slugs: set[str] = set()
    for i, entry in enumerate(_list(tables, "tables")):
        place = f"tables[{i}]"
        table = _object(entry, place)
        slug = _slug(_text(table, "slug", place), f"{place}.slug")
        if slug in slugs:
            raise Malformed(f"{place}.slug: {slug!r} is there before; give each table its own")
        slugs.add(slug)
        columns = _unique(_texts(table, "columns", place), f"{place}.columns")
        yield PublishedTable(
            slug=slug,
            title=_text(table, "title", place),
            place=_text(table, "place", place),
            columns=columns,
            rows=tuple(_rows(table.get("rows"), f"{place}.rows", len(columns))),
            note=_text(table, "note", place, optional=True),
        )


def _rows(rows: Any, place: str, width: int) -> Iterable[tuple[Value, ...]]:
    for i, row in enumerate(_list(rows, place)):
        values = _list(row, f"{place}[{i}]")
        if len(values) != width:
            raise Malformed(f"{place}[{i}]: {len(values)} values for {width} columns; one for each")
        for value in values:
            if isinstance(value, bool) or not isinstance(value, str | int | float | None):
                raise Malformed(f"{place}[{i}]: write text, numbers or null")
        yield tuple(values)


def _figures(figures: Any) -> dict[str, float]:
    found = _object(figures, "figures")
    for name, value in found.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Malformed(f"figures.{name}: write a number")
    return {name: float(value) for name, value in found.items()}


def _object(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise Malformed(f"{place}: write a JSON object")
    return value


def _list(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise Malformed(f"{place}: write a list")
    return value


def _text(holder: Mapping[str, Any], name: str, place: str = "", optional: bool = False) -> str:
    value = holder.get(name, "" if optional else None)
    if not isinstance(value, str) or not (value or optional) or len(value) > 2000:
        raise Malformed(f"{place + '.' if place else ''}{name}: write text of 1 to 2000 characters")
    return value


def _texts(
    holder: Mapping[str, Any], name: str, place: str = "", optional: bool = False
) -> tuple[str, ...]:
    where = f"{place + '.' if place else ''}{name}"
    values = _list(holder.get(name, [] if optional else None), where)
    if not all(isinstance(value, str) and value for value in values) or not (values or optional):
        raise Malformed(f"{where}: write a list of words, none of them empty")
    return tuple(values)


def _unique(words: tuple[str, ...], place: str) -> tuple[str, ...]:
    if len(set(words)) < len(words):
        raise Malformed(f"{place}: a word is there twice; each must be its own")
    return words


def _slug(text: str, place: str) -> str:
    if len(text) > 60 or not all(c.isascii() and (c.isalnum() or c == "-") for c in text):
        raise Malformed(f"{place}: write at most 60 of a-z, 0-9 and '-'")
    return text


def _url(text: str) -> str:
    if not text.startswith(("https://", "http://")):
        raise Malformed("url: write an address that begins with https://")
    return text


def _whole(value: Any, place: str, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise Malformed(f"{place}: write a whole number from 0 to {most}")
    return value


def _no_constant(word: str) -> Any:
    raise Malformed(f"{word}: not a number; write null where there is none")
