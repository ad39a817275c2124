"""What still waits, for pages that show results: a board that grows must say so."""

from django import template

from benchmark import vocabulary
from runner.models import Job

register = template.Library()


@register.simple_tag
def open_jobs(gpu: str) -> int:
    """How many jobs wait or are under judgement on the GPU of this slug. One query."""
    return Job.objects.filter(gpu__slug=gpu, state__in=vocabulary.OPEN_JOB_STATES).count()
