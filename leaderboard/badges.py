"""Pure: a method's place as a small picture for a README. Text only, nothing to load."""

from dataclasses import dataclass
from html import escape

from leaderboard.rows import Board, MethodRow

CHARACTER = 6.6  # pixels a character takes at 11 px in the fonts below; textLength makes it exact
PADDING = 10
HEIGHT = 20
FONTS = "DejaVu Sans,Verdana,Geneva,sans-serif"
INK, LEADING, RANKED, UNRANKED = "#3b4047", "#00694c", "#0b5f8a", "#5b6067"
LABEL = "KernelBench-X"


@dataclass(frozen=True, slots=True)
class Badge:
    value: str
    colour: str


def badge(board: Board, method: MethodRow) -> Badge:
    """`rank 1-2 · 120/176 solved · H200`, or that it has no rank there."""
    standing = next((s for s in board.standings if s.method.id == method.id), None)
    if standing is None:
        return Badge(f"not ranked · {board.gpu.name}", UNRANKED)
    solved = f"{standing.funnel.correct}/{standing.funnel.tasks} solved"
    colour = LEADING if standing.group == 1 else RANKED
    return Badge(f"rank {standing.rank_interval} · {solved} · {board.gpu.name}", colour)


def svg(found: Badge, title: str) -> str:
    """Escaped throughout: names are data."""
    left, right = _width(LABEL), _width(found.value)
    whole = left + right
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{HEIGHT}" role="img" '
        f'aria-label="{escape(title)}"><title>{escape(title)}</title>'
        f'<rect width="{whole}" height="{HEIGHT}" rx="3" fill="{INK}"/>'
        f'<path d="M{left} 0h{right - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{right - 3}z" '
        f'fill="{found.colour}"/>'
        f'<g fill="#fff" font-family="{FONTS}" font-size="11">'
        f"{_text(LABEL, 0, left)}{_text(found.value, left, right)}</g></svg>\n"
    )


def _width(text: str) -> int:
    return round(CHARACTER * len(text)) + PADDING


def _text(text: str, start: int, width: int) -> str:
    return (
        f'<text x="{start + PADDING / 2:g}" y="14" textLength="{width - PADDING}" '
        f'lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'
    )
