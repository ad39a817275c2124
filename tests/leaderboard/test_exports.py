"""Files of results: the pages' numbers, whole, typed, counted and disarmed."""

import csv
import hashlib
import io
import json
import subprocess
import sys

import pytest
from django.test import Client

from benchmark.models import Board, Method
from leaderboard.exports import files
from leaderboard.exports.datasets import DATASETS
from leaderboard.exports.writers import FORMATS

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_folder(settings, tmp_path) -> None:
    settings.STATE_DIR = tmp_path


def get(client: Client, name: str, format: str = "jsonl", **query):
    return client.get(f"/data/v1/{name}.{format}", query)


def lines(client: Client, name: str, **query) -> list[dict]:
    answer = get(client, name, **query)
    assert answer.status_code == 200
    return [json.loads(line) for line in answer.getvalue().splitlines()]


def test_the_runs_are_those_of_the_board(client: Client, site) -> None:
    rows = lines(client, "runs")
    assert {(r["gpu"], r["method"], r["task"], r["verdict"], r["speedup"]) for r in rows} == {
        ("h200", "alpha", "relu", "passed", 2.0),
        ("h200", "alpha", "gelu", "passed", 1.5),
        ("cpu-interpreter", "alpha", "relu", "passed", None),
        ("h200", "beta", "relu", "wrong-values", None),
    }
    [fast] = [r for r in rows if r["run"] == str(site.fast.uuid)]
    assert fast["task_digest"] == site.relu.digest
    assert fast["submission"] == str(site.alpha.uuid)


def test_what_is_held_back_says_so_and_gives_no_speedup(client: Client, site, make) -> None:
    make.run(site.beta, site.gelu, site.h200, speedup=50.0, is_suspect=True)
    [row] = [r for r in lines(client, "runs", dtype="float16") if r["method"] == "beta"]
    assert (row["state"], row["speedup"]) == ("suspect", None)
    assert "gelu" not in {r["task"] for r in lines(client, "cases") if r["method"] == "beta"}


def test_cases_come_with_errors_and_times(client: Client, site) -> None:
    small, timed = lines(client, "cases", gpu="h200")
    assert (small["candidate_ms"], small["tolerance"]) == (None, 2.4e-7)
    assert (timed["speedup"], timed["flops"]) == (2.0, 1e9)


def test_methods_are_the_leaderboard(client: Client, site) -> None:
    rows = lines(client, "methods", gpu="h200")
    page = csv.DictReader(
        io.StringIO(client.get("/leaderboard/?gpu=h200&format=csv").content.decode())
    )
    shown = [(row["rank_low"], row["rank_high"], row["correct"]) for row in page]
    assert [(str(r["rank_low"]), str(r["rank_high"]), str(r["correct"])) for r in rows] == shown


def test_tasks_say_who_solves_them(client: Client, site) -> None:
    [relu] = [r for r in lines(client, "tasks", gpu="h200") if r["task"] == "relu"]
    assert (relu["judged"], relu["solved"], relu["best_method"]) == (2, 1, "alpha")


@pytest.mark.parametrize(
    ("query", "tasks"),
    [
        ({"gpu": "cpu-interpreter"}, ["relu"]),
        ({"category": "math"}, []),
        ({"dtype": "float16"}, ["gelu"]),
        ({"difficulty": "3"}, ["gelu"]),
        ({"round": "0", "gpu": "h200"}, ["gelu", "relu", "relu"]),
        ({"round": "1"}, []),
        ({"round": "all", "difficulty": "3"}, ["gelu"]),
        ({"lane": "claimed"}, []),
    ],
)
def test_every_filter_of_a_page_applies(client: Client, site, query, tasks) -> None:
    assert sorted(row["task"] for row in lines(client, "runs", **query)) == tasks


def test_every_round_can_be_had(client: Client, site, make) -> None:
    make.run(site.alpha, site.relu, site.h200, speedup=3.0, round=1)
    of = {"gpu": "h200", "difficulty": "1"}
    final = [r for r in lines(client, "runs", **of) if r["method"] == "alpha"]
    every = [r for r in lines(client, "runs", round="all", **of) if r["method"] == "alpha"]
    assert ([r["round"] for r in final], [r["round"] for r in every]) == ([1], [0, 1])


@pytest.mark.parametrize("name", DATASETS)
def test_the_formats_hold_the_same(client: Client, site, name, tmp_path) -> None:
    from pyarrow import parquet

    rows = lines(client, name)
    text = get(client, name, "csv").getvalue().decode()
    table = parquet.read_table(io.BytesIO(get(client, name, "parquet").getvalue()))
    assert table.to_pylist() == rows
    assert list(rows[0]) == list(DATASETS[name].names)
    assert [
        row["task" if "task" in row else "method"] for row in csv.DictReader(io.StringIO(text))
    ] == [row["task" if "task" in row else "method"] for row in rows]
    meanings = [field.metadata[b"meaning"].decode() for field in table.schema]
    assert meanings == [column.meaning for column in DATASETS[name].columns]


@pytest.mark.parametrize("format", FORMATS)
def test_checksum_and_rows_are_the_files_own(client: Client, site, format) -> None:
    Board.bump()
    answer = get(client, "runs", format)
    sha256 = hashlib.sha256(answer.getvalue()).hexdigest()
    assert answer["X-Row-Count"] == "4"
    line = client.get(f"/data/v1/runs.{format}.sha256").content.decode()
    assert line.split()[0] == sha256
    assert line.split()[1] == answer["Content-Disposition"].split('"')[1]
    page = client.get("/data/").content.decode()
    assert sha256 in page


def test_a_file_is_made_once_for_a_state_of_the_site(client: Client, site, make) -> None:
    Board.bump()
    assert (len(lines(client, "runs")), len(_files())) == (4, 1)
    lines(client, "runs")
    assert len(_files()) == 1
    make.run(site.beta, site.gelu, site.h200, speedup=1.0)
    Board.bump()
    assert (len(lines(client, "runs")), len(_files())) == (5, 2)


def _files() -> list:
    return [path for path in files.folder().iterdir() if path.suffix == ".jsonl"]


def test_files_are_not_kept_without_end(client: Client, site, monkeypatch) -> None:
    monkeypatch.setattr(files, "KEPT", 2)
    Board.bump()
    for difficulty in "12345":
        lines(client, "runs", difficulty=difficulty)
    assert len(_files()) == 2
    assert len(list(files.folder().iterdir())) == 4


def test_asking_for_ever_other_files_is_throttled(client: Client, site, settings) -> None:
    rates = {"exports": "2/hour", "reads": None}
    settings.REST_FRAMEWORK = {**settings.REST_FRAMEWORK, "DEFAULT_THROTTLE_RATES": rates}
    Board.bump()
    for difficulty in "121":
        assert get(client, "runs", difficulty=difficulty).status_code == 200
    refused = get(client, "runs", difficulty="3")
    assert (refused.status_code, "Try again in" in refused.content.decode()) == (429, True)
    assert int(refused["Retry-After"]) > 0


def test_a_hostile_name_is_no_formula(client: Client, site) -> None:
    names = ["=HYPERLINK(1)", "+1", "-1", "@x", "\uff1d1", "\t=1", "\n=1"]
    for name in names:
        Method.objects.filter(slug="alpha").update(name=name)
        Board.bump()
        text = get(client, "methods", "csv", gpu="h200").getvalue().decode()
        [row] = [r for r in csv.DictReader(io.StringIO(text)) if r["method"] == "alpha"]
        assert row["name"] == f"'{name}"
    assert lines(client, "methods", gpu="h200")[0]["name"] == names[-1]


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("/data/v1/run.csv", "runs"),
        ("/data/v1/runs.csv?gpu=h2OO", "h200"),
        ("/data/?category=fusoin", "fusion"),
    ],
)
def test_unknown_values_are_hinted_at(client: Client, site, path, hint) -> None:
    answer = client.get(path)
    assert (answer.status_code, hint in answer.content.decode()) == (404, True)


def test_the_page_of_an_empty_site(client: Client, db) -> None:
    assert client.get("/data/").status_code == 200
    assert client.get("/data/v1/runs.csv").status_code == 404


def test_the_citation_names_the_state(client: Client, site) -> None:
    Board.bump()
    now = Board.seen()
    for format in ("bib", "cff"):
        text = client.get(f"/data/citation.{format}").content.decode()
        assert f"generation {now.generation}" in text
        assert "http://testserver/data/" in text
        assert text.count("{") == text.count("}")


def test_the_page_asks_a_bounded_number_of_queries(
    client: Client, site, django_assert_max_num_queries
) -> None:
    Board.bump()
    client.get("/data/")
    Board.bump()
    with django_assert_max_num_queries(50):  # makes twelve files
        client.get("/data/?difficulty=1")
    with django_assert_max_num_queries(8):
        client.get("/data/?difficulty=1&x=1")


def test_pyarrow_is_imported_when_a_file_is_written_and_not_before() -> None:
    code = (
        "import django, sys; django.setup(); import kbx_site.urls; from django.urls import resolve;"
        "resolve('/data/'); print('pyarrow' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"
