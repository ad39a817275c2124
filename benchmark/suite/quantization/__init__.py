"""Operators on integers made of floating-point arguments at every call."""
