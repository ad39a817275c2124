"""Messages between the judge's processes: length-limited JSON over a stream socket, files by
descriptor.

One end may be hostile. So: nothing is unpickled, a length is checked before a byte of the body is
read, NaN and other non-JSON is refused, and whoever waits has a deadline.
"""

import array
import contextlib
import json
import os
import re
import select
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any

HEADER = struct.Struct("!I")
MAX_MESSAGE = 1 << 20  # from a candidate; a manifest of 64 tensors and a traceback take a few KiB
MAX_DESCRIPTORS = 8
SEED = struct.Struct(
    "!QB"
)  # timed blocks: the next seed, and whether to keep the outputs of the call before
# Microseconds before a timed call; the upper end hides the queueing of some hundred launches. A
# board takes about a thousand in advance, and a call that waits for it can't be hidden at all.
LEAST_SPIN, MOST_SPIN = 40.0, 10_000.0
NEXT, FAILED = (
    b"n",
    b"e",
)  # what the timed side asks: the next seed, please; or a message about a failure follows
TOLD = "told"  # messages with this key come unasked, before an answer: see `listening`
MAX_TOLD = 1000
# In a request that may overlap with others' timing: its answer may be preceded by pairs of these
# messages, each pair answered by the byte GO, when the board is there again.
OVERLAP, COMPILING, COMPILED, GO = "overlap", "compiling", "compiled", b"g"
MAX_COMPILES = 500  # pairs a request
MAX_DEPTH = 64
MAX_NUMBER = 1 << 63
UNSHOWABLE = re.compile("[\0\ud800-\udfff]")
MOVING = re.compile("[\x01-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_to_text = json.JSONEncoder(
    allow_nan=False, separators=(",", ":")
).encode  # before anybody can patch json.dumps


class Closed(Exception):  # noqa: N818 - an event
    """The other end is gone."""


class Overdue(Exception):  # noqa: N818 - an event
    """No complete message within the limit."""


class Malformed(Exception):  # noqa: N818 - an event
    """What came isn't a message: too long, not JSON, or not an object."""


def encode(message: dict) -> bytes:
    """A message as bytes, header included; raises ValueError for NaN and infinities."""
    body = _to_text(message).encode()
    return HEADER.pack(len(body)) + body


def decode(body: bytes) -> dict:
    """The object in a message's body; raises Malformed."""
    try:
        message = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not JSON: {error}") from error
    if not isinstance(message, dict):
        raise Malformed("not a JSON object")
    return message


def check_plain(message: dict) -> None:
    """Raise Malformed unless a stranger's message can be sent on, stored and shown: not deeper than
    `MAX_DEPTH`, finite numbers of 64 bits, text without NUL and lone surrogates.
    """
    waiting: list[tuple[object, int]] = [(message, 0)]
    while waiting:
        value, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise Malformed(f"nested deeper than {MAX_DEPTH}")
        if isinstance(value, dict):
            waiting.extend((part, depth + 1) for pair in value.items() for part in pair)
        elif isinstance(value, list):
            waiting.extend((part, depth + 1) for part in value)
        else:
            _check_leaf(value)


def showable(value: Any) -> Any:
    """A stranger's message without what moves a terminal's cursor or turns its text around; line
    ends and tabs stay. Not deeper than `check_plain` allows.
    """
    if isinstance(value, str):
        return MOVING.sub("", value)
    if isinstance(value, list):
        return [showable(part) for part in value]
    if isinstance(value, dict):
        return {showable(name): showable(part) for name, part in value.items()}
    return value


def _check_leaf(value: object) -> None:
    if isinstance(value, str) and UNSHOWABLE.search(value):
        raise Malformed("text with NUL or lone surrogates")
    if isinstance(value, int | float) and not abs(value) < MAX_NUMBER:
        raise Malformed("a number beyond 64 bits")


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def send(sock: socket.socket, message: dict, descriptors: Sequence[int] = ()) -> None:
    """Send one message and open files with it; raises Closed."""
    try:
        data = encode(message)
        if descriptors:
            sent = socket.send_fds(sock, [data[: HEADER.size]], list(descriptors))
            data = data[sent:]
        sock.sendall(data)
    except OSError as error:
        raise Closed(str(error)) from error


def receive(sock: socket.socket, limit: int = MAX_MESSAGE) -> tuple[dict, list[int]]:
    """Wait for one message, without a deadline: for processes that serve. Raises Closed or
    Malformed.
    """
    try:
        header, descriptors = _receive_header(sock)
        (length,) = HEADER.unpack(header)
        if length > limit:
            raise Malformed(f"message of {length} bytes, the limit is {limit}")
        return decode(_receive_exactly(sock, length)), descriptors
    except OSError as error:
        raise Closed(str(error)) from error


def _receive_header(sock: socket.socket) -> tuple[bytes, list[int]]:
    size = array.array("i").itemsize
    data, ancillary, _, _ = sock.recvmsg(HEADER.size, socket.CMSG_SPACE(MAX_DESCRIPTORS * size))
    if not data:
        raise Closed("end of stream")
    descriptors = array.array("i")
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(content[: len(content) - len(content) % size])
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return data + _receive_exactly(sock, HEADER.size - len(data)), list(descriptors)


def _receive_exactly(sock: socket.socket, length: int) -> bytes:
    parts = []
    while length:
        part = sock.recv(min(length, 1 << 16))
        if not part:
            raise Closed("end of stream")
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


class Channel:
    """The supervisor's end: requests with a deadline, and beside them the other side's bounded log.

    `log` is the read end of a pipe that holds the process's stdout and stderr; only its last
    `log_limit` bytes are kept. A `stranger`'s messages are checked, and come only when asked for,
    except for what it tells: that is kept in `told`.
    """

    def __init__(
        self,
        sock: socket.socket,
        log: int | None = None,
        log_limit: int = 8192,
        stranger: bool = False,
    ) -> None:
        self.sock = sock
        self.told: list[tuple[str, str]] = []
        self._stranger = stranger
        self._log = log
        self._log_limit = log_limit
        self._tail = b""
        self._buffer = b""
        sock.setblocking(False)
        if log is not None:
            os.set_blocking(log, False)

    def ask(
        self,
        message: dict,
        seconds: float,
        descriptors: Sequence[int] = (),
        limit: int = MAX_MESSAGE,
    ) -> dict:
        """Send a request and wait for its answer; raises Overdue, Closed or Malformed."""
        deadline = time.monotonic() + seconds
        self.post(message, descriptors)
        return self.wait(deadline, limit)

    def post(self, message: dict, descriptors: Sequence[int] = ()) -> None:
        """Send a message; requests are far smaller than a socket's buffer, so this never blocks for
        long. Malformed when a stranger has spoken before it is asked.
        """
        if self._stranger:
            self._refuse_early()
        self.sock.setblocking(True)
        try:
            send(self.sock, message, descriptors)
        finally:
            self.sock.setblocking(False)

    def _refuse_early(self) -> None:
        """What lies in the channel before a request can't be its answer."""
        self._read_socket()
        while (message := self._next_message(MAX_MESSAGE)) is not None:
            if not self._is_told(message):
                raise Malformed("an answer that nobody asked for")
        if self._buffer[:1] == NEXT:
            raise Malformed("an answer that nobody asked for")

    def wait(self, deadline: float, limit: int = MAX_MESSAGE) -> dict:
        """The next message, by time.monotonic() `deadline`; raises Overdue, Closed or Malformed."""
        while True:
            message = self._next_message(limit)
            if message is None:
                self._fill(deadline)
            elif not (self._stranger and self._is_told(message)):
                return message

    def next_byte(self, deadline: float) -> bytes:
        """Timed blocks: the one byte with which the other side asks for a seed, or says that it
        failed.
        """
        while True:
            if not self._buffer:
                self._fill(deadline)
            elif self._stranger and self._buffer[0] == 0:  # a message's length: something is told
                self._hear(deadline)
            else:
                byte, self._buffer = self._buffer[:1], self._buffer[1:]
                return byte

    def _hear(self, deadline: float) -> None:
        message = self._next_message(MAX_MESSAGE)
        if message is None:
            self._fill(deadline)
        elif not self._is_told(message):
            raise Malformed("an answer in the middle of a block")

    def _is_told(self, message: dict) -> bool:
        """Keep what a message tells; False when it tells nothing."""
        if TOLD not in message:
            return False
        if len(self.told) < MAX_TOLD:
            self.told.append((str(message[TOLD])[:200], str(message.get("about"))[:200]))
        return True

    def _next_message(self, limit: int) -> dict | None:
        body = self._complete_message(limit)
        if body is None:
            return None
        message = decode(body)
        if not self._stranger:
            return message
        check_plain(message)
        shown: dict = showable(message)
        return shown

    def send_bytes(self, data: bytes) -> None:
        """The few raw bytes that answer it."""
        try:
            self.sock.send(data)
        except BlockingIOError:
            raise Malformed("it does not read what it asked for") from None
        except OSError as error:
            raise Closed(str(error)) from error

    def _complete_message(self, limit: int) -> bytes | None:
        if len(self._buffer) < HEADER.size:
            return None
        (length,) = HEADER.unpack_from(self._buffer)
        if length > limit:
            raise Malformed(f"message of {length} bytes, the limit is {limit}")
        end = HEADER.size + length
        if len(self._buffer) < end:
            return None
        body, self._buffer = self._buffer[HEADER.size : end], self._buffer[end:]
        return body

    def _fill(self, deadline: float) -> None:
        waiting = deadline - time.monotonic()
        sources: list[int] = [self.sock.fileno()] + ([] if self._log is None else [self._log])
        ready = select.select(sources, [], [], max(0.0, waiting))[0] if waiting > 0 else []
        if not ready:
            raise Overdue
        if self._log in ready:
            self._read_log()
        if self.sock.fileno() in ready:
            self._read_socket()

    def _read_socket(self) -> None:
        try:
            part = self.sock.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError as error:
            raise Closed(str(error)) from error
        if not part:
            raise Closed("end of stream")
        self._buffer += part

    def _read_log(self) -> bool:
        assert self._log is not None
        try:
            part = os.read(self._log, 1 << 16)
        except BlockingIOError:
            return False
        if not part:
            os.close(self._log)
            self._log = None
            return False
        self._tail = (self._tail + part)[-self._log_limit :]
        return True

    def log_tail(self) -> str:
        """What the other side printed last, at most `log_limit` bytes, as printable text."""
        for _ in range(64):  # a flood must not hold us: 4 MiB is more than a pipe keeps
            if self._log is None or not self._read_log():
                break
        text = self._tail.decode("utf-8", "replace")
        return "".join(c for c in text if c.isprintable() or c in "\n\t")

    def close(self) -> None:
        """Close both ends that this side holds."""
        with contextlib.suppress(OSError):
            self.sock.close()
        if self._log is not None:
            with contextlib.suppress(OSError):
                os.close(self._log)
            self._log = None
