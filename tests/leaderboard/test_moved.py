"""Slugs of merged methods: every page that takes one leads to the method's page of now."""

import pytest
from django.contrib.auth.models import User

from benchmark import curation
from benchmark.models import Board, Method, Submission


@pytest.fixture
def merged(site, make):
    """gamma went into alpha, and with a second round there is a page of alpha's rounds."""
    gamma = make.submission(make.method("gamma"), "gamma-set")
    make.run(gamma, site.add, site.h200, speedup=1.2)
    make.run(gamma, site.add, site.h200, speedup=1.4, round=1)
    admin = User.objects.create_superuser("curator")
    curation.merge([Method.objects.get(slug="gamma")], site.alpha.method, admin, "same")
    return site


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/methods/gamma/", "/methods/alpha/"),
        ("/methods/gamma/history.csv?gpu=h200", "/methods/alpha/history.csv?gpu=h200"),
        ("/rounds/gamma/", "/rounds/alpha/"),
        ("/rounds/gamma/rounds.csv?gpu=h200", "/rounds/alpha/rounds.csv?gpu=h200"),
        ("/badge/gamma.svg?gpu=h200", "/badge/alpha.svg?gpu=h200"),
        ("/compare/?m=gamma&m=beta&gpu=h200", "/compare/?m=alpha&m=beta&gpu=h200"),
        ("/compare/tasks.csv?m=beta&m=gamma", "/compare/tasks.csv?m=beta&m=alpha"),
    ],
)
def test_an_old_address_leads_to_the_new_one_with_its_query(client, merged, old, new):
    moved = client.get(old)
    assert (moved.status_code, moved["Location"]) == (301, new)
    assert client.get(new).status_code == 200


def test_where_nobody_may_see_the_method_nothing_says_that_it_moved(client, merged):
    Submission.objects.filter(method=merged.alpha.method_id).update(visibility="private")
    Board.bump()
    for url in ("/methods/gamma/", "/badge/gamma.svg", "/compare/?m=gamma&m=beta"):
        answer = client.get(url)
        assert answer.status_code == 404
        assert "alpha" not in answer.content.decode().lower()


@pytest.mark.parametrize("path", ["methods", "rounds"])
def test_the_api_answers_with_the_method_of_now(client, merged, path):
    answer = client.get(f"/api/v1/{path}/gamma/")
    assert answer.status_code == 200
    assert answer.json() == client.get(f"/api/v1/{path}/alpha/").json()


def test_what_never_was_is_not_found_as_before(client, merged):
    assert client.get("/rounds/gamna/").status_code == 404
    assert client.get("/rounds/alpha/nonsense.csv").status_code == 404
