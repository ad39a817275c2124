"""Uploads of every form that researchers have, and every way in which they can be wrong."""

import io
import json
import os
import stat
import struct
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.intake import (
    Found,
    Intake,
    KnownTasks,
    Refusal,
    TaskName,
    limits,
    read_paths,
    read_upload,
)

TASKS = KnownTasks(
    names={
        "relu": TaskName("relu", "Activation"),
        "abs": TaskName("abs", "Math"),
        "svd": TaskName("svd", "LinearAlgebra"),
        "SGD": TaskName("SGD", "Optimizer", ("sgd_step",)),
        "fused_relu_sqrt": TaskName("fused_relu_sqrt", "Fusion"),
        "min_gelu": TaskName("min_gelu", "Reduce"),
    },
    aliases={"absolute": "abs"},
    descriptions={"svd": "Computes the singular value decomposition of a matrix."},
)
KERNEL = "import triton\n\n\n@triton.jit\ndef kernel(x):\n    pass\n"


def source(entry: str = "relu") -> str:
    return f"{KERNEL}\n\ndef {entry}(input):\n    return kernel[(1,)](input)\n"


def line(**fields) -> bytes:
    return (
        json.dumps({"file": "Activation/relu.py", "predict": source(), **fields}).encode() + b"\n"
    )


def upload(data: bytes, name: str = "predictions.jsonl") -> Intake:
    return read_upload(name, data, TASKS)


def only_candidate(intake: Intake) -> Found:
    assert intake.refusals == ()
    (found,) = intake.candidates
    return found


def only_refusal(intake: Intake) -> Refusal:
    assert intake.candidates == ()
    (refusal,) = intake.refusals
    assert refusal.remedy
    return refusal


def archive(files: dict[str, bytes | str], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return buffer.getvalue()


# Lines of JSON


def test_a_line_with_file_and_predict_is_a_candidate():
    found = only_candidate(upload(line()))
    assert found == Found("relu", 0, source(), "predictions.jsonl line 1")


@pytest.mark.parametrize(
    "file", ["relu.py", "relu", "Wrong/relu.py", "a\\b\\relu.py", "/x/y/relu.py", "RELU.PY"]
)
def test_only_the_base_name_of_file_counts(file):
    assert only_candidate(upload(line(file=file))).task == "relu"


@pytest.mark.parametrize("key", ["instruction", "prompt", "query"])
@pytest.mark.parametrize(
    ("signature", "task"),
    [
        (" relu(input, inplace=False) -> Tensor; input (Tensor): ...", "relu"),
        (" def relu(input) -> Tensor", "relu"),
        ("\n\ntorch.nn.functional.relu(input)", "relu"),
        (" def linalg.svd(A, full_matrices=True, *, driver=None)", "svd"),
        (" relu_sqrt(input, out=None)", "fused_relu_sqrt"),
        (" absolute(input)", "abs"),
    ],
)
def test_a_prompt_names_its_task_by_the_signature(key, signature, task):
    prompt = f"Write a kernel for abs(x).\nWrapper Entry Information:{signature}"
    record = {key: prompt, "predict": source(), "label": "x"}
    assert only_candidate(upload(json.dumps(record).encode())).task == task


def test_a_prompt_without_a_signature_is_found_by_its_description():
    prompt = (
        "Functional Description: Computes the singular value\n decomposition of a matrix.\n"
        "Wrapper Entry Information: A (Tensor): the matrix"
    )
    record = {"instruction": prompt, "predict": source("something")}
    found = only_candidate(upload(json.dumps(record).encode()))
    assert found.task == "svd"
    assert "found by its description" in found.notes


def test_a_prompt_that_says_nothing_is_found_by_the_one_known_function():
    record = {
        "instruction": "Wrapper Entry Information: input (Tensor): x",
        "predict": source("abs"),
    }
    found = only_candidate(upload(json.dumps(record).encode()))
    assert found.task == "abs"
    assert found.notes == ("named by its function 'abs'",)


def test_with_two_known_functions_a_prompt_that_says_nothing_is_refused():
    record = {"instruction": "?", "predict": source("abs") + source("relu")}
    assert only_refusal(upload(json.dumps(record).encode())).reason == "it names no task"


def test_a_name_that_is_not_the_slug_is_noted():
    assert only_candidate(upload(line(file="relu_sqrt.py", predict=source("relu_sqrt")))).notes == (
        "'relu_sqrt' is fused_relu_sqrt here",
    )


def test_an_entry_point_under_another_known_name_is_no_matter_of_note():
    assert only_candidate(upload(line(file="SGD.py", predict=source("sgd_step")))).notes == ()


def test_a_missing_entry_point_is_noted_not_refused():
    (note,) = only_candidate(upload(line(predict=source("other")))).notes
    assert note.startswith("it defines none of kernel_function, relu")


@pytest.mark.parametrize(("value", "number"), [(3, 3), ("3", 3), (None, 0)])
def test_the_round_is_a_number_also_in_quotes(value, number):
    assert only_candidate(upload(line(round=value))).round == number


@pytest.mark.parametrize("value", [-1, 1000, 1.5, True, "-1", "x", [], {}, 10**30, "9" * 5000])
def test_any_other_round_is_refused(value):
    assert "`round`" in only_refusal(upload(line(round=value))).reason


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (line(file="rleu.py"), "no task is called 'rleu'"),
        (line(predict=""), "the prediction is empty"),
        (line(predict=" \n"), "the prediction is empty"),
        (line(predict="I can't do that."), "no code in it"),
        (line(predict="x\0y"), "a NUL byte at character 1"),
        (line(predict="x = '\ud800'"), "a lone surrogate at character 5"),
        (line(predict=5), "`predict` is a number, not text"),
        (line(predict=None), "no field `predict`"),
        (line(file=["relu"]), "`file` is a list, not text"),
        (
            b'{"file": "relu.py", "predict": "x}',
            "not JSON: Unterminated string starting at at column 32",
        ),
        (b"[1, 2]", "a JSON list, not an object"),
        (b"null", "a JSON null, not an object"),
        (b"[" * 100_000, "JSON that is nested too deeply or holds too long a number"),
        (
            b'{"x": ' + b"9" * 10_000 + b"}",
            "JSON that is nested too deeply or holds too long a number",
        ),
        (b'\n{"file": "\xff"}', "not UTF-8 at byte 11"),
        (
            line(predict="x" * limits.MAX_LINE_BYTES),
            "2,097,198 bytes in one line",
        ),
        (line(predict="x = 1\n" * 50_000), "300,000 bytes of source"),
        (b"", "nothing in it"),
    ],
)
def test_what_can_not_be_a_candidate_is_refused_by_reason(data, reason):
    assert only_refusal(upload(data)).reason == reason


def test_a_refusal_names_the_line_and_near_misses():
    refusal = only_refusal(upload(b"\r\n\n" + line(file="Math/rleu.py")))
    assert refusal.place == "predictions.jsonl line 3"
    assert refusal.remedy == "did you mean relu?"


def test_every_line_is_told_of_and_good_ones_survive_bad_ones():
    intake = upload(line() + b"broken\n" + line(file="abs.py", predict=source("abs")))
    assert [found.task for found in intake.candidates] == ["relu", "abs"]
    assert [refusal.place for refusal in intake.refusals] == ["predictions.jsonl line 2"]


def test_the_same_text_again_is_a_note():
    found = only_candidate(upload(line() + line()))
    assert found.notes == ("the same text again at predictions.jsonl line 2",)


def test_another_text_for_the_same_task_and_round_is_refused_and_names_the_first():
    intake = upload(line() + line(predict=source() + "# 2\n") + line(round=1))
    assert [found.round for found in intake.candidates] == [0, 1]
    (refusal,) = intake.refusals
    assert refusal.place == "predictions.jsonl line 2"
    assert refusal.reason == (
        "a second candidate for relu, round 0; the first is at predictions.jsonl line 1"
    )


def test_reading_stops_at_the_limits():
    many = upload(b"".join(line(round=n % 900) for n in range(limits.MAX_CANDIDATES + 5)))
    assert many.refusals[-1].reason == "after 2,000 candidates or 300 refusals the rest is not read"
    assert many.refusals[-1].place == "predictions.jsonl line 2001"
    bad = upload(b"broken\n" * 1000)
    assert len(bad.refusals) == limits.MAX_REFUSALS + 1
    blank = only_refusal(upload(b"\n" * (limits.MAX_LINES + 1)))
    assert blank.reason == "more than 20,000 lines"
    large = only_refusal(upload(b" " * (limits.MAX_UPLOAD_BYTES + 1)))
    assert large.remedy == "send at most 33,554,432 bytes an upload"


# Cleaning

PROSE = "Here is the kernel:\n\n"


@pytest.mark.parametrize(
    "predict",
    [
        source().replace("\n", "\r\n"),
        "\ufeff" + source(),
        source() + "#" * 146 + "\nassert relu(1) == 1\n",
        source() + "<|im_end|>",
        source() + "<|EOT|>",
        f"```python\n{source()}```",
        f"{PROSE}```python\n{source()}```\n\nIt works by magic.",
        f"{PROSE}```\n{source()}```<|im_end|>",
        f"Sure: ```py\n{source()}```",
        f"~~~python\n{source()}~~~\n",
        f"{PROSE}```python\n{source()}",
        f"<think>\n```python\nrelu = 'a draft'\n```\n</think>\n```python\n{source()}```",
        f"```python\nrelu = 'a draft'\n```\n</think>\n```python\n{source()}```",
        f"```bash\npip list\n```\n```python\n{source()}```\n```py\nrelu(3)\n```",
        f"A draft:\n```python\ndef relu(x): ...\n```\nBetter:\n```python\n{source()}```",
        f"{PROSE}```python\n{source()}{'#' * 100}\nassert 1\n```",
    ],
)
def test_a_prediction_is_cleaned_to_its_source(predict):
    found = only_candidate(upload(line(predict=predict)))
    assert found.source.rstrip("\n") == source().rstrip("\n")


@pytest.mark.parametrize(
    "tail", ["", "\nThis kernel works on blocks of elements.\n\n- It is fast, really.\n"]
)
def test_prose_without_fences_is_cut(tail):
    found = only_candidate(
        upload(line(predict="To do it, we'll write this:\n\n" + source() + tail))
    )
    assert found.source.strip() == source().strip()
    assert found.notes == ("prose around the code was cut",)


def test_code_after_prose_is_never_cut():
    text = f"{KERNEL}\nThe wrapper function comes here now.\n\ndef relu(input):\n    pass\n"
    found = only_candidate(upload(line(predict=text)))
    assert "def relu(" in found.source
    assert found.notes == ("it does not parse as Python: the judge will call it a load-error",)


@pytest.mark.parametrize(
    "text",
    [
        "import torch\nimport triton\nfrom torch.distributed.utils import (\n    _get_dev",
        "import triton\n\n@triton.autotune(\n    configs=[\n        triton.Config({'BLOCK_M':",
        "import triton.language as tl\n\nif True:\n    def relu(input:\n        return input",
    ],
)
def test_an_answer_cut_off_before_its_first_definition_is_the_judges_matter(text):
    found = only_candidate(upload(line(predict=text)))
    assert found.source == text
    assert found.notes == ("it does not parse as Python: the judge will call it a load-error",)


@pytest.mark.parametrize("text", ["From here on, import duties apply.", "I import from experience"])
def test_words_of_python_in_prose_are_no_code(text):
    assert only_refusal(upload(line(predict=text))).reason == "no code in it"


def test_fences_inside_of_python_are_left_alone():
    text = source() + '\nDOC = """\n```python\nrelu(1)\n```\n"""\n'
    assert only_candidate(upload(line(predict=text))).source == text


def test_a_kernel_in_a_block_of_its_own_is_kept_with_its_wrapper():
    wrapper = "def relu(input):\n    return kernel[(1,)](input)\n"
    text = f"The kernel:\n```python\n{KERNEL}```\nThe wrapper:\n```python\n{wrapper}```\n"
    found = only_candidate(upload(line(predict=text)))
    assert found.source == f"{KERNEL}\n{wrapper}"
    assert found.notes == ("block 2 of 2 was taken, with the kernels of those before it",)


def test_thoughts_alone_are_no_code():
    text = f"<think>\n```python\n{source()}```\nHmm, no, that is wrong"
    assert only_refusal(upload(line(predict=text))).reason == "no code in it"


def test_broken_python_is_the_judges_matter():
    found = only_candidate(upload(line(predict="def relu(x:\n    return x\n")))
    assert found.source == "def relu(x:\n    return x\n"


# Files and archives


def test_a_python_file_is_named_like_its_task_or_like_its_function():
    assert only_candidate(upload(source().encode(), "relu.py")).task == "relu"
    assert only_candidate(upload(source().encode(), "C:\\work\\relu.py")).place == "relu.py"
    assert only_candidate(upload(source("abs").encode(), "answer.py")).task == "abs"
    refusal = only_refusal(upload(source("unknown").encode(), "rleu.py"))
    assert (refusal.reason, refusal.remedy) == ("no task is called 'rleu'", "did you mean relu?")


def test_an_archive_with_folders_of_categories_rounds_and_tasks():
    files = {
        "run/Activation/relu.py": source(),
        "run/round_1/Math/abs.py": source("abs"),
        "run/svd/kernel.py": source("svd"),
        "run/round_2/predictions.jsonl": line(),
        "run/__pycache__/x.pyc": b"",
        "__MACOSX/run/._relu.py": b"\0",
        "run/__init__.py": "",
    }
    intake = upload(archive(files), "all.zip")
    assert intake.refusals == ()
    found = {(found.task, found.round): found.place for found in intake.candidates}
    assert found == {
        ("relu", 0): "all.zip: run/Activation/relu.py",
        ("abs", 1): "all.zip: run/round_1/Math/abs.py",
        ("svd", 0): "all.zip: run/svd/kernel.py",
        ("relu", 2): "all.zip: run/round_2/predictions.jsonl line 1",
    }


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../relu.py", "a path that leads out of the archive"),
        ("a/../../relu.py", "a path that leads out of the archive"),
        ("/etc/relu.py", "a path that leads out of the archive"),
        ("C:/relu.py", "a path that leads out of the archive"),
        ("inner.zip", "an archive inside the archive"),
        ("inner.tar.gz", "an archive inside the archive"),
        ("README.md", "not a kind of file that is read: .md"),
        ("relu", "not a kind of file that is read: no ending"),
    ],
)
def test_what_has_no_business_in_an_archive_is_refused(name, reason):
    refusal = only_refusal(upload(archive({name: source()}), "all.zip"))
    assert refusal.reason == reason
    assert refusal.place == f"all.zip: {name}"


def test_a_link_in_an_archive_is_refused():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        link = zipfile.ZipInfo("relu.py")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        packed.writestr(link, "/etc/passwd")
    assert (
        only_refusal(upload(buffer.getvalue(), "a.zip")).reason == "a link or another special file"
    )


def test_an_encrypted_entry_is_refused():
    data = bytearray(archive({"relu.py": source()}))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + offset] |= 1
    assert only_refusal(upload(bytes(data), "a.zip")).reason == "encrypted"


def test_bombs_are_refused_by_what_they_claim_and_by_what_they_hold():
    zeros = b"\0" * (8 * limits.MIB)
    honest = only_refusal(upload(archive({"relu.py": zeros}), "a.zip"))
    assert honest.reason == "unpacks to more than 200 times its size"
    data = bytearray(archive({"relu.py": zeros}))
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        place = data.index(signature) + offset
        data[place : place + 4] = struct.pack("<I", 100)
    lying = only_refusal(upload(bytes(data), "a.zip"))
    assert lying.reason.startswith("damaged")


@pytest.mark.parametrize("name", ["a/" * 33 + "relu.py", "a" * 1001 + "/relu.py"])
def test_a_path_of_many_folders_is_refused_before_any_is_looked_up(name):
    assert "too long" in only_refusal(upload(archive({name: source()}), "a.zip")).reason
    deep = "a/" * 32 + "relu.py"
    assert only_candidate(upload(archive({deep: source()}), "a.zip")).task == "relu"


def test_what_turns_out_damaged_counts_as_unpacked(monkeypatch):
    monkeypatch.setattr(limits, "MAX_UNPACKED_BYTES", len(source()) + 10)
    packed = bytearray(archive({"relu.py": source(), "abs.py": source("abs")}))
    at = packed.index(b"PK\x01\x02") + 16
    packed[at : at + 4] = b"\0\0\0\0"  # the first one's checksum
    first, second = upload(bytes(packed), "a.zip").refusals
    assert "damaged" in first.reason
    assert "unpacks to too much" in second.reason


def test_a_field_that_stands_twice_is_refused():
    twice = line().replace(b'{"file"', b'{"file": "abs.py", "file"')
    assert "`file` stands twice" in only_refusal(upload(twice)).reason


def test_what_turns_writing_round_is_not_shown():
    refusal = only_refusal(upload(b"", "ulre\u202eyp.exe"))
    assert refusal.place == "ulre?yp.exe"


def test_an_archive_may_not_unpack_to_more_than_the_cap(monkeypatch):
    monkeypatch.setattr(limits, "MAX_UNPACKED_BYTES", 2 * len(source()))
    files = {f"round_{n}/relu.py": source() for n in range(4)}
    intake = upload(archive(files), "a.zip")
    assert [found.round for found in intake.candidates] == [0, 1]
    assert {refusal.reason for refusal in intake.refusals} == {"the archive unpacks to too much"}


def test_too_many_entries_are_refused_before_any_is_read():
    files = {f"{n}.py": "" for n in range(limits.MAX_ENTRIES + 1)}
    refusal = only_refusal(upload(archive(files, zipfile.ZIP_STORED), "a.zip"))
    assert refusal.reason == "6,001 entries in the archive"


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(compression):
    refusal = only_refusal(upload(archive({"relu.py": source()}, compression), "a.zip"))
    assert refusal.reason == "compressed by a method other than deflate"


def test_a_stranger_s_name_can_not_break_a_message():
    refusal = only_refusal(upload(line(file="\x1b[2J\n<script>" + "x" * 500)))
    assert "\x1b" not in refusal.reason
    assert "\n" not in refusal.reason
    assert len(refusal.reason) < 250


def test_folders_and_files_of_this_machine(tmp_path):
    folder = tmp_path / "svd" / "run"  # a folder outside of what is named tells no task
    (folder / "round_1" / "Math").mkdir(parents=True)
    (folder / "round_1" / "Math" / "abs.py").write_text(source("abs"))
    (folder / "predictions.jsonl").write_bytes(line())
    (folder / "other.py").write_text(source("unknown"))
    (folder / ".git").mkdir()
    (folder / ".git" / "relu.py").write_text("never read")
    os.symlink("/etc/passwd", folder / "svd.py")
    intake = read_paths([folder, tmp_path / "absent.py"], TASKS)
    assert [(found.task, found.round) for found in intake.candidates] == [("relu", 0), ("abs", 1)]
    assert [(Path(refusal.place).name, refusal.reason) for refusal in intake.refusals] == [
        ("other.py", "no task is called 'other'"),
        ("svd.py", "a link or another special file"),
        ("absent.py", "No such file or directory"),
    ]


def test_a_file_in_a_folder_named_like_its_task(tmp_path):
    (tmp_path / "relu").mkdir()
    file = tmp_path / "relu" / "kernel.py"
    file.write_text(source())
    assert only_candidate(read_paths([file], TASKS)).task == "relu"
    assert only_candidate(read_paths([tmp_path / "relu"], TASKS)).task == "relu"


# Whatever comes


@given(
    st.binary(max_size=400), st.sampled_from(["a.jsonl", "a.py", "a.zip", "a.txt", "", "\ud800.py"])
)
def test_arbitrary_bytes_never_raise_and_are_always_told_of(data, name):
    intake = read_upload(name, data, TASKS)
    assert intake.candidates or intake.refusals
    json.dumps([refusal.to_json() for refusal in intake.refusals]).encode()


@given(st.data())
@settings(max_examples=200)
def test_a_damaged_archive_never_raises(data):
    packed = bytearray(archive({"relu.py": source(), "p.jsonl": line(round=1)}))
    for _ in range(data.draw(st.integers(1, 4))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    intake = read_upload("a.zip", bytes(packed), TASKS)
    assert intake.candidates or intake.refusals


def test_an_archive_entry_without_a_name_is_refused():
    nameless = zipfile.ZipInfo("x")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr(nameless, source())
        nameless.filename = ""
    intake = read_upload("a.zip", buffer.getvalue(), TASKS)
    assert not intake.candidates
    assert len(intake.refusals) == 1
    json.dumps([refusal.to_json() for refusal in intake.refusals])


FENCES = ["```", "```python", "~~~", "<think>", "</think>", "<|im_end|>", "#" * 100]
CODE = ["def relu(x):", "    return x", "@triton.jit", "import triton", "'''", "("]
PIECES = st.sampled_from([*FENCES, *CODE, "A sentence of four words.", "", "\0", "\r"])


@given(st.lists(PIECES, max_size=25))
def test_any_mixture_of_fences_prose_and_code_is_a_candidate_or_a_refusal(pieces):
    intake = upload(line(predict="\n".join(pieces)))
    assert len(intake.candidates) + len(intake.refusals) == 1
    for found in intake.candidates:
        assert found.source.strip()
        assert "\r" not in found.source


# What language models really wrote

DATA = Path(__file__).parents[3] / "shared" / "data"
NAMES = Path(__file__).parents[3] / "shared" / "reference" / "tasks.json"


@pytest.mark.skipif(not NAMES.exists(), reason="the published predictions are not on this machine")
@pytest.mark.parametrize(
    ("name", "lines", "candidates"),
    [
        ("geak_rounds", 154, 120),
        ("tritonbench_t_gpt-4o", 166, 146),
        ("tritonbench_t_qwen2.5-72b_rag", 166, 148),
    ],
)
def test_every_line_of_published_predictions_is_a_candidate_or_a_named_refusal(
    name, lines, candidates
):
    tasks = json.loads(NAMES.read_text())["tasks"]
    known = KnownTasks.of(task["name"] for task in tasks if task["in_benchmark"])
    intake = read_upload(f"{name}.jsonl", (DATA / f"{name}.jsonl").read_bytes(), known)
    places = {piece.place for piece in (*intake.candidates, *intake.refusals)}
    assert places == {f"{name}.jsonl line {number}" for number in range(1, lines + 1)}
    assert len(intake.candidates) == candidates
    for found in intake.candidates:
        assert "```" not in found.source
        assert "#" * 100 not in found.source
