"""The words of intake: what was found, what was refused and why, and which tasks there are."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

_SHOWN = 160  # characters of a name that somebody else chose


@dataclass(frozen=True)
class Found:
    """A candidate. `source` is cleaned text, at most MAX_SOURCE_BYTES of UTF-8; `notes` are for its
    author to read.
    """

    task: str
    round: int
    source: str
    place: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """A result that another harness wrote down about a candidate. Claimed, never measured here.

    `stage` is the last one that it tells about, `ok` whether that went well; `speedup` over the
    harness's own baseline. `sha256` is that of the cleaned source, empty where the record has none.
    """

    task: str
    round: int
    stage: str  # "call", "check" or "time"
    ok: bool
    place: str
    sha256: str = ""
    speedup: float | None = None
    is_suspect: bool = False
    facts: Mapping[str, str | float | bool] = field(default_factory=dict)
    detail: str = ""


UNREADABLE, UNKNOWN, DUPLICATE = "unreadable", "unknown task", "duplicate"


@dataclass(frozen=True)
class Refusal:
    """Something that did not become a candidate: where it is, why, and what its author can do."""

    place: str
    reason: str
    remedy: str
    kind: str = field(default=UNREADABLE, compare=False)

    def to_json(self) -> dict[str, str]:
        """One element of `refused`."""
        return {"place": self.place, "reason": self.reason, "remedy": self.remedy}


@dataclass(frozen=True)
class Intake:
    """Everything in an upload, in its order: each piece is a candidate, or named in a refusal or a
    note.
    """

    candidates: tuple[Found, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    claims: tuple[Claim, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Nothing that could be stored."""
        return not self.candidates and not self.claims


@dataclass(frozen=True)
class TaskName:
    """A task as far as intake knows it: its slug, its published category, and further names of its
    entry point.
    """

    slug: str
    category: str = ""
    entries: tuple[str, ...] = ()


@dataclass(frozen=True)
class KnownTasks:
    """The tasks that candidates can be for. `names` by slug; `aliases` other name -> slug;
    `descriptions` slug -> text.

    A description is what a generation prompt says after "Functional Description:".
    """

    names: Mapping[str, TaskName]
    aliases: Mapping[str, str] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, slugs: Iterable[str]) -> "KnownTasks":
        """Tasks of which only the names are known."""
        return cls({slug: TaskName(slug) for slug in slugs})


class Refused(Exception):  # noqa: N818 - what a reader of one piece raises; never leaves the package
    """A piece can't become a candidate: `reason` and `remedy` of the refusal; the place is known
    further out.
    """

    def __init__(self, reason: str, remedy: str, kind: str = UNREADABLE) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy
        self.kind = kind

    def at(self, place: str) -> Refusal:
        """The refusal, once the place is known."""
        return Refusal(place, self.reason, self.remedy, self.kind)


def shown(name: object) -> str:
    """A stranger's name made fit for a message: one line, short, and nothing in it that can't be
    seen or that turns the writing round.
    """
    text = str(name)
    cut = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    return "".join(mark if mark.isprintable() else "?" for mark in cut)


def once(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    """An object of JSON, for `object_pairs_hook`: readers differ about a name that stands twice."""
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise Refused(f"`{shown(name)}` stands twice in an object", "write each name once")
        found[name] = value
    return found
