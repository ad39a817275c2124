"""The category's decorator."""

from benchmark.suite.registry import category

matrix_multiply = category("MatrixMultiply")
