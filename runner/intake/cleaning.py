"""From what a model wrote to Python source: marks, thoughts, fences, prose and the author's own
tests go.

Text that is Python as it stands is left as it stands, apart from line ends and the cut. Nothing is
run or compiled.
"""

import ast
import functools
import re
import warnings
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice

from benchmark.vocabulary import MAX_SOURCE_BYTES
from runner.intake.model import Refused

# The published files have 146, and three of them go on behind it on the same line.
_SEPARATOR = re.compile(r"^[ \t]*#{100,}", re.MULTILINE)
_MARKS = re.compile(
    r"<[|\uff5c](?:im_start|im_end|EOT|eot_id|endoftext|end_of_text|end\u2581of\u2581sentence)[|\uff5c]>"
    r"(?:assistant\n)?"
    r"|</s>\s*\Z"
)
_THOUGHTS = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL)
_END_OF_THOUGHTS = re.compile(r"</(?:think|thinking|reasoning)>")
_FENCE = re.compile(r"(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+.-]*)[ \t]*$")
_CODE_LINE = re.compile(r"(?:import|from|def|class|async def) +\w|@\w")
# What shows that a text is code, if only its beginning: an answer that was cut off before its first
# definition ended is a candidate that does not parse, and no text without code.
_CODE = re.compile(
    r"^(?:(?:def|class|async def) +\w|\w+ *= *\S|@\w"
    r"|import +[\w.]+(?: as \w+)? *$|from +[\w.]+ +import\b)",
    re.MULTILINE,
)
_KERNEL = re.compile(r"^[ \t]*@(?:\w+\.)*jit\b", re.MULTILINE)
_SENTENCE = re.compile(
    r"[A-Z*>#\d-].*\w+[,:;]? +\w+[,:;]? +\w+"
)  # no statement of Python reads like this
_PYTHON = ("", "python", "py", "python3", "triton")
_MAX_FENCES = 200  # more fence lines than any answer has; the rest is ignored
_LINE_END, _LINE_START = 100, 200  # characters looked at: the patterns are quadratic in them


@dataclass(frozen=True)
class Cleaned:
    """Python source, the functions and classes at its top level (none if it does not parse), and
    notes.
    """

    source: str
    defined: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Fence:
    line: int
    mark: str
    language: str
    alone: bool  # nothing before it on its line

    def closes(self, opening: "_Fence") -> bool:
        return self.alone and not self.language and self.mark.startswith(opening.mark)


@dataclass(frozen=True)
class _Block:
    language: str
    text: str


def clean(text: str, entries: Collection[str]) -> Cleaned:
    """The source in a prediction; `entries` are the names that its entry point may have (empty: not
    known yet).

    Refused when there is nothing, no code, a NUL, text that is no text, or more than
    MAX_SOURCE_BYTES of source.
    """
    text = _normalised(text)
    if not text.strip():
        raise Refused(
            "the prediction is empty", "leave the line out, or send what the method wrote"
        )
    if "\0" in text:
        raise Refused(f"a NUL byte at character {text.index(chr(0))}", "send plain text")
    source, notes = _extracted(text, entries)
    if not _CODE.search(source):
        raise Refused(
            "no code in it", "send Python source, bare or in a Markdown fence outside of <think>"
        )
    _check_size(source)
    defined = defined_names(source)
    return Cleaned(source, defined or (), (*notes, *_remarks(defined, entries)))


def cut_tests(text: str) -> str:
    """The text above the first line that begins with 100 `#`; below it are an author's tests."""
    found = _SEPARATOR.search(text)
    return text[: found.start()] if found else text


@functools.lru_cache(maxsize=16)  # cleaning asks several times about the same text
def defined_names(source: str) -> tuple[str, ...] | None:
    """What a source defines at its top level: functions, classes, assigned and imported names.

    None if it does not parse, or is larger than a candidate may be.
    """
    if len(source) > MAX_SOURCE_BYTES:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # strangers' escape sequences are no matter of ours
            return tuple(_top_level(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _normalised(text: str) -> str:
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return _MARKS.sub("", text)


def _extracted(text: str, entries: Collection[str]) -> tuple[str, tuple[str, ...]]:
    bare = cut_tests(text)
    if defined_names(bare) is not None:
        return bare, ()
    answer = _without_thoughts(text)
    notes = ("thoughts were cut",) if answer != text else ()
    blocks = list(_blocks(answer))
    if blocks:
        source, more = _chosen(blocks, entries)
        return cut_tests(source), (*notes, *more)
    source = _without_prose(cut_tests(answer), entries)
    return source, (
        *notes,
        *(("prose around the code was cut",) if source != cut_tests(answer) else ()),
    )


def _without_thoughts(text: str) -> str:
    """The answer after the thoughts; a prompt that ended in <think> leaves only the closing mark in
    the answer.
    """
    text = _THOUGHTS.sub("", text)
    closing = list(_END_OF_THOUGHTS.finditer(text))
    return text[closing[-1].end() :] if closing else text


def _blocks(text: str) -> Iterator[_Block]:
    """The fenced blocks. One without an end goes to the end of the text; prose may stand before an
    opening fence.
    """
    lines = text.split("\n")
    fences = list(islice(_fences(lines), _MAX_FENCES))
    position = 0
    while position < len(fences):
        opening = fences[position]
        rest = range(position + 1, len(fences))
        closing = next((p for p in rest if fences[p].closes(opening)), len(fences))
        end = fences[closing].line if closing < len(fences) else len(lines)
        yield _Block(opening.language, "\n".join(lines[opening.line + 1 : end]) + "\n")
        position = closing + 1


def _fences(lines: list[str]) -> Iterator[_Fence]:
    for number, line in enumerate(lines):
        if "```" in line or "~~~" in line:
            match = _FENCE.search(line[-_LINE_END:])
            if match:
                alone = line.strip().startswith(match["fence"])
                yield _Fence(number, match["fence"], match["language"].lower(), alone)


def _chosen(blocks: list[_Block], entries: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """The last of the best blocks; with the blocks before it, if only they hold the kernel that it
    calls.
    """
    ranked = [(_rank(block, entries), index) for index, block in enumerate(blocks)]
    _, best = max(ranked)
    if len(blocks) == 1:
        return blocks[0].text, ("a Markdown fence was cut",)
    note = f"block {best + 1} of {len(blocks)} was taken"
    before = [b.text for b in blocks[:best] if b.language in _PYTHON and _KERNEL.search(b.text)]
    if before and not _KERNEL.search(blocks[best].text):
        return "\n".join([*before, blocks[best].text]), (
            f"{note}, with the kernels of those before it",
        )
    return blocks[best].text, (note,)


def _rank(block: _Block, entries: Collection[str]) -> tuple[bool, bool, bool, bool]:
    """Better is larger: the entry point is in it, it is called Python, has a kernel, and parses."""
    return (
        any(_defines(block.text, entry) for entry in entries),
        block.language in _PYTHON,
        bool(_KERNEL.search(block.text)),
        bool(defined_names(block.text)),
    )


def _defines(text: str, entry: str) -> bool:
    """Whether a source defines the name, told by its text alone: it may not parse."""
    name = re.escape(entry)
    return bool(re.search(rf"^(?:def|class) +{name}\b|^{name} *=", text, re.MULTILINE))


def _without_prose(text: str, entries: Collection[str]) -> str:
    """Code without fences: from its first line on, up to where sentences begin that no longer
    parse.
    """
    if len(text) > MAX_SOURCE_BYTES:
        return text  # refused for its size in the end
    lines = text.split("\n")
    start = next((i for i, line in enumerate(lines) if _CODE_LINE.match(line)), 0)
    source = "\n".join(lines[start:])
    if defined_names(source) is not None:
        return source
    end = next((i for i in range(start + 1, len(lines)) if _is_prose(lines, i)), len(lines))
    head = "\n".join(lines[start:end]) + "\n"
    if any(map(_CODE_LINE.match, lines[end:])) or defined_names(head) is None:
        return source  # there is code after the prose, or the code is broken anyway: no guess
    return head


def _is_prose(lines: list[str], index: int) -> bool:
    """Whether a sentence begins here, after a blank line."""
    return not lines[index - 1].strip() and bool(_SENTENCE.match(lines[index][:_LINE_START]))


def _check_size(source: str) -> None:
    try:
        size = len(source.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise Refused(f"a lone surrogate at character {error.start}", "send UTF-8 text") from error
    if size > MAX_SOURCE_BYTES:
        raise Refused(
            f"{size:,} bytes of source", f"send at most {MAX_SOURCE_BYTES:,} bytes a candidate"
        )


def _remarks(defined: tuple[str, ...] | None, entries: Collection[str]) -> Iterator[str]:
    if defined is None:
        yield "it does not parse as Python: the judge will call it a load-error"
    elif entries and not set(entries) & set(defined):
        names = ", ".join(sorted(entries))
        yield f"it defines none of {names}: the judge will call it a load-error"


def _top_level(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
