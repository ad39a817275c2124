"""A candidate's side that is played by a thread over a real socket, and the trial it belongs to."""

import socket
import threading
from collections.abc import Callable
from itertools import count

from runner.engine import INTERPRETER, Candidate, Options, protocol, timing
from runner.engine.clocks import Clocks
from runner.engine.protocol import NEXT, SEED, Channel
from runner.engine.report import CaseResult, Report
from runner.engine.trial import Contract, Trial
from runner.engine.turns import nobody_else

SAMPLES = 4
Peer = Callable[[socket.socket], None]


class Other:
    """The timed side, played in a thread: what it was asked for lies in `heard`."""

    def __init__(self) -> None:
        ours, self.sock = socket.socketpair()
        self.channel = Channel(ours, stranger=True)
        self.heard: list[tuple[int, int]] = []
        self._thread: threading.Thread | None = None

    def play(self, peer: Peer) -> None:
        self._thread = threading.Thread(target=peer, args=(self.sock,))
        self._thread.start()

    def next_seed(self) -> None:
        self.sock.sendall(NEXT)
        self.heard.append(SEED.unpack(self.sock.recv(SEED.size, socket.MSG_WAITALL)))

    def block(self, sock: socket.socket) -> None:
        message, _ = protocol.receive(sock)
        for _ in range(message["samples"] + 1):
            self.next_seed()
        sock.sendall(NEXT)
        times = [1.0] * message["samples"]
        protocol.send(sock, {"ok": True, "times": times, "queued": times})

    def exchange(self, keep: int) -> timing.Samples:
        seeds = count(100)
        message = {"op": "block", "samples": SAMPLES}
        deadline = timing.time.monotonic() + 10
        return timing.exchange(self.channel, message, lambda: next(seeds), keep, deadline)

    def close(self) -> None:
        self.channel.close()
        self.sock.close()
        if self._thread:
            self._thread.join(10)


def case(name: str) -> dict:
    facts = {"kind": "timed", "shape": "", "dtype": "float32", "family": "normal"}
    return {"case": name, "flops": None, "bytes": None, **facts}


def trial_of(cases: list[dict], milliseconds: float) -> Trial:
    contract = Contract("relu", "Activation", "0" * 64, (), (), 1, tuple(cases))
    rows = [CaseResult(**one, candidate_ms=milliseconds) for one in cases]
    report = Report("relu", "Activation", 0, "", "", "h200", cases=rows)
    return Trial(
        candidate=Candidate("relu", ""),
        contract=contract,
        device=INTERPRETER,
        options=Options(),
        referee=None,  # type: ignore[arg-type]  # nothing is asked of it here
        report=report,
        progress=lambda *_: None,
        board=lambda: None,  # type: ignore[arg-type, return-value]
        turn=nobody_else,
        clocks=Clocks(INTERPRETER),
    )
