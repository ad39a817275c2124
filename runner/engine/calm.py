"""In the candidate's process: nothing of the candidate's runs between the end of its call and the
writing of its answer.

What it left for later would run unobserved, and finish there what its kernels did not: a handler of
a signal, a callback of the garbage collector, what hangs on a name that our own code looks up among
Python's builtins. Taken back before anything of ours runs; what can't be needed by a kernel is
told.
"""

import builtins
import gc
import signal
import sys
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from runner.engine.listening import BLIND, CODE, SIGNALS, TRACING, is_strangers

_builtins, _callbacks = vars(builtins), gc.callbacks
_disable, _enable = gc.disable, gc.enable
_profile, _profiler_now = sys.setprofile, sys.getprofile
_handler_of, _handle, _callable = signal.getsignal, signal.signal, callable
_IGNORE, _NUMBERS = signal.SIG_IGN, tuple(signal.valid_signals())
MOVING = frozenset({"_"})  # the interactive interpreter's, and translations'


class Alone:
    """Around code of ours and of torch's in which none of the candidate's has a place: tells when
    it runs there all the same, called by whatever was exchanged for something of its own.
    """

    def __init__(self, tell: Callable[[str, str], None], place: str) -> None:
        self._tell = tell
        self._place = place
        self._before: Any = None

    def __enter__(self) -> None:
        self._before = _profiler_now()
        _profile(self._see)

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        _profile(self._before)

    def _see(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and is_strangers(frame):
            self._tell(BLIND, f"its `{frame.f_code.co_name}` ran inside of {self._place}")


class Calm:
    """What was there before the candidate, and the way back to it."""

    def __init__(self, tell: Callable[[str, str], None]) -> None:
        self._tell = tell
        self._alone: Alone | None = None
        self._names = {name: value for name, value in _builtins.items() if name not in MOVING}
        self._own_callbacks = list(_callbacks)
        self._own_handlers = {number: _handler_of(number) for number in _NUMBERS}

    def begin(self) -> None:
        """Hold off what would run by itself. To be called first of all after a call."""
        self._alone = Alone(self._tell, "the judge, after the call")
        self._alone.__enter__()
        _disable()
        for number, own in self._own_handlers.items():
            found = _handler_of(number)
            if found is not own and _callable(found):
                _handle(number, _IGNORE)
                self._tell(SIGNALS, "signal.signal")
        if _callbacks != self._own_callbacks:
            _callbacks[:] = self._own_callbacks
            self._tell(TRACING, "gc.callbacks")
        for name, value in self._names.items():
            if _builtins.get(name) is not value:
                _builtins[name] = value
                self._tell(CODE, f"builtins.{name}")

    def end(self) -> None:
        """The answer is written: what runs from here on is too late."""
        _enable()
        if self._alone:
            self._alone.__exit__()
            self._alone = None

    def __enter__(self) -> None:
        """Around a call and the writing of its answer; `begin` is for the end of the call."""

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.end()
