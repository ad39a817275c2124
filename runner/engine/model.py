"""What goes into the judge, and the two ways to get no verdict. Standard library only."""

import hashlib
import os
from dataclasses import dataclass, field

from benchmark.vocabulary import STAGES

JUDGE_VERSION = "3"  # raise it when the same candidate could get another verdict or another speedup

MIB = 1 << 20
GIB = 1 << 30
MOST_REFEREES = 4
REFEREE_BYTES = 16 * GIB  # of the board's memory, for each


class JudgeFailure(Exception):  # noqa: N818 - the name of the contract
    """Our fault: no run is recorded and the job may be tried again."""


class BoardFailure(JudgeFailure):
    """The device itself doesn't work: nothing can be judged on it until `probe` finds it well."""


class NoMemory(JudgeFailure):
    """A process of ours got no memory; somebody else's may hold it."""


class Declined(Exception):  # noqa: N818 - the name of the contract
    """This device can't judge this candidate; `str()` is the reason, for its author. No run."""


@dataclass(frozen=True)
class DeviceSpec:
    """One board, or the interpreter. `memory` in bytes; `architecture` as in "sm_90", "" for the
    interpreter.
    """

    kind: str
    index: int
    gpu: str
    name: str
    uuid_hash: str = ""
    memory: int = 0
    architecture: str = ""

    @property
    def torch_name(self) -> str:
        """The device as the judged processes name it: they see one board, number 0."""
        return "cuda:0" if self.kind == "cuda" else "cpu"

    def to_json(self) -> dict:
        """The same facts as JSON, for messages and reports."""
        return {
            "kind": self.kind,
            "index": self.index,
            "gpu": self.gpu,
            "name": self.name,
            "uuid_hash": self.uuid_hash,
            "memory": self.memory,
            "architecture": self.architecture,
        }


@dataclass(frozen=True)
class Candidate:
    """The source that one method offers for one task in one round."""

    task: str
    source: str
    round: int = 0
    name: str = ""

    @property
    def sha256(self) -> str:
        """Digest of the source as it was given, in hex."""
        return hashlib.sha256(self.source.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Limits:
    """Seconds per stage and bytes; a stage that runs over ends in `timeout`, memory in
    `out-of-memory`.
    """

    load: float = 60.0
    call: float = 120.0
    check: float = 300.0
    proof: float = 120.0
    time: float = 180.0
    memory: int = 16 * GIB
    answer: int = 8 * GIB  # of one call's outputs and arguments, in the shared file
    processes: int = 256  # a Triton compile starts a compiler, torch starts its thread pool
    log: int = 8 * 1024  # of the candidate's own output, the end of it

    def seconds(self, stage: str) -> float:
        """The limit of a stage, by the vocabulary's name of it."""
        return float(getattr(self, stage))


@dataclass(frozen=True)
class Options:
    """How to judge. `seed` fixes the secret seeds, for tests of the judge itself: never for ranked
    runs.
    """

    stages: tuple[str, ...] = STAGES
    limits: Limits = field(default_factory=Limits)
    trust_candidates: bool = False
    seed: int | None = None
    min_blocks: int = 8
    max_blocks: int = 32
    samples_per_block: int = 12
    referees: int | None = None  # trusted processes that compare; None: as many as the host bears
    # Let others compile while one is timed? None: where this host keeps cores quiet for timing.
    overlap: bool | None = None
    compiled_baseline: bool = False  # time torch.compile's reference too, beside the eager one
    static_rules: bool = True  # off: what the source's text says flags and forbids nothing

    def __post_init__(self) -> None:
        unknown = set(self.stages) - set(STAGES)
        if unknown:
            raise ValueError(f"unknown stages {sorted(unknown)}: choose from {', '.join(STAGES)}")

    def referees_on(self, device: DeviceSpec) -> int:
        """How many referees. Each costs a core, and on a board memory for PyTorch's own answers."""
        if self.referees is not None:
            return self.referees
        if device.kind == "cpu":
            return 1
        return max(
            1, min(MOST_REFEREES, (os.cpu_count() or 1) // 4, device.memory // REFEREE_BYTES)
        )
