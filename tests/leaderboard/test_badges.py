"""Badges and embeds: what other people's pages show of ours."""

from xml.etree import ElementTree

import pytest
from django.test import Client

from benchmark.models import Board, Method

pytestmark = pytest.mark.django_db
SVG = "{http://www.w3.org/2000/svg}"


def texts(client: Client, path: str) -> list[str]:
    answer = client.get(path)
    assert answer["Content-Type"].startswith("image/svg+xml")
    return [node.text for node in ElementTree.fromstring(answer.content).iter(f"{SVG}text")]


def test_a_badge_says_rank_solved_and_gpu(client: Client, site) -> None:
    found = client.get("/api/v1/leaderboard/?gpu=h200").json()["standings"][0]
    low, high = found["rank_low"], found["rank_high"]
    ranks = str(low) if low == high else f"{low}\N{EN DASH}{high}"
    assert texts(client, "/badge/alpha.svg?gpu=h200") == [
        "KernelBench-X",
        f"rank {ranks} · 2/3 solved · H200",
    ]


def test_a_badge_without_a_rank(client: Client, site) -> None:
    assert texts(client, "/badge/beta.svg?gpu=cpu-interpreter")[1] == "not ranked · CPU interpreter"


def test_a_hostile_name_is_text(client: Client, site) -> None:
    Method.objects.filter(slug="alpha").update(name='"><script>alert(1)</script>')
    Board.bump()
    content = client.get("/badge/alpha.svg").content
    assert b"<script" not in content
    [title] = ElementTree.fromstring(content).iter(f"{SVG}title")
    assert title.text.startswith('"><script>')


def test_unknown_methods_have_no_badge(client: Client, site) -> None:
    answer = client.get("/badge/alhpa.svg")
    assert (answer.status_code, "alpha" in answer.content.decode()) == (404, True)
    assert client.get("/badge/alpha.svg?gpu=h9").status_code == 404


@pytest.mark.parametrize(
    "name", ["standings", "correctness", "speedups", "ecdf", "pareto", "verdicts"]
)
def test_embeds_may_be_framed_also_when_kept(client: Client, site, name) -> None:
    Board.bump()
    for _ in range(2):
        answer = client.get(f"/embed/{name}/?gpu=h200")
        assert answer.status_code == 200
        assert "frame-ancestors *" in answer["Content-Security-Policy"]
        assert "script-src 'self'" in answer["Content-Security-Policy"]
        assert "X-Frame-Options" not in answer
        assert "<form" not in answer.content.decode()


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/leaderboard/",
        "/data/",
        "/changes/",
        "/submissions/new/",
        "/api/v1/docs/",
        "/embed/no/",
    ],
)
def test_nothing_else_may_be_framed(client: Client, site, path) -> None:
    answer = client.get(path)
    assert answer["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in answer["Content-Security-Policy"]
