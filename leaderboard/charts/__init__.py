"""Charts: pure functions from rows to a plotly figure (a dict) and to its table twin."""
