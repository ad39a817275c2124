"""The product's words: one each, used in the database, in JSON, in URLs and on pages.

Standard library only: the web process, the judge and the command line all import it.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Category:
    """A kind of operator: `name` as published, `slug` in URLs, `size` the published task count."""

    slug: str
    name: str
    label: str
    size: int


CATEGORIES = (
    Category("fusion", "Fusion", "Fusion", 60),
    Category("math", "Math", "Math", 36),
    Category("linear-algebra", "LinearAlgebra", "Linear algebra", 17),
    Category("activation", "Activation", "Activation", 10),
    Category("matrix-multiply", "MatrixMultiply", "Matrix multiply", 10),
    Category("index", "Index", "Index", 6),
    Category("loss", "Loss", "Loss", 6),
    Category("quantization", "Quantization", "Quantization", 6),
    Category("reduce", "Reduce", "Reduce", 6),
    Category("normalization", "Normalization", "Normalization", 5),
    Category("optimizer", "Optimizer", "Optimizer", 5),
    Category("spatial-ops", "SpatialOps", "Spatial operations", 3),
    Category("convolution", "Convolution", "Convolution", 2),
    Category("pooling", "Pooling", "Pooling", 2),
    Category("random", "Random", "Random", 2),
)
CATEGORY_BY_SLUG = {category.slug: category for category in CATEGORIES}
CATEGORY_BY_NAME = {category.name: category for category in CATEGORIES}
PUBLISHED_TASK_COUNT = sum(category.size for category in CATEGORIES)

STAGES = ("load", "call", "check", "proof", "time")

PASSED = "passed"
FORBIDDEN = "forbidden"
LOAD_ERROR = "load-error"
CALL_ERROR = "call-error"
WRONG_SHAPE = "wrong-shape"
WRONG_DTYPE = "wrong-dtype"
WRONG_VALUES = "wrong-values"
NON_FINITE = "non-finite"
INPUT_MUTATED = "input-mutated"
TIMEOUT = "timeout"
OUT_OF_MEMORY = "out-of-memory"
CRASHED = "crashed"
IMPOSSIBLE = "impossible"
UNSTABLE = "unstable"

VERDICTS = {
    PASSED: "correct on every case, its own work, and timed where the device can time",
    FORBIDDEN: "no kernel of its own, or a library did the work",
    LOAD_ERROR: "the source can't be parsed or imported, or has no entry point of the task's name",
    CALL_ERROR: "the first call raised an exception or did not compile",
    WRONG_SHAPE: "an output has another shape or structure than the contract's",
    WRONG_DTYPE: "an output has another type, dtype or device than the contract's",
    WRONG_VALUES: "an output's error against float64 is above the tolerance",
    NON_FINITE: "NaN or infinity where the contract's answer is finite",
    INPUT_MUTATED: "an argument was changed that the contract leaves alone",
    TIMEOUT: "a stage did not end within its limit",
    OUT_OF_MEMORY: "device or host memory above the limit",
    CRASHED: "the candidate's process died without an answer",
    IMPOSSIBLE: "faster than the hardware can be",
    UNSTABLE: "times that scatter too much to state a speedup",
}

QUEUED, RUNNING, DONE, DECLINED, LOST, CANCELLED = (
    "queued",
    "running",
    "done",
    "declined",
    "lost",
    "cancelled",
)
JOB_STATES = {
    QUEUED: "waiting for a board",
    RUNNING: "under judgement",
    DONE: "judged: a run is recorded",
    DECLINED: "this GPU can't judge it; no verdict, no fault of the author",
    LOST: "our failure, after every retry; the author is not charged",
    CANCELLED: "taken back before a run was recorded",
}
OPEN_JOB_STATES = (QUEUED, RUNNING)

# A worker says of its board all of these but `refused`, which the site says.
STARTING, SERVING, DRAINING, BROKEN, REFUSED, GONE = (
    "starting",
    "serving",
    "draining",
    "broken",
    "refused",
    "gone",
)
BOARD_STATES = {
    STARTING: "being tried out before it takes jobs",
    SERVING: "takes jobs",
    DRAINING: "ends what it has in hand and takes no more",
    BROKEN: "fails its probe, and is tried again until it works",
    REFUSED: "of another version than the site",
    GONE: "its worker has ended",
}

MEASURED, CLAIMED, PUBLISHED = "measured", "claimed", "published"
ORIGINS = {
    MEASURED: "measured here",
    CLAIMED: "claimed by the uploader",
    PUBLISHED: "published in the paper",
}

PUBLIC, UNLISTED, PRIVATE = "public", "unlisted", "private"
VISIBILITIES = {
    PUBLIC: "on the leaderboard, for everybody",
    UNLISTED: "for who has the link",
    PRIVATE: "for its submitter and moderators",
}

SHOWN, HIDDEN = "shown", "hidden"
SOURCE_VISIBILITIES = {
    SHOWN: "for whoever may see the results",
    HIDDEN: "for its submitter and moderators; results are shown without them",
}

CLEAN, SUSPECT, HELD, CHEAT, JUDGE_BUG, WITHDRAWN = (
    "clean",
    "suspect",
    "held",
    "cheat",
    "judge-bug",
    "withdrawn",
)
AUDIT_VERDICTS = {
    CLEAN: "looked at and found honest",
    SUSPECT: "held back until somebody has looked at it",
    HELD: "a new record: not ranked until a moderator has looked at it",
    CHEAT: "rejected: not what the task asks for",
    JUDGE_BUG: "rejected: our judge was wrong",
    WITHDRAWN: "taken back by its submitter",
}

BUILT, BUILD_FAILED, UNTRACED = "built", "failed", "untraced"
BUILD_STATES = {
    BUILT: "every kernel compiles for the architecture and fits its limits",
    BUILD_FAILED: "a kernel doesn't compile for the architecture, or needs more than it has",
    UNTRACED: "which kernels it launches couldn't be found out here: no failure of the candidate",
}

DRAFT, LIVE, RETIRED = "draft", "published", "retired"
TASK_STATES = {
    DRAFT: "brought in, not shown, judged or ranked until a moderator publishes it",
    LIVE: "judged and ranked",
    RETIRED: "no longer judged or ranked",
}

METHOD_KINDS = {
    "model": "language model",
    "agent": "agent",
    "compiler": "compiler",
    "human": "human",
}

DTYPES = (
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "float8_e4m3fn",
    "float8_e5m2",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
    "complex64",
    "complex128",
)
DIFFICULTIES = (1, 2, 3, 4, 5)
CASE_KINDS = ("small", "timed")
CASE_STATES = ("passed", "failed", "not-run", "not-judgeable")

SYNTHETIC = "synthetic-"  # how slugs of made-up methods and GPUs begin: manage.py seed
CPU_INTERPRETER = "cpu-interpreter"
BASELINE = "PyTorch eager"
NEUTRAL_BAND = 0.05  # within 5 % of 1.0x neither faster nor slower is said
MOST_JOBS = 64  # that a board may have in hand at once
MAX_SOURCE_BYTES = 256 * 1024  # a candidate's source; the longest published one has 24 KiB
