"""`sync_tasks` makes the site's tasks say what the suite says."""

import pytest
from django.core.management import call_command

from benchmark import suite
from benchmark.models import Gpu, Task, TaskVersion

pytestmark = pytest.mark.django_db


def test_every_task_of_the_suite_is_brought_in_once() -> None:
    call_command("sync_tasks")
    call_command("sync_tasks")
    rows = dict(Task.objects.current().values_list("slug", "digest"))
    assert rows == {task.name: task.digest for task in suite.all_tasks()}
    assert TaskVersion.objects.count() == len(rows)


def test_a_second_sync_writes_no_task() -> None:
    call_command("sync_tasks")
    before = list(Task.objects.values())
    call_command("sync_tasks")
    assert list(Task.objects.values()) == before


def test_a_task_that_left_the_suite_is_retired_and_kept() -> None:
    Task.objects.create(slug="gone", category="math", difficulty=1, digest="a" * 64)
    call_command("sync_tasks")
    assert Task.objects.get(slug="gone").retired_at is not None
    assert not Task.objects.current().filter(slug="gone").exists()


def test_a_task_that_comes_back_is_current_again() -> None:
    call_command("sync_tasks")
    Task.objects.filter(slug="relu").update(retired_at="2026-01-01T00:00Z")
    call_command("sync_tasks")
    assert Task.objects.current().filter(slug="relu").exists()


def test_a_changed_contract_leaves_its_earlier_digest_in_the_history() -> None:
    call_command("sync_tasks")
    task = Task.objects.get(slug="relu")
    TaskVersion.objects.filter(task=task).update(digest="a" * 64)
    Task.objects.filter(slug="relu").update(digest="a" * 64)
    call_command("sync_tasks")
    digests = set(task.versions.values_list("digest", flat=True))
    assert digests == {"a" * 64, suite.get("relu").digest}
    assert Task.objects.get(slug="relu").digest == suite.get("relu").digest


def test_gpus_keep_what_an_admin_decided() -> None:
    call_command("sync_tasks")
    Gpu.objects.filter(slug="h200").update(is_judging=True, peak_bandwidth=1.0)
    call_command("sync_tasks")
    h200 = Gpu.objects.get(slug="h200")
    assert h200.is_judging
    assert h200.peak_bandwidth == 4.8e12
    assert not Gpu.objects.get(slug="cpu-interpreter").can_time
