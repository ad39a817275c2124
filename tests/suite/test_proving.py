"""The proof itself: what survives is named, what is refused is said, and the command's status."""

import dataclasses
import json
import shutil

import pytest
import torch
from click.testing import CliRunner

from benchmark import suite
from benchmark.suite import mutants, proving
from benchmark.suite.checks import Close
from benchmark.suite.inputs import small
from benchmark.suite.scenes import Scene
from benchmark.suite.trees import copied
from runner.cli import main
from runner.commands import prove as prove_command
from runner.proving import PLAIN, Prover, Row, prove

RELU, MATMUL, SOFTMAX, SGD = (suite.get(n) for n in ("relu", "matmul", "softmax", "sgd_step"))


def kbx(*words: str):
    return CliRunner().invoke(main, ["prove", "--jobs", "1", "--seed", "3", *words])


def answers(mutant: str, task=RELU, case="small-odd"):
    """A scene and what the mutant of this name answers in it."""
    scene = Scene(task, task.case(case), seed=3)
    (found,) = [m for m in mutants.mutants_of(task) if m.name == mutant]
    return scene, found.answer(scene)


def test_a_planted_survivor_is_reported():
    harmless = mutants.Mutant("right all the same", lambda scene: scene.right)
    wrong = mutants.Mutant("zeros", mutants.zeros)
    killing = proving.kill(RELU, "cpu", 3, [wrong, harmless])
    assert killing == proving.Killing(("zeros", "right all the same"), ("right all the same",))


def test_what_says_nothing_on_any_case_is_not_planted():
    silent = mutants.Mutant("silent", lambda scene: None)
    assert proving.kill(RELU, "cpu", 3, [silent]) == proving.Killing((), ())


def test_a_tolerance_that_is_too_wide_lets_mutants_survive():
    loose = dataclasses.replace(MATMUL.check, floor=1e5, cap=1e5)
    wide = dataclasses.replace(MATMUL, check=loose)
    survivors = proving.kill(wide, "cpu", 3).survivors
    assert {"tf32_inputs", "less than float32 inside"} <= set(survivors)
    assert "zeros" not in survivors


def test_a_parameter_that_no_input_shows_survives():
    """With eps far below every variance nothing tells whether it is added."""
    task = suite.get("batch_norm")
    plain = [case for case in task.small_cases if "eps" not in case.options]
    blind = dataclasses.replace(task, cases=tuple(plain), check=Close(floor=1e5, cap=1e5))
    assert "ignoring eps" not in proving.kill(blind, "cpu", 3).planted
    assert "eps left out" in proving.kill(blind, "cpu", 3).survivors


def test_a_wrong_axis_has_the_right_shape():
    scene, answer = answers("wrong dim", SOFTMAX, SOFTMAX.small_cases[1].name)
    (wrong,), (right,) = answer.outputs, scene.right.outputs
    assert wrong.shape == right.shape
    assert not torch.equal(wrong, right)


def test_an_ignored_out_is_left_as_it_was():
    task = suite.get("sigmoid")
    case = next(case for case in task.small_cases if case.options.get("out"))
    scene, answer = answers("ignoring out", task, case.name)
    assert torch.isnan(answer.mutated.kwargs["out"]).all()
    assert scene.rejects(answer)


def test_mutants_spoil_what_was_written_and_leave_the_other_arguments():
    scene, answer = answers("zeros", SGD)
    param, grad = answer.mutated.args[:2]
    assert not param.any()
    assert torch.equal(grad, scene.arguments.args[1])


def test_the_right_answer_outlives_every_mutant_made_of_it():
    scene = Scene(RELU, RELU.case("small-odd"), seed=3)
    before = copied(scene.right.outputs)
    for mutant in mutants.mutants_of(RELU):
        mutant.answer(scene)
    assert torch.equal(scene.right.outputs[0], before[0])
    assert not scene.rejects(scene.right)


def ceiling(input, out=None):
    return torch.ceil(input, out=out)


def test_a_reference_that_fails_its_check_is_a_fault():
    broken = dataclasses.replace(suite.get("floor"), truth_function=ceiling)
    assert any(
        fault.startswith("small-odd: ") for fault in proving.faults_of_reference(broken, "cpu", 3)
    )


def test_more_cases_are_tried_until_a_mutant_fails():
    """The mean of a single number is that number: it takes the second case."""
    one = dataclasses.replace(RELU, cases=(small("one", "shifted", n=1),))
    both = dataclasses.replace(one, cases=(*one.cases, small("two", "shifted", n=2)))
    kinds = [mutants.Mutant("input_passed_through", mutants.input_passed_through)]
    assert proving.kill(one, "cpu", 3, kinds).survivors == ("input_passed_through",)
    kinds = [mutants.Mutant("permuted", mutants.permuted)]
    assert proving.kill(one, "cpu", 3, kinds).planted == ()
    assert proving.kill(both, "cpu", 3, kinds).survivors == ()


@pytest.fixture(scope="module")
def prover():
    prover = Prover("cpu")
    yield prover
    prover.close()


@pytest.fixture
def solutions(tmp_path):
    """A folder with the plain solution of relu, to be spoiled."""
    (tmp_path / "Activation").mkdir()
    shutil.copy(PLAIN / "Activation" / "relu.py", tmp_path / "Activation")
    return tmp_path


def spoil(folder, old: str, new: str):
    path = folder / "Activation" / "relu.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_plain_solution_is_accepted(prover, solutions):
    row = prove(RELU, prover, 3, solutions)
    tried = len(RELU.small_cases) + len(RELU.beyond)
    assert (row.accepted, row.cases, row.survivors, row.faults) == (True, tried, (), ())
    assert row.killed == len(row.planted) >= 10


def test_a_solution_with_a_wrong_constant_is_not_accepted(prover, solutions):
    spoil(solutions, "0.0", "0.125")
    row = prove(RELU, prover, 3, solutions)
    assert row.accepted is False
    assert row.survivors == ()
    assert any(fault.startswith("solution: small-odd: ") for fault in row.faults)


def test_a_solution_that_raises_is_not_accepted(prover, solutions):
    spoil(solutions, "def relu(", "raise OSError('no disk')\ndef relu(")
    row = prove(RELU, prover, 3, solutions)
    assert row.accepted is False
    assert row.faults == ("solution: OSError: no disk",)


def test_a_solution_that_kills_its_process_costs_no_other_task(solutions):
    spoil(solutions, "def relu(", "import os\nos._exit(7)\ndef relu(")
    prover = Prover("cpu")
    row = prove(RELU, prover, 3, solutions)
    assert row.faults == ("solution: the process died with status 7",)
    assert prover.ask("mutants", "relu", 3)["survivors"] == []
    prover.close()


def test_a_missing_solution_is_not_accepted(prover, tmp_path):
    row = prove(RELU, prover, 3, tmp_path)
    assert row.accepted is False
    assert "there is no" in row.faults[0]


def test_what_the_interpreter_cannot_judge_is_neither_accepted_nor_refused(prover):
    row = prove(suite.get("gelu_bf16"), prover, 3)
    assert (row.accepted, row.proven) == (None, True)


def test_the_command_writes_what_it_found(tmp_path):
    result = kbx("--task", "relu", "--json", str(tmp_path / "proof.json"))
    assert result.exit_code == 0, result.output
    assert "plain solutions accepted: 1 of the 1" in result.stdout
    report = json.loads((tmp_path / "proof.json").read_text())
    assert (report["tasks"], report["accepted"], report["device"]) == (1, 1, "cpu")
    assert report["mutants_killed"] == report["mutants_planted"] >= 10
    assert report["rows"][0]["task"] == "relu"


def test_the_command_ends_with_1_when_a_solution_is_refused(solutions):
    spoil(solutions, "0.0", "0.125")
    result = kbx("--task", "relu", "--samples", str(solutions))
    assert result.exit_code == 1
    assert "REFUSED" in result.stdout
    assert "relu: solution: small-odd" in result.stdout


def test_a_survivor_leaves_a_task_unproven_and_the_total_short():
    bad = Row("relu", "Activation", True, 8, ("zeros", "mean"), ("mean",), ())
    good = Row("tanh", "Activation", None, 0, ("zeros",), (), ())
    assert (bad.proven, good.proven) == (False, True)
    totals = prove_command.report([bad, good], "cpu", 3)
    assert (totals["mutants_planted"], totals["mutants_killed"]) == (3, 2)
    assert (totals["accepted"], totals["not_judgeable"]) == (1, 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--task", "matmull"), "did you mean matmul"),
        (("--category", "fussion"), "there are"),
        (("--task", "relu", "--category", "Loss"), "relu is in Activation"),
        (("--device", "tpu"), "neither cpu nor cuda:N"),
        (("--device", "cuda:99"), "no cuda:99 here"),
        (("--json", "/no/such/folder/x.json"), "no folder /no/such/folder"),
    ],
)
def test_unusable_arguments_end_with_2(words, said):
    result = kbx(*words)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.replace("│", " ").split())


def test_who_does_not_answer_in_time_is_ended_and_the_next_is_asked_anew(monkeypatch):
    prover = Prover("cpu")
    monkeypatch.setattr("runner.proving.LONGEST", 0.01)
    assert prover.ask("mutants", "relu", 3)["failed"].startswith("no answer within 0.01 s")
    monkeypatch.setattr("runner.proving.LONGEST", 120.0)
    assert not prover.ask("mutants", "relu", 3)["survivors"]
    prover.close()


@pytest.mark.parametrize(
    ("visible", "device", "board"),
    [(None, "cuda", "0"), (None, "cuda:3", "3"), ("5,7", "cuda:1", "7"), ("5", "cuda:2", "2")],
)
def test_a_process_sees_its_board_and_no_other(monkeypatch, visible, device, board):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    prover = Prover(device)
    assert (prover._board(), prover.device) == (board, "cuda:0")
