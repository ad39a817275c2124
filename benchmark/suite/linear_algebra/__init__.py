"""Factorizations, solvers and what follows from them."""
