"""What changed, as page and feed."""

from datetime import timedelta
from xml.etree import ElementTree

import pytest
from django.test import Client
from django.utils import timezone

from benchmark import vocabulary
from benchmark.models import Audit, Board, Method, TaskVersion

pytestmark = pytest.mark.django_db
ATOM = "{http://www.w3.org/2005/Atom}"


def entries(client: Client, query: str = "") -> list[dict[str, str]]:
    root = ElementTree.fromstring(client.get(f"/feed.atom{query}").content)
    return [
        {child.tag.removeprefix(ATOM): child.text for child in e} for e in root.iter(f"{ATOM}entry")
    ]


def test_new_results_are_counted_by_submission_gpu_and_day(client: Client, site) -> None:
    titles = [entry["title"] for entry in entries(client, "?kind=results")]
    assert titles == [
        "Beta: 1 candidate on H200",
        "Alpha: 1 candidate on CPU interpreter",
        "Alpha: 2 candidates on H200",
    ]
    assert "Alpha: 2 candidates on H200" in client.get("/changes/").content.decode()


def test_a_changed_task_is_told_with_what_it_means(client: Client, site) -> None:
    for digest in ("a" * 64, "b" * 64):
        TaskVersion.objects.create(task=site.relu, digest=digest, reference_source="")
    TaskVersion.objects.filter(digest="a" * 64).update(
        first_seen_at=timezone.now() - timedelta(days=2)
    )
    changed, added = entries(client, "?kind=tasks")
    assert (changed["title"], added["title"]) == ("1 task changed", "1 task added")
    assert "relu" in changed["summary"]
    assert "stale" in changed["summary"]


def test_another_judge_is_told(client: Client, site, make) -> None:
    assert entries(client, "?kind=judge") == []
    make.run(site.beta, site.gelu, site.h200, speedup=1.0, judge_version="2")
    [entry] = entries(client, "?kind=judge")
    assert (entry["title"], "before it was 1" in entry["summary"]) == ("Judge 2", True)


def test_an_audit_is_told_with_its_public_reason(client: Client, site) -> None:
    Audit.objects.create(run=site.fast, verdict=vocabulary.CHEAT, reason="calls <torch>")
    [entry] = entries(client, "?kind=audit")
    assert entry["title"] == "relu by Alpha on H200: cheat"
    assert "calls &lt;torch&gt;" in entry["summary"]


def test_ids_stay_when_more_comes(client: Client, site, make) -> None:
    before = {entry["id"] for entry in entries(client)}
    make.run(site.beta, site.gelu, site.h200, speedup=1.0)
    after = {entry["id"] for entry in entries(client)}
    assert before <= after
    assert len(entries(client)) == len(after)


def test_hostile_names_stay_text(client: Client, site) -> None:
    Method.objects.filter(slug="alpha").update(name="<b>&\x0b]]>=x")
    Board.bump()
    titles = [entry["title"] for entry in entries(client)]
    assert "<b>& ]]>=x: 2 candidates on H200" in titles
    assert "<b>&" not in client.get("/changes/").content.decode()


def test_an_empty_site_has_a_feed(client: Client, db) -> None:
    assert entries(client) == []
    assert client.get("/changes/").status_code == 200


def test_an_unknown_kind_is_hinted_at(client: Client, site) -> None:
    for path in ("/feed.atom", "/changes/"):
        answer = client.get(f"{path}?kind=result")
        assert (answer.status_code, "results" in answer.content.decode()) == (404, True)


def test_queries_are_bounded(client: Client, site, django_assert_max_num_queries) -> None:
    with django_assert_max_num_queries(8):
        client.get("/changes/")
