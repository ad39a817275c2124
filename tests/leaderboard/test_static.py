"""A run's static portability: what the page says in each state."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from benchmark.architectures import ARCHITECTURES
from benchmark.models import StaticBuild
from leaderboard.selectors.static import portability
from tests.leaderboard import factories

pytestmark = pytest.mark.django_db
VERSION = "3.7.1"


def build(source, architecture, **fields):
    facts = {"state": "built", "kernel_count": 1, "registers": 40, "spills": 0}
    sizes = {"shared_bytes": 1024, "shared_limit": 65536, "traced_case": "timed-half"}
    return StaticBuild.objects.create(
        source=source,
        architecture=architecture,
        **{"triton_version": VERSION, **facts, **sizes, **fields},
    )


@pytest.fixture
def run():
    return factories.run(factories.submission(), factories.task(), factories.gpu())


def page_of(client, run) -> str:
    return client.get(f"/runs/{run.uuid}/").content.decode()


def test_nothing_compiled_is_said(client, run):
    assert "Not compiled yet" in page_of(client, run)


def test_each_architecture_has_its_row(client, run):
    source = run.candidate.source
    build(source, "sm_90", spills=12)
    build(
        source,
        "gfx942",
        state="failed",
        reason="k: needs 70000 bytes of shared memory; a block on gfx942 has 65536",
        shared_bytes=70000,
    )
    build(source, "sm_80", state="untraced", reason="late", kernel_count=0, shared_bytes=None)
    found = portability(source.sha256)
    assert [row.architecture for row in found.rows] == list(ARCHITECTURES)
    assert {row.architecture.slug: row.word for row in found.rows} == {
        "sm_80": "unknown",
        "sm_89": "not compiled",
        "sm_90": "builds",
        "sm_100": "not compiled",
        "sm_120": "not compiled",
        "gfx942": "fails",
    }
    page = page_of(client, run)
    assert "Builds for 1 of 2 architectures" in page
    assert "needs 70000 bytes of shared memory" in page
    assert "case timed-half" in page


def test_untraced_is_no_failure(client, run):
    for one in ARCHITECTURES:
        build(
            run.candidate.source,
            one.slug,
            state="untraced",
            reason="the call failed: needs <a> board",
            kernel_count=0,
            shared_bytes=None,
        )
    page = page_of(client, run)
    assert "no failure of the candidate" in page
    assert "needs &lt;a&gt; board" in page


def test_a_reason_that_all_architectures_give_is_said_once(client, run):
    for one in ARCHITECTURES:
        build(run.candidate.source, one.slug, state="failed", reason="k: no axis 0")
    page = page_of(client, run)
    assert page.count("k: no axis 0") == 1
    assert "Builds for 0 of 6 architectures" in page


def test_a_newer_triton_supersedes(run):
    source = run.candidate.source
    build(source, "sm_90", state="failed", reason="old")
    build(source, "sm_90", triton_version="3.8.0")
    found = portability(source.sha256)
    assert (found.built, found.traced, found.triton_version) == (1, 1, "3.8.0")


def test_one_query(run):
    build(run.candidate.source, "sm_90")
    with CaptureQueriesContext(connection) as queries:
        portability(run.candidate.source_id)
    assert len(queries) == 1
