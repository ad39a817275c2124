"""What is compared (catalog), what was entered (entries), what was found on boards (results) and
by compilers (builds).
"""

from benchmark.models.builds import StaticBuild
from benchmark.models.catalog import Gpu, Method, Task, TaskVersion
from benchmark.models.entries import Candidate, Source, Submission
from benchmark.models.results import Audit, Board, Immutable, Measurement, Run

__all__ = [
    "Audit",
    "Board",
    "Candidate",
    "Gpu",
    "Immutable",
    "Measurement",
    "Method",
    "Run",
    "Source",
    "StaticBuild",
    "Submission",
    "Task",
    "TaskVersion",
]
