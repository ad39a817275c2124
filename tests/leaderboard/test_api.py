"""The API says what the pages show, in one documented form."""

import hashlib
import json

import pytest
from django.core.management import call_command
from django.test import Client

from benchmark import vocabulary
from benchmark.models import Board

pytestmark = pytest.mark.django_db
ROOT = "/api/v1/"
ERROR = {"code", "reason", "remedy", "fields"}


def get(client: Client, path: str, **query):
    return client.get(f"{ROOT}{path}", query)


def test_the_leaderboard_is_the_pages(client: Client, site) -> None:
    found = get(client, "leaderboard/", gpu="h200").json()
    assert found["tasks"] == 3
    assert [s["method"]["slug"] for s in found["standings"]] == ["alpha", "beta"]
    first = found["standings"][0]
    assert first["funnel"] == {
        "tasks": 3, "judged": 2, "loaded": 2, "called": 2, "correct": 2, "faster": 2,
    }  # fmt: skip
    assert first["speedup"]["value"] == pytest.approx(3**0.5)
    assert first["speedup"]["low"] <= first["speedup"]["value"] <= first["speedup"]["high"]
    assert first["rank_low"] <= first["rank"] <= first["rank_high"]
    page = client.get("/leaderboard/?gpu=h200&format=csv").content.decode()
    assert f"{first['rank']},{first['rank_low']},{first['rank_high']}" in page


@pytest.mark.parametrize(
    ("query", "methods", "tasks"),
    [
        ({"category": "math"}, [], 1),
        ({"dtype": "float16"}, ["alpha"], 1),
        ({"difficulty": "3"}, ["alpha"], 1),
        ({"gpu": "cpu-interpreter"}, ["alpha"], 3),
        ({"lane": "claimed"}, [], 3),
        ({"round": "1"}, [], 3),
    ],
)
def test_filters_have_the_pages_names(client: Client, site, query, methods, tasks) -> None:
    found = get(client, "leaderboard/", **({"gpu": "h200"} | query)).json()
    assert found["tasks"] == tasks
    assert [s["method"]["slug"] for s in found["standings"]] == methods


@pytest.mark.parametrize(
    "path",
    [
        *("gpus/", "leaderboard/", "categories/", "categories/activation/", "tasks/"),
        *("tasks/relu/", "methods/", "methods/alpha/", "compare/?m=alpha&m=beta", "portability/"),
        *("findings/", "findings/published/", "runs/", "queue/", "submissions/", ""),
        *("changes/", "exports/"),
    ],
)
def test_every_address_answers_with_strict_json(client: Client, site, path) -> None:
    answer = client.get(ROOT + path)
    assert answer.status_code == 200, answer.content
    json.loads(answer.content, parse_constant=pytest.fail)


def test_a_tasks_contract_and_who_solved_it(client: Client, site) -> None:
    found = get(client, "tasks/relu/").json()
    assert found["task"]["signature"] == "relu(input: Tensor) -> Tensor"
    assert found["task"]["cases"][0]["shape"] == "rows=37 columns=781"
    by_method = {row["method"]["slug"]: row["on"] for row in found["matrix"]}
    on_h200 = {one["gpu"]: one["result"] for one in by_method["beta"]}["h200"]
    assert (on_h200["verdict"], on_h200["speedup"]) == ("wrong-values", None)


def test_a_run_comes_with_its_cases(client: Client, site) -> None:
    found = get(client, f"runs/{site.fast.uuid}/").json()["run"]
    assert [case["speedup"] for case in found["cases"]] == [None, 2.0]
    assert found["speedup"] == {"value": 2.0, "low": 1.8, "high": 2.2}
    assert found["source"].startswith("import triton")


def test_runs_come_in_pages_the_newest_first(client: Client, site) -> None:
    first = get(client, "runs/", limit=3).json()
    assert (len(first["results"]), first["previous"]) == (3, None)
    assert first["results"][0]["uuid"] == str(site.failed.uuid)
    second = client.get(first["next"]).json()
    seen = [row["uuid"] for page in (first, second) for row in page["results"]]
    assert (len(seen), len(set(seen)), second["next"]) == (4, 4, None)


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({"gpu": "h200"}, 3),
        ({"method": "beta"}, 1),
        ({"task": "relu", "verdict": "passed"}, 2),
        ({"category": "activation", "dtype": "float16"}, 1),
        ({"round": "final", "difficulty": "1"}, 3),
        ({"round": "4"}, 0),
        ({"lane": "published"}, 0),
    ],
)
def test_runs_are_filtered(client: Client, site, query, count) -> None:
    assert len(get(client, "runs/", **query).json()["results"]) == count


def test_a_held_back_run_shows_no_speedup(client: Client, site, make) -> None:
    make.run(site.beta, site.gelu, site.h200, speedup=50.0, is_suspect=True)
    [row] = get(client, "runs/", method="beta", task="gelu").json()["results"]
    assert (row["state"], row["word"], row["speedup"]) == ("suspect", "suspect", None)


@pytest.mark.parametrize(
    ("path", "query", "code", "field"),
    [
        ("leaderboard/", {"gpu": "h2O0"}, 404, "gpu"),
        ("leaderboard/", {"category": "fusoin"}, 404, "category"),
        ("tasks/", {"difficulty": "9"}, 404, "difficulty"),
        ("findings/", {"round": "9" * 5000}, 404, "round"),
        ("runs/", {"round": "9" * 5000}, 400, "round"),
        ("runs/", {"verdict": "good"}, 404, "verdict"),
        ("runs/", {"method": "a\0b"}, 404, "method"),
        ("runs/", {"cursor": "cD1ub25zZW5zZQ=="}, 400, "cursor"),
        ("compare/", {"m": "alpha"}, 400, "m"),
        ("compare/", {"m": ["alpha", "alhpa"]}, 404, "m"),
        ("portability/", {"gpu": "h900"}, 404, "gpu"),
        ("rounds/", {"gpu": "h900"}, 404, "gpu"),
    ],
)
def test_an_error_names_the_field_and_the_remedy(
    client: Client, site, path, query, code, field
) -> None:
    answer = get(client, path, **query)
    body = answer.json()
    assert (answer.status_code, set(body)) == (code, ERROR)
    [entry] = body["fields"]
    assert entry["field"] == field
    assert entry["reason"]
    assert entry["remedy"]


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("get", "nowhere/at/all", 404),
        ("get", "tasks/leru/", 404),
        ("get", "methods/gamma/", 404),
        ("get", "rounds/alpha/", 404),
        ("post", "leaderboard/", 405),
        ("delete", "runs/", 405),
        ("options", "tasks/", 405),
    ],
)
def test_every_error_has_one_shape(client: Client, site, method, path, code) -> None:
    answer = getattr(client, method)(ROOT + path)
    assert (answer.status_code, set(answer.json())) == (code, ERROR)


def test_files_are_listed_with_rows_and_digest(client: Client, site, settings, tmp_path) -> None:
    settings.STATE_DIR = tmp_path
    Board.bump()
    rows = get(client, "exports/", gpu="h200").json()
    [runs] = [row for row in rows if (row["table"], row["format"]) == ("runs", "csv")]
    assert (runs["url"], runs["rows"]) == ("/data/v1/runs.csv?gpu=h200", 3)
    content = client.get(runs["url"]).getvalue()
    assert (len(content), hashlib.sha256(content).hexdigest()) == (runs["bytes"], runs["sha256"])
    assert get(client, "exports/", gpu="h9").json()["fields"][0]["field"] == "gpu"


def test_what_changed_is_listed(client: Client, site) -> None:
    titles = [row["title"] for row in get(client, "changes/", kind="results").json()]
    assert titles[0] == "Beta: 1 candidate on H200"
    assert get(client, "changes/", kind="result").json()["fields"][0]["field"] == "kind"


def test_a_near_miss_is_the_remedy(client: Client, site) -> None:
    assert "relu" in get(client, "tasks/relus/").json()["remedy"]


def test_an_empty_site_says_so(client: Client, db) -> None:
    answer = get(client, "leaderboard/")
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
    assert get(client, "gpus/").json() == []


def test_nothing_is_sent_again_while_nothing_changed(client: Client, site) -> None:
    Board.bump()
    first = get(client, "leaderboard/")
    again = client.get(f"{ROOT}leaderboard/", headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    Board.bump()
    assert client.get(f"{ROOT}leaderboard/", headers={"If-None-Match": first["ETag"]}).content


def test_a_kept_answer_is_never_a_posts(client: Client, site) -> None:
    Board.bump()
    get(client, "gpus/")
    assert client.post(f"{ROOT}gpus/").status_code == 405


def test_reads_are_throttled_with_clear_words(client: Client, site, settings) -> None:
    rates = {"reads": "2/min"}
    settings.REST_FRAMEWORK = {**settings.REST_FRAMEWORK, "DEFAULT_THROTTLE_RATES": rates}
    answers = [get(client, "queue/") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    body = answers[-1].json()
    assert (body["code"], set(body)) == ("throttled", ERROR)
    assert int(answers[-1]["Retry-After"]) > 0
    assert "try again in" in body["remedy"]


def test_the_boards_queries_are_bounded(client: Client, site, django_assert_max_num_queries):
    with django_assert_max_num_queries(6):
        get(client, "leaderboard/", gpu="h200")
    for path, most in {"runs/": 5, "tasks/": 7, "methods/": 7, "portability/": 12}.items():
        with django_assert_max_num_queries(most):
            get(client, path)


def test_the_document_is_whole(tmp_path) -> None:
    """Every field and parameter is described without a guess."""
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(tmp_path / "schema.yml"))


def test_the_document_names_filters_errors_and_tags(client: Client, db) -> None:
    document = json.loads(client.get(f"{ROOT}schema/?format=json").content)
    board = document["paths"]["/api/v1/leaderboard/"]["get"]
    assert {p["name"] for p in board["parameters"]} == {
        "gpu", "category", "dtype", "difficulty", "round", "lane",
    }  # fmt: skip
    for path in document["paths"].values():
        for operation in path.values():
            assert operation["tags"][0] != "api", operation["operationId"]
            for code in ("400", "404", "429"):
                answer = operation["responses"][code]["content"]["application/json"]["schema"]
                assert answer == {"$ref": "#/components/schemas/Error"}
    assert set(document["components"]["schemas"]["Error"]["properties"]) == ERROR


def test_the_docs_need_nothing_from_elsewhere_and_no_inline_script(client: Client, db) -> None:
    page = client.get(f"{ROOT}docs/")
    html = page.content.decode()
    assert page.status_code == 200
    assert "http" not in html.replace("https://github.com", "")
    assert "<script>" not in html
    assert "script-src 'self'" in page["Content-Security-Policy"]
    script = client.get(f"{ROOT}docs/?script=")
    assert script["Content-Type"].startswith("application/javascript")


def test_words_are_the_vocabularys(client: Client, db) -> None:
    document = json.loads(client.get(f"{ROOT}schema/?format=json").content)
    assert document["components"]["schemas"]["Verdict"]["enum"] == list(vocabulary.VERDICTS)
