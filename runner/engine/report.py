"""What a judgement found, as plain data; `to_json` is the shape that the command line, the queue
and the site share.
"""

from dataclasses import asdict, dataclass, field

from benchmark.vocabulary import PASSED
from runner.engine.folders import without_folders
from runner.engine.model import JUDGE_VERSION
from runner.engine.source import Finding

FAILED_STATE, PASSED_STATE, NOT_RUN, NOT_JUDGEABLE = "failed", "passed", "not-run", "not-judgeable"


@dataclass
class CaseResult:
    """One case of a run. Times in ms, errors in `unit`; None where not measured."""

    case: str
    kind: str
    shape: str
    dtype: str
    family: str
    state: str = NOT_RUN
    verdict: str | None = None
    error: float | None = None
    reference_error: float | None = None
    tolerance: float | None = None
    unit: str = ""
    detail: str = ""
    candidate_ms: float | None = None
    candidate_ms_low: float | None = None
    candidate_ms_high: float | None = None
    reference_ms: float | None = None
    reference_ms_low: float | None = None
    reference_ms_high: float | None = None
    compiled_ms: float | None = None  # torch.compile on the reference, where it was asked for
    compiled_ms_low: float | None = None
    compiled_ms_high: float | None = None
    compiled_detail: str = ""  # why there is none
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    flops: float | None = None
    bytes: float | None = None
    own_share: float | None = None
    samples: int | None = None
    samples_sha256: str | None = None

    def note(self, found: dict) -> None:
        """Take over a comparison: the first failure stays, otherwise the worst error."""
        if self.state == FAILED_STATE:
            return
        self.verdict = found["verdict"]
        self.state = PASSED_STATE if self.verdict == PASSED else FAILED_STATE
        self.detail = found.get("detail", "")
        error = found.get("error")
        if (
            self.state == FAILED_STATE
            or self.error is None
            or (error is not None and error >= self.error)
        ):
            self.error = error
            self.reference_error = found.get("reference_error")
            self.tolerance = found.get("tolerance")
        self.unit = found.get("unit") or self.unit

    def fail(self, verdict: str, detail: str) -> None:
        """The candidate gave no answer to compare."""
        if self.state != FAILED_STATE:
            self.state, self.verdict, self.detail = FAILED_STATE, verdict, detail

    def forget_times(self) -> None:
        """As if it had not been timed."""
        for name in ("candidate_ms", "reference_ms", "speedup"):
            for suffix in ("", "_low", "_high"):
                setattr(self, name + suffix, None)
        self.samples = self.samples_sha256 = None


@dataclass
class Report:
    """One candidate judged on one device: a fact, from `verdict` down to the environment."""

    task: str
    category: str
    round: int
    source_sha256: str
    task_digest: str
    device: str
    verdict: str = PASSED
    stage: str = "load"
    detail: str = ""
    suspect: bool = False
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    cases: list[CaseResult] = field(default_factory=list)
    kernels: list[dict] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    peak_memory_bytes: int | None = None
    log_tail: str = ""
    environment: dict = field(default_factory=dict)
    judge_version: str = JUDGE_VERSION

    def add(self, code: str, message: str, stage: str) -> None:
        """Add a finding, each code once a stage."""
        if not any(finding.code == code and finding.stage == stage for finding in self.findings):
            self.findings.append(Finding(code, message, stage))

    def forget_tracebacks(self, since: list[Finding]) -> None:
        """Those since then, of calls that may fail: they would look like the verdict's."""
        self.findings = [one for one in self.findings if one in since or one.code != "traceback"]

    def to_json(self) -> dict:
        """An element of `runs`; strict JSON, numbers that were not measured are None."""
        found = {
            name: value for name, value in vars(self).items() if name not in ("cases", "findings")
        }
        found["cases"] = [asdict(case) for case in self.cases]
        found["findings"] = [finding.to_json() for finding in self.findings]
        found["seconds"] = {stage: round(seconds, 4) for stage, seconds in self.seconds.items()}
        return dict(without_folders(found))
