"""Curation: tasks, methods, GPUs, submissions, the audit queue and bans. Results are read-only."""

from benchmark.admin.base import BumpsBoard, ReadOnly
from benchmark.admin.catalog import GpuAdmin, MethodAdmin, TaskAdmin
from benchmark.admin.entries import BanAdmin, CandidateAdmin, SubmissionAdmin
from benchmark.admin.results import AuditAdmin, RunAdmin
from benchmark.admin.steps import Steps

__all__ = [
    "AuditAdmin",
    "BanAdmin",
    "BumpsBoard",
    "CandidateAdmin",
    "GpuAdmin",
    "MethodAdmin",
    "ReadOnly",
    "RunAdmin",
    "Steps",
    "SubmissionAdmin",
    "TaskAdmin",
]
