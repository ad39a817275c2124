"""What is compared (catalog), what was entered (entries), what was found on boards (results) and
by compilers (builds), what moderators decide (curation), and what follows from that (aggregates).
"""

from benchmark.models.aggregates import CountingRun, RunTally
from benchmark.models.builds import StaticBuild
from benchmark.models.catalog import Gpu, Method, Task, TaskVersion
from benchmark.models.curation import Ban, MethodRedirect
from benchmark.models.entries import Candidate, Draft, Source, Submission
from benchmark.models.results import Audit, Board, Immutable, Measurement, Run

__all__ = [
    "Audit",
    "Ban",
    "Board",
    "Candidate",
    "CountingRun",
    "Draft",
    "Gpu",
    "Immutable",
    "Measurement",
    "Method",
    "MethodRedirect",
    "Run",
    "RunTally",
    "Source",
    "StaticBuild",
    "Submission",
    "Task",
    "TaskVersion",
]
