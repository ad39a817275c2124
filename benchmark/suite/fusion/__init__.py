"""Operators fused out of several, a module for each kind of chain."""
