"""A compiling worker's side: build what the message brings, tell the site. No Django, no database,
no board.

Its process is as nice as can be: a host that also judges on the CPU goes on judging.
"""

import hashlib
import logging
import os
from collections.abc import Mapping
from typing import Any

from celery.signals import worker_process_shutdown

from benchmark import vocabulary
from kbx_site import env
from runner.judging import publish

logger = logging.getLogger("kbx.compiling")

NICENESS = 19  # the most: any other process of the host goes first


class Bench:
    """This process's compiler, started when the first source comes."""

    compiler: Any = None

    def sit(self) -> Any:
        from runner.engine.compiling import Compiler

        if self.compiler is None:
            os.nice(NICENESS)
            trusting = env.flag("KBX_TRUST_CANDIDATES", False)
            self.compiler = Compiler(trusting).__enter__()
        return self.compiler

    def leave(self) -> None:
        """End the compiler; the next source starts another."""
        compiler, self.compiler = self.compiler, None
        if compiler is not None:
            compiler.close()


bench = Bench()


def compile_source(message: Mapping[str, Any]) -> None:
    """Compile one source and report. What goes wrong on our side is told as a failure."""
    identity = {name: message[name] for name in ("source_sha256", "attempt")}
    publish("record_build_started", identity)
    try:
        report = _report(message)
    except Exception as error:
        logger.exception("build of %s failed", identity["source_sha256"][:12])
        bench.leave()
        reason = f"{type(error).__name__}: {error}"
        publish("record_build_failure", identity | {"reason": reason[:2000]})
        return
    publish("record_builds", {"report": report, "attempt": identity["attempt"]})


def _report(message: Mapping[str, Any]) -> dict[str, Any]:
    from runner.engine import Candidate

    text = message["source"]
    if len(text.encode()) > vocabulary.MAX_SOURCE_BYTES:
        raise ValueError(f"the source is larger than {vocabulary.MAX_SOURCE_BYTES} bytes")
    if hashlib.sha256(text.encode()).hexdigest() != message["source_sha256"]:
        raise ValueError("the source is not the one that the message's SHA-256 names")
    compiler = bench.sit()
    case, builds = compiler.compile(Candidate(message["task"], text), message["aliases"])
    return {
        "source_sha256": message["source_sha256"],
        "triton_version": compiler.triton_version,
        "case": case,
        "builds": [build.to_json() for build in builds],
    }


@worker_process_shutdown.connect
def on_worker_process_shutdown(**_: Any) -> None:
    bench.leave()
