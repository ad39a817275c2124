"""Uploads that mean harm, or that broke somebody's reader: each with what must come of it.

Used by the tests and by `benchmarks/hostile_uploads.py`, which counts and times them. Nothing here
is executed by anybody: `MARKS` are what would be left behind if it were.
"""

import io
import json
import stat
import struct
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass

MIB = 1024 * 1024
MARKS = ("/tmp/kbx-hostile-ran", "/tmp/kbx-hostile-written")
KERNEL = "import triton\n\n\n@triton.jit\ndef kernel(x):\n    pass\n\n\n"
GOOD = f"{KERNEL}def relu(input):\n    return kernel[(1,)](input)\n"
RUNS = f"import os\nos.system('touch {MARKS[0]}')\nopen({MARKS[1]!r}, 'w')\n"
BOMB = b"\0" * (8 * MIB)


@dataclass(frozen=True)
class Hostile:
    """`candidates`: how many are taken; None: as many as there are, the reader need only live."""

    kind: str
    name: str
    filename: str
    data: bytes
    candidates: int | None = 0


def packed(*files: tuple[str | zipfile.ZipInfo, bytes | str], method: int = 8) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", method) as archive:
        warnings.simplefilter("ignore")  # that a name stands twice is what some are about
        for name, content in files:
            archive.writestr(name, content)
    return buffer.getvalue()


def special(name: str, mode: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.create_system, entry.external_attr = 3, mode << 16
    return entry


def patched(
    data: bytes, signature: bytes, offset: int, value: bytes, *, last: bool = False
) -> bytes:
    """With bytes of a header replaced, `offset` from its signature on."""
    at = (data.rindex(signature) if last else data.index(signature)) + offset
    return data[:at] + value + data[at + len(value) :]


LOCAL, CENTRAL, END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"


def overlapping(count: int) -> bytes:
    """Entries that all quote one compressed block, as in Fifield's bomb, each larger than it."""
    one = packed(("relu.py", b"#" * (2 * MIB)))
    start, end = one.index(CENTRAL), one.index(END)
    central = one[start:end] * count
    tail = END + struct.pack("<4H2LH", 0, 0, count, count, len(central), start, 0)
    return one[:start] + central + tail


def damaged(count: int) -> bytes:
    """Entries that unpack to megabytes and only then turn out wrong."""
    one = packed(*((f"r{n}/relu.py", b"#" * (4 * MIB)) for n in range(count)))
    out, at = bytearray(one), 0
    while (at := one.find(CENTRAL, at)) >= 0:
        out[at + 16 : at + 20] = b"\1\2\3\4"  # the checksum
        out[at + 20 : at + 24] = struct.pack("<L", len(one) // 2)  # compressed: no ratio to see
        at += 4
    return bytes(out)


def archives() -> Iterator[tuple[str, bytes, int | None]]:
    for name in (
        "../relu.py", "../../../../etc/cron.d/relu.py", "/etc/relu.py", "..\\..\\relu.py",
        "C:\\relu.py", "c:/relu.py", "a/../../relu.py", "a/..", "\\\\host\\share\\relu.py",
        "//host/relu.py", "./../relu.py", "a/b/../../../relu.py",
    ):  # fmt: skip
        yield f"leads out: {name}", packed((name, RUNS)), 0
    kinds = {
        "link": stat.S_IFLNK, "fifo": stat.S_IFIFO, "device": stat.S_IFCHR,
        "block device": stat.S_IFBLK, "socket": stat.S_IFSOCK,
    }  # fmt: skip
    for word, kind in kinds.items():
        yield f"a {word}", packed((special("relu.py", kind | 0o777), "/etc/passwd")), 0
    link = special("up", stat.S_IFLNK | 0o777)
    yield (
        "a link to a folder, then a file below it",
        packed((link, "../.."), ("up/relu.py", RUNS)),
        1,
    )
    yield "a link by the name of what comes next", packed((link, "/tmp"), ("up", RUNS)), 0
    yield "a bomb of zeros", packed(("relu.py", BOMB)), 0
    yield (
        "a bomb that hides its size",
        patched(packed(("relu.py", BOMB)), CENTRAL, 24, struct.pack("<L", 1000)),
        0,
    )
    yield "many small bombs", packed(*((f"{n}/relu.py", b"#" * 900_000) for n in range(200))), 0
    yield "overlapping entries", overlapping(300), 0
    yield "megabytes that turn out damaged", damaged(40), 0
    yield "an archive in the archive", packed(("inner.zip", packed(("relu.py", GOOD)))), 0
    yield "an archive by another ending", packed(("inner.py", packed(("relu.py", GOOD)))), 0
    for ending in ("tar", "tar.gz", "7z", "rar", "zst", "bz2", "xz"):
        yield f"a {ending} in the archive", packed((f"inner.{ending}", b"\x1f\x8b\x08" * 9)), 0
    yield (
        "encrypted",
        patched(patched(packed(("relu.py", GOOD)), LOCAL, 6, b"\1\0"), CENTRAL, 8, b"\1\0"),
        0,
    )
    yield "strongly encrypted", patched(packed(("relu.py", GOOD)), CENTRAL, 8, b"\x41\0"), 0
    yield "the same name twice", packed(("relu.py", GOOD), ("relu.py", RUNS + GOOD)), 1
    yield "names that differ in case", packed(("relu.py", GOOD), ("RELU.PY", RUNS + GOOD)), 1
    yield "a wrong checksum", patched(packed(("relu.py", GOOD)), CENTRAL, 16, b"abcd"), 0
    yield "another name inside", patched(packed(("relu.py", GOOD)), LOCAL, 30, b"gelu"), 0
    yield "many entries", packed(*((f"{n}.py", b"") for n in range(7000))), 0
    yield "many folders", packed(*((f"{n}/", b"") for n in range(7000))), 0
    yield "a count that lies", patched(packed(("relu.py", GOOD)), END, 8, b"\xff\xff\xff\xff"), None
    yield (
        "a directory that lies outside",
        patched(packed(("relu.py", GOOD)), END, 16, b"\xff\xff\xff\x7f"),
        0,
    )
    yield (
        "a header that lies outside",
        patched(packed(("relu.py", GOOD)), CENTRAL, 42, b"\xff\xff\xff\x7f"),
        0,
    )
    yield (
        "a compressed size of 4 GiB",
        patched(packed(("relu.py", GOOD)), CENTRAL, 20, b"\xfe\xff\xff\xff"),
        None,
    )
    yield "a size of 4 GiB", patched(packed(("relu.py", GOOD)), CENTRAL, 24, b"\xfe\xff\xff\xff"), 0
    yield (
        "a name that is no UTF-8",
        patched(packed(("relu.py", GOOD)), CENTRAL, 46, b"\xff\xfe\xfd\xfc"),
        0,
    )
    yield (
        "a name that says UTF-8 and is none",
        patched(
            patched(packed(("relu.py", GOOD)), CENTRAL, 46, b"\xff\xfe\xfd\xfc"),
            CENTRAL,
            8,
            b"\0\x08",
        ),
        0,
    )
    yield "a name with NUL", patched(packed(("relu.pyx", GOOD)), CENTRAL, 50, b"\0"), 0
    yield "a name of 60,000 characters", packed(("a" * 60_000 + ".py", GOOD)), 0
    yield "30,000 folders", packed(*((f"{n}/" + "a/" * 30_000 + "x.py", GOOD) for n in range(9))), 0
    yield "an empty name", patched(packed(("x", GOOD)), CENTRAL, 46, b"/"), 0
    for word, method in (("bzip2", 12), ("lzma", 14)):
        yield f"packed with {word}", packed(("relu.py", GOOD), method=method), 0
    yield "an unknown method", patched(packed(("relu.py", GOOD)), CENTRAL, 10, b"\x63\0"), 0
    yield "cut short", packed(("relu.py", GOOD))[:-30], 0
    yield "only an end", END + b"\0" * 18, 0
    yield "nothing", b"", 0
    yield "another kind of file", b"%PDF-1.7\n" + GOOD.encode(), 0
    yield "something before it", b"#!/bin/sh\nexit\n" + packed(("relu.py", GOOD)), 1
    yield "a comment of 64 KiB", packed(("relu.py", GOOD))[:-2] + b"\xff\xff" + b"c" * 65_535, 1
    yield (
        "a comment with an end in it",
        (packed(("relu.py", GOOD))[:-2] + struct.pack("<H", 22) + END + b"\0" * 18),
        None,
    )
    yield "several disks", patched(packed(("relu.py", GOOD)), END, 4, b"\5\0\5\0"), None
    yield (
        "an extra field that lies",
        patched(packed(("relu.py", GOOD)), CENTRAL, 30, b"\xff\0"),
        None,
    )
    for hidden in (".git/hooks/relu.py", "__MACOSX/relu.py", "__pycache__/relu.py", "__init__.py"):
        yield f"beside the matter: {hidden}", packed((hidden, RUNS)), 0
    for ending in ("pyc", "pth", "so", "pkl", "pt", "ipynb", "html", "exe", "py.exe", ""):
        yield f"not Python: .{ending}", packed((f"relu.{ending}", RUNS)), 0
    yield "a pickle", packed(("relu.py", b"cos\nsystem\n(S'touch /tmp/kbx-hostile-ran'\ntR.")), 0


def line(**fields: object) -> bytes:
    return json.dumps({"file": "relu.py", "predict": GOOD, **fields}).encode() + b"\n"


def lines() -> Iterator[tuple[str, bytes, int | None]]:
    good = line()
    yield "a line of 3 MiB", line(instruction="x" * 3 * MIB), 0
    yield "a line of 20 MiB", line(instruction="x" * 20 * MIB), 0
    yield "no line end in 4 MiB", b"{" * (4 * MIB), 0
    yield "lists 100,000 deep", b'{"file": "relu.py", "predict": ' + b"[" * 100_000 + b"\n", 0
    yield (
        "closed lists 2,000 deep",
        b'{"file": "relu.py", "predict": "", "x": ' + (b"[" * 2000 + b"]" * 2000 + b"}\n"),
        0,
    )
    yield "objects 100,000 deep", b'{"a":' * 100_000 + b"\n", 0
    yield "predict twice", b'{"file": "relu.py", "predict": "x", "predict": "def relu(): 0"}\n', 0
    yield "file twice", b'{"file": "abs.py", "file": "relu.py", "predict": "def relu(): 0"}\n', 0
    yield "file and task that differ", line(task="abs"), 1
    for word in ("NaN", "Infinity", "-Infinity", "1e999", "-0"):
        yield (
            f"round is {word}",
            good.replace(b"}\n", f', "round": {word}}}\n'.encode()),
            (1 if word == "-0" else 0),
        )
    yield "round of 5,000 digits", good.replace(b"}\n", b', "round": ' + b"9" * 5000 + b"}\n"), 0
    yield "a number of 5,000 digits", good.replace(b"}\n", b', "x": ' + b"9" * 5000 + b"}\n"), 0
    yield (
        "a number of a million digits",
        good.replace(b"}\n", b', "x": 0.' + b"9" * MIB + b"}\n"),
        1,
    )
    for value in (-1, 1000, 1.5, True, None, "1", "\u0661", "0x1", " 1", [], {}, 10**30):
        taken = value is None or value == "1"
        yield f"round is {value!r}", line(round=value), int(taken)
    for key in ("file", "predict"):
        for value in (1, None, [], {"a": 1}, True):
            yield f"{key} is {value!r}", line(**{key: value}), int(key == "file" and value is None)
    yield "a lone surrogate in the source", line(predict=GOOD + "# \ud800\n"), 0
    yield "a lone surrogate in the name", line(file="relu\udcff.py"), 0
    yield "a surrogate pair", line(predict=GOOD + "# \U0001f600\n"), 1
    yield "NUL in the source", line(predict="\0" + GOOD), 0
    yield "NUL in the name", line(file="relu\0.py"), 0
    yield "a raw NUL", good.replace(b"relu.py", b"re\0lu.py"), 0
    yield "raw control characters", good.replace(b"relu.py", b"re\x1blu.py"), 0
    yield "a mark of byte order", b"\xef\xbb\xbf" + good, 1
    yield "a mark of byte order on every line", (b"\xef\xbb\xbf" + good) * 2, 1
    yield "UTF-16", good.decode().encode("utf-16"), 0
    yield "UTF-16 without a mark", good.decode().encode("utf-16-le"), 0
    yield "UTF-32", good.decode().encode("utf-32"), 0
    yield "Latin-1", b'{"file": "relu.py", "predict": "# \xe9\\n"}\n', 0
    yield "overlong UTF-8", good.replace(b"relu.py", b"\xc1\xb2elu.py"), 0
    yield "UTF-7", b"+AHsAIg-file+ACI-: 1}\n", 0
    yield "CRLF", good.replace(b"\n", b"\r\n") * 2, 1
    yield "CR alone", good.replace(b"\n", b"\r") * 2, 0
    yield "Unicode's line ends in a text", line(predict=GOOD + "# a\u2028b\u2029c\x85d\n"), 1
    yield (
        "Unicode's line ends, raw",
        (
            json.dumps(
                {"file": "relu.py", "predict": GOOD + "# \u2028\n"}, ensure_ascii=False
            ).encode()
        ),
        1,
    )
    yield "no line end at the end", good.rstrip(), 1
    yield "cut in the middle", good[: len(good) // 2], 0
    yield "two objects in a line", good.strip() * 2, 0
    yield "a list of objects", b"[" + good.strip() + b"]\n", 0
    yield "an object over several lines", json.dumps(json.loads(good), indent=1).encode(), 0
    yield "a comment", b"// hello\n" + good, 1
    yield "a trailing comma", good.replace(b"}\n", b",}\n"), 0
    yield "quotes of the wrong kind", b"{'file': 'relu.py', 'predict': 'x'}\n", 0
    yield "a pickle", b"cos\nsystem\n(S'touch /tmp/kbx-hostile-ran'\ntR.", 0
    yield "YAML", b"!!python/object/apply:os.system ['touch /tmp/kbx-hostile-ran']\n", 0
    yield "25,000 blank lines", b"\n" * 25_000 + good, 0
    yield "25,000 empty objects", b"{}\n" * 25_000, 0
    yield (
        "2,500 candidates",
        b"".join(line(round=n % 999, file="relu.py") for n in range(2500)),
        None,
    )
    yield (
        "unknown names without end",
        b"".join(line(file=f"{'relu' * 50}{n}") for n in range(900)),
        0,
    )
    yield "__proto__", line(__proto__={"file": "abs"}, constructor=1), 1
    yield "a name that leads out", line(file="../../etc/relu.py"), 1  # only its last part counts
    yield "a name that is an address", line(file="http://169.254.169.254/relu.py"), 1
    yield "prediction is an address", line(predict="http://169.254.169.254/latest/meta-data"), 0
    yield "prediction is a path", line(predict="/etc/passwd"), 0
    yield "includes", line(predict="{% include '/etc/passwd' %}"), 0


def sources() -> Iterator[tuple[str, bytes, int | None]]:
    define = "def relu(input):\n    return input\n"
    deep = 20_000
    for name, text in {
        "runs at import": RUNS,
        "runs in a decorator": f"@__import__('os').system('touch {MARKS[0]}')\n",
        "runs in an annotation": f"x: __import__('os').system('touch {MARKS[0]}')\n",
        "runs in a default": f"def f(x=__import__('os').system('touch {MARKS[0]}')): 0\n",
        "a coding cookie": "# -*- coding: utf-7 -*-\n# +AGkAbQBwAG8AcgB0-\n",
        "an unknown coding": "# -*- coding: kbx_nothing -*-\n",
        "brackets without end": "x = " + "(" * deep + "1" + ")" * deep + "\n",
        "minus without end": "x = " + "-" * deep + "1\n",
        "sums without end": "x = 1" + "+1" * deep + "\n",
        "attributes without end": "x = a" + ".a" * deep + "\n",
        "calls without end": "x = a" + "()" * deep + "\n",
        "indices without end": "x = a" + "[0]" * deep + "\n",
        "lambdas without end": "x = " + "lambda:" * deep + "1\n",
        "conditions without end": "x = " + "1 if 1 else " * deep + "1\n",
        "nots without end": "x = " + "not " * deep + "1\n",
        "blocks in blocks": "".join(" " * n + "if 1:\n" for n in range(99)),
        "branches without end": "if 1:\n pass\n" + "elif 1:\n pass\n" * 9000,
        "strings in strings": "x = " + "f'{" * deep + "1" + "}'" * deep + "\n",
        "a power that is huge": "x = 9**9**9**9\n",
        "a number of 200,000 digits": "x = " + "9" * 200_000 + "\n",
        "warnings without end": "x = '\\d\\e\\f'\n" * 5000,
        "fences without end": "```\n" * 60_000,
        "thoughts without end": "<think>" * 30_000,
        "separators without end": ("#" * 100 + "\n") * 2000,
        "spaces without end": " " * 250_000 + "\n",
        "tabs and spaces": "if 1:\n\tx = 1\n        y = 2\n",
        "a form feed": "\f\f\fx = 1\n",
        "writing that turns round": "# \u202e\u2066 } if is_admin \u2069\n",
        "letters of another script": "d\u0435f = 1\n",
        "nothing seen": "\u200b\u200c\u200d\u2060\ufeff\n",
        "a mark that stands in the way": "\ufeff\ufeffx = 1\n",
        "markup": "'</pre></script><script>alert(1)</script><!--'\n",
    }.items():
        yield name, f"{text}\n{define}".encode("utf-8", "surrogatepass"), None
    yield "UTF-16", GOOD.encode("utf-16"), 0
    yield "NUL", GOOD.encode() + b"\0", 0
    yield "bytes of every kind", bytes(range(256)) * 100, 0
    yield "300 KiB", GOOD.encode() + b"# " + b"x" * 300_000, 0
    yield "2 MiB", GOOD.encode() + b"\n" * (2 * MIB), 0


def results() -> Iterator[tuple[str, bytes, int | None]]:
    ok = {"call_ok": True, "exe_ok": True, "perf_ok": True, "speedup": 2.0}
    for name, document in {
        "a speedup of 1e308": {"relu": ok | {"speedup": 1e308}},
        "a speedup of 0": {"relu": ok | {"speedup": 0}},
        "a speedup below 0": {"relu": ok | {"speedup": -1}},
        "a speedup in words": {"relu": ok | {"speedup": "2x"}},
        "a speedup that is true": {"relu": ok | {"speedup": True}},
        "no truth value": {"relu": ok | {"call_ok": "yes"}},
        "an unknown task": {"nothing": ok},
        "a list": [ok],
        "a number": 1,
        "text": "relu",
        "code that runs": {"relu": ok | {"code": RUNS}},
        "code of 3 MiB": {"relu": ok | {"code": "#" * 3 * MIB}},
        "stderr of 9 MiB": {"relu": ok | {"stderr": "x\n" * 4 * MIB}},
        "markup in stderr": {"relu": ok | {"stderr": "<script>alert(1)</script>"}},
        "a name of 200,000 characters": {"r" * 200_000: ok},
        "a name with NUL": {"relu\0": ok},
        "3,000 records": {f"relu{n}": ok for n in range(3000)},
    }.items():
        yield name, json.dumps(document).encode(), 0
    yield "a speedup that is NaN", b'{"relu": {"call_ok": true, "exe_ok": true, "speedup": NaN}}', 0
    yield (
        "a speedup of 9,999 digits",
        b'{"relu": {"call_ok": true, "speedup": ' + b"9" * 9999 + b"}}",
        0,
    )
    yield "a task twice", b'{"relu": {"call_ok": true}, "relu": {"call_ok": false}}', 0
    yield "objects without end", b'{"relu":' * 100_000, 0


def names() -> Iterator[tuple[str, str]]:
    yield from {
        "none": "", "only an ending": ".py", "dots": "..", "leads out": "../../relu.py",
        "a drive": "C:\\relu.py", "a device": "CON.py", "a stream": "relu.py:evil",
        "NUL": "relu.py\0.zip", "a line end": "relu\r\nX: 1.py", "turns round": "ulre\u202eyp.exe",
        "a surrogate": "relu\ud800.py", "long": "r" * 5000 + ".py", "two endings": "relu.py.zip",
        "an ending in capitals": "RELU.PY", "formula": "=cmd|' /C calc'!A0.py",
        "markup": "<img src=x onerror=alert(1)>.py", "quotes": "a\"b'c.py", "a tar": "relu.tar.gz",
        "spaces": "   .py", "percent": "%2e%2e%2frelu.py", "a template": "{{7*7}}.py",
    }.items()  # fmt: skip


def everything() -> Iterator[Hostile]:
    """All of them, under file names by which the reader that they are about is met."""
    for name, data, count in archives():
        yield Hostile("archive", name, "upload.zip", data, count)
    for name, data, count in lines():
        yield Hostile("lines", name, "predictions.jsonl", data, count)
    for name, data, count in sources():
        yield Hostile("source", name, "relu.py", data, count)
    for name, data, count in results():
        yield Hostile("results", name, "metrics.json", data, count)
    for name, filename in names():
        yield Hostile("name", name, filename, GOOD.encode(), None)
