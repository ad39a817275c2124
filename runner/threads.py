"""A Celery worker that keeps several jobs in hand in one process: its threads share the judge.

Run as `python -m runner.threads` with the words that follow `celery`, and `Pool` as its pool.

Celery's own pool of threads has no time limit, can't give a job back while it runs, and its threads
keep the process alive. Here a job that exceeds its hard limit ends the process, after the site and
the broker were told; its other jobs go back to the broker unspent, as with SIGQUIT.
"""

import logging
import os
import queue
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from celery.concurrency.base import BasePool, apply_target
from celery.exceptions import TimeLimitExceeded
from celery.signals import task_failure
from celery.worker import state
from kombu.asynchronous import get_event_loop

from runner import judging

logger = logging.getLogger("kbx.worker")

LOOK_SECONDS = 0.5  # between two looks at who is late
DRAIN_SECONDS = 0.1  # between two looks whether all have ended
END_SECONDS = 10.0  # for Celery to give jobs back, before the process ends all the same


def is_ending() -> bool:
    """Was this worker told to end? Celery notices seconds later where it waits for a message."""
    words = state.should_stop, state.should_terminate  # exit statuses, 0 among them
    return any(word is not None and word is not False for word in words)


@dataclass(eq=False)
class Hand:
    """A job that a thread has or will have. `begun` is by the monotonic clock, in seconds."""

    run: Callable[[], None]
    limit: float | None
    on_timeout: Callable[..., None] | None
    begun: float | None = None

    def is_late(self, now: float) -> bool:
        return self.limit is not None and self.begun is not None and now > self.begun + self.limit


class Pool(BasePool):
    """As many threads as `-c` says, none of which keeps the process alive."""

    body_can_be_buffer = True
    signal_safe = False

    def on_start(self) -> None:
        self._given: queue.SimpleQueue[Hand] = queue.SimpleQueue()
        self._hands: set[Hand] = set()
        self._lock = threading.Lock()
        for at in range(self.limit):
            threading.Thread(target=self._serve, name=f"hand-{at}", daemon=True).start()
        threading.Thread(target=self._watch, name="watch", daemon=True).start()

    def on_apply(
        self,
        target: Callable[..., Any],
        args: Any = None,
        kwargs: Any = None,
        callback: Any = None,
        accept_callback: Any = None,
        timeout: float | None = None,
        timeout_callback: Callable[..., None] | None = None,
        **_: Any,
    ) -> None:
        def run() -> None:
            apply_target(target, args or (), kwargs or {}, callback, accept_callback)

        hand = Hand(run, timeout or self.options.get("timeout"), timeout_callback)
        with self._lock:
            self._hands.add(hand)
        self._given.put(hand)

    def _serve(self) -> None:
        while True:
            hand = self._given.get()
            try:
                if self.active and not is_ending():  # else it stays with the broker
                    hand.begun = time.monotonic()
                    hand.run()
            except BaseException:  # ours or Celery's: this thread goes on
                logger.exception("a job's thread failed")
            finally:
                with self._lock:
                    self._hands.discard(hand)

    def _watch(self) -> None:
        while True:
            time.sleep(LOOK_SECONDS)
            now = time.monotonic()
            with self._lock:
                late = [hand for hand in self._hands if hand.is_late(now)]
            if late:
                self._give_up(late)

    @staticmethod
    def _give_up(late: list[Hand]) -> None:
        """Tell the site and the broker of what hangs; the process ends and gives the rest back."""
        for hand in late:
            logger.error("a judgement did not end within %s s: this worker ends", hand.limit)
            if hand.on_timeout is not None:
                hand.on_timeout(False, hand.limit)
        os.kill(os.getpid(), signal.SIGQUIT)
        time.sleep(END_SECONDS)
        os._exit(1)

    def on_stop(self) -> None:
        """Wait for what is in hand; a second signal, in its handler, cuts that short.

        Takes no lock: the handler may have come while this thread held it.
        """
        hub = get_event_loop()
        while self._hands and not state.should_terminate:
            if hub is not None:
                hub.fire_timers()  # the broker's heartbeats among them
            time.sleep(DRAIN_SECONDS)

    def terminate_job(self, pid: int, signal: int | None = None) -> None:
        """Nothing to do for one: all threads end with the process."""


def on_task_failure(exception: Any, kwargs: Any, **_: Any) -> None:
    if isinstance(exception, TimeLimitExceeded):
        judging.give_up(kwargs, f"the judgement did not end within {exception.args[0]:g} s")


def main() -> None:
    """Celery's command, after which no thread keeps the process."""
    from celery.bin.celery import main as celery

    code: Any = 1
    try:
        task_failure.connect(on_task_failure)
        judging.seat.worker = os.getpid()
        code = celery()
    except SystemExit as ended:
        code = ended.code
    finally:
        if not judging.seat.taken:
            judging.end_judge()
        logging.shutdown()
        os._exit(code if isinstance(code, int) else int(bool(code)))


if __name__ == "__main__":
    from runner import threads  # the module that Celery knows, of which this is a second copy

    threads.main()
