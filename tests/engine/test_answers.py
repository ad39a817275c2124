"""Manifests and bytes back into trees: what our exporter writes comes back, what it would not is
refused.
"""

import mmap
import os

import pytest
import torch

from runner.engine.answers import (
    ARGUMENTS,
    MUCH,
    SMALL,
    BadManifest,
    Landing,
    Opaque,
    Reader,
    WrongType,
    same_bits,
    same_form,
)
from runner.engine.export import Exporter, TooMuch

SIZE = 1 << 16


@pytest.fixture
def file():
    descriptor = os.memfd_create("answers")
    os.ftruncate(descriptor, SIZE)
    yield descriptor
    os.close(descriptor)


def exporter(file: int, gathers_on: str = "cuda") -> Exporter:
    return Exporter(mmap.mmap(file, SIZE), SIZE, gathers_on)


def reader(file: int) -> Reader:
    return Reader(file, SIZE, "cpu", Landing(pinned=False))


def there_and_back(file: int, tree: object) -> object:
    return reader(file).tree(exporter(file).export(tree))


class TestThereAndBack:
    @pytest.mark.parametrize(
        "dtype", [torch.float32, torch.bfloat16, torch.bool, torch.int64, torch.complex64]
    )
    def test_numbers_of_every_kind(self, file, dtype):
        tensor = torch.arange(6).reshape(2, 3).to(dtype)
        found = there_and_back(file, (tensor, [tensor.t(), None], {"a": 1.5, "b": (True, 3)}))
        assert same_bits(found, (tensor, [tensor.t(), None], {"a": 1.5, "b": (True, 3)}))
        assert found[0].dtype is dtype

    def test_views_conjugates_and_gradients_come_as_plain_numbers(self, file):
        complex_numbers = torch.tensor([1 + 2j, 3 - 4j])
        wanting = torch.ones(3, requires_grad=True) * 2
        tree = (torch.ones(1).expand(4, 5), complex_numbers.conj(), complex_numbers.conj().imag)
        found = there_and_back(file, (*tree, wanting))
        for ours, theirs in zip(found, (*tree, wanting.detach()), strict=True):
            assert torch.equal(ours, theirs.resolve_conj().resolve_neg())
            assert not ours.requires_grad

    def test_special_floats_keep_their_bits(self, file):
        bits = torch.tensor([0x7FA00001, -0x80000000, 1, 0x7F800000], dtype=torch.int32)
        found = there_and_back(file, bits.view(torch.float32))
        assert torch.equal(found.view(torch.int32), bits)

    def test_the_same_tensor_twice_and_empty_ones(self, file):
        tensor = torch.ones(3)
        found = there_and_back(file, [tensor, torch.empty(0, 5), tensor])
        assert same_bits(found, [tensor, torch.empty(0, 5), tensor])

    def test_a_tuple_is_walked_as_tuples_are_whatever_its_class_says(self, file):
        class Lazy(tuple):
            def __iter__(self):
                raise AssertionError("called")

        assert there_and_back(file, Lazy((1, 2))) == (1, 2)

    def test_keys_are_not_asked_for_their_text(self, file):
        class Key:
            def __str__(self):
                raise AssertionError("called")

        assert list(there_and_back(file, {Key(): 1})) == [f"<{Key.__qualname__}>"]

    @pytest.mark.parametrize(
        "tensor",
        [
            torch.ones(3).to_sparse(),
            torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
            torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8),
            torch.nn.Parameter(torch.ones(3)),
            torch.ones(3, device="meta"),
        ],
        ids=["sparse", "nested", "quantized", "parameter", "meta"],
    )
    def test_tensors_of_other_kinds_are_the_wrong_type(self, file, tensor):
        with pytest.raises(WrongType, match="output"):
            there_and_back(file, tensor)

    def test_an_answer_has_bounds(self, file):
        with pytest.raises(TooMuch, match="parts"):
            exporter(file).export([0] * 10_000)
        with pytest.raises(TooMuch, match="bytes"):
            exporter(file).export(torch.ones(SIZE))


def node(**changes) -> dict:
    plain = {"t": "tensor", "dtype": "uint8", "shape": [4], "device": "cpu", "offset": 0}
    return {**plain, "bytes": 4, **changes}


class TestReader:
    @pytest.mark.parametrize(
        "bad",
        [
            None,
            {"t": "set"},
            {"t": "list", "items": 3},
            {"t": "dict", "keys": ["a"], "items": []},
            {"t": "int", "value": "x"},
            {"t": "float", "value": "0x1p99999"},
            {"t": "complex", "value": [1]},
            node(offset=-1),
            node(offset=True),
            node(offset=SIZE - 3),
            node(shape=[5]),
            node(shape=[-1]),
            node(shape=[1 << 50]),
            node(shape=[1] * 65),
            node(shape="4"),
        ],
    )
    def test_what_we_would_not_have_written_is_refused(self, file, bad):
        with pytest.raises(BadManifest):
            reader(file).tree(bad)

    @pytest.mark.parametrize("dtype", ["quint4x2", "bits8", "qint32", "no", None, ["float32"]])
    def test_a_dtype_without_numbers_is_the_wrong_type(self, file, dtype):
        with pytest.raises(WrongType, match="output is a"):
            reader(file).tree(node(dtype=dtype))

    def test_no_byte_is_read_twice(self, file):
        four_thousand = {"t": "list", "items": [node()] * 4000}
        with pytest.raises(BadManifest, match="on another tensor"):
            reader(file).tree(four_thousand)

    def test_parts_are_counted(self, file):
        with pytest.raises(BadManifest, match="not a node"):
            reader(file).tree({"t": "list", "items": [{"t": "none"}] * 5000})

    def test_a_bool_is_true_or_false(self, file):
        os.pwrite(file, bytes([0, 1, 2, 255]), 0)
        found = reader(file).tree(node(dtype="bool"))
        assert found.view(torch.uint8).tolist() == [0, 1, 1, 1]

    def test_what_was_read_no_longer_changes(self, file):
        os.pwrite(file, bytes([1, 2, 3, 4]), 0)
        found = reader(file).tree(node())
        os.pwrite(file, bytes(4), 0)
        assert found.tolist() == [1, 2, 3, 4]

    def test_an_argument_of_another_type_is_no_fault_and_an_output_is(self, file):
        other = {"t": "other", "class": "dtype", "why": "no tensor"}
        assert isinstance(reader(file).tree(other, ARGUMENTS), Opaque)
        with pytest.raises(WrongType, match="dtype: no tensor"):
            reader(file).tree(other)

    def test_a_file_that_is_too_short_is_refused(self, file):
        longer = Reader(file, 2 * SIZE, "cpu", Landing(pinned=False))
        with pytest.raises(BadManifest, match="shorter"):
            longer.tree(node(offset=SIZE))


class TestGathered:
    """On a board small tensors leave together; here the processor plays the board."""

    def there_and_back(self, tree: object) -> object:
        size = 4 * MUCH
        file = os.memfd_create("answers")
        os.ftruncate(file, size)
        manifest = Exporter(mmap.mmap(file, size), size, "cpu").export(tree)
        found = Reader(file, size, "cpu", Landing(pinned=False)).tree(manifest)
        os.close(file)
        return found

    @pytest.mark.parametrize(
        "sizes",
        [
            (3, 5, 0, 7),
            (10, SMALL + 1, 20),
            (SMALL,) * (2 * MUCH // SMALL + 3),
            (2 * MUCH, 1),
            (0,),
        ],
    )
    def test_whatever_lies_between_each_keeps_its_numbers(self, sizes):
        tree = [torch.full((size,), n + 1, dtype=torch.uint8) for n, size in enumerate(sizes)]
        assert same_bits(self.there_and_back(tree), tree)

    def test_one_that_cannot_be_read_leaves_the_others_whole(self, file):
        class Unreadable:
            """Fails where its numbers are gathered, as a batched tensor does."""

        tree = [torch.ones(3), torch.ones(2, device="meta"), Unreadable(), torch.full((4,), 2.0)]
        found = exporter(file, "cpu").export(tree)["items"]
        assert [node["t"] for node in found] == ["tensor", "tensor", "other", "tensor"]
        assert same_bits(reader(file).tree(found[0]), tree[0])
        assert same_bits(reader(file).tree(found[3]), tree[3])

    def test_what_was_gathered_for_an_answer_that_was_too_much_is_forgotten(self, file):
        exporting = exporter(file, "cpu")
        with pytest.raises(TooMuch):
            exporting.export([torch.ones(3), torch.zeros(SIZE)])
        exporting.begin()
        tree = [torch.full((2,), 5.0), torch.full((2,), 6.0)]
        assert same_bits(reader(file).tree(exporting.export(tree)), tree)


class TestLanding:
    def test_large_room_is_as_long_as_asked_and_used_again(self):
        landing = Landing(pinned=False)
        (large, stays), (small, _) = landing.room(2 * SMALL), landing.room(SMALL + 1)
        assert (large.numel(), small.numel(), stays) == (2 * SMALL, SMALL + 1, False)
        assert small.data_ptr() == large.data_ptr()
        assert landing.room(3 * SMALL)[0].numel() == 3 * SMALL

    def test_small_tensors_land_side_by_side_until_the_next_answer(self):
        landing = Landing(pinned=False)
        rooms = [landing.room(size) for size in (0, 10, 100, SMALL)]
        assert [room.numel() for room, _ in rooms] == [0, 10, 100, SMALL]
        assert all(stays for _, stays in rooms)
        for number, (room, _) in enumerate(rooms):
            room.fill_(number)
        assert [set(room.tolist()) for room, _ in rooms] == [set(), {1}, {2}, {3}]
        landing.begin()
        assert landing.room(10)[0].data_ptr() == rooms[1][0].data_ptr()

    def test_where_no_more_fit_side_by_side_they_are_landed_one_by_one(self):
        landing = Landing(pinned=False)
        stay = [landing.room(SMALL)[1] for _ in range(MUCH // SMALL + 2)]
        assert stay == [True] * (MUCH // SMALL) + [False] * 2


class TestForm:
    def test_the_same_form_is_other_numbers_in_the_same_places(self):
        ours = [(torch.zeros(2), 3, "x"), {"out": [torch.zeros(1)]}]
        assert same_form([(torch.ones(2), 4, "y"), {"out": [torch.ones(1)]}], ours)

    @pytest.mark.parametrize(
        "theirs",
        [
            None,
            [1, None],
            [(), {}],
            [(torch.ones(3), 3), {}],
            [(torch.ones(2).double(), 3), {}],
            [(torch.ones(2), [3]), {}],
            [(torch.ones(2), torch.ones(1)), {}],
            [(torch.ones(2), 3), {"a": 1}],
        ],
    )
    def test_anything_else_is_not(self, theirs):
        assert not same_form(theirs, [(torch.zeros(2), 3), {}])
