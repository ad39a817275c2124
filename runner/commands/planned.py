"""What an upload would do, for a terminal. No Django: `kbx submit` talks to a site over HTTP."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

LISTED = 40  # refusals, and candidates with a note; the site's page has all
_UNSEEN = re.compile(r"[^\x20-\x7e\u00a0-\ud7ff\ue000-\ufdef]")


def lines(plan: Mapping[str, Any], claims_gpu: str | None = None) -> Iterator[str]:
    """The plan of `drafting.Outlook.to_json`, a line at a time."""
    yield from _found(plan)
    yield from _refused(plan["refused"])
    judged_on = plan["judged_on"]
    if judged_on:
        yield "judged on " + ", ".join(f"{gpu} ({n})" for gpu, n in judged_on.items())
    elif plan["counts"]["judged"]:
        yield "no GPU is judging now: candidates wait until one is attached"
    if plan["quota_left"]:
        left = ", ".join(f"{n} on {gpu}" for gpu, n in plan["quota_left"].items())
        yield f"left of today's quota before this: {left}"
    if plan["found"] and plan["counts"]["nothing"] == len(plan["found"]):
        yield "all of it is there already, with the same sources"
    if plan["adds_to"]:
        yield f"adds to submission {plan['adds_to']}"
    if plan["needs_claimed_on"] and not claims_gpu:
        yield "claimed results need a GPU: say --claimed-on GPU"
    if plan["problem"]:
        yield f"can't be submitted: {plan['problem']['reason']}: {plan['problem']['remedy']}"


def plain(text: object) -> str:
    """What a stranger or a site wrote, without what would move a terminal's cursor."""
    return _UNSEEN.sub("?", str(text))


def _found(plan: Mapping[str, Any]) -> Iterator[str]:
    counts, rows = plan["counts"], plan["found"]
    tasks = len({row["task"] for row in rows})
    words = {
        "judged": "to be judged", "nothing": "there already", "clash": "clashing",
        "claimed": "claimed", "loose": "claims without a source", "refused": "not taken",
    }  # fmt: skip
    told = ", ".join(f"{counts[key]} {words[key]}" for key in words if counts[key])
    yield f"found {tasks} tasks: {told or 'nothing'}"
    rounds = Counter(row["round"] for row in rows if row["does"] == "judged")
    if len(rounds) > 1:
        yield "rounds: " + ", ".join(f"{n} in round {number}" for number, n in rounds.items())
    noted = [row for row in rows if row["notes"] or row["does"] == "clash"]
    for row in noted[:LISTED]:
        said = "; ".join([*row["notes"], *(["clash"] if row["does"] == "clash" else [])])
        yield plain(f"  {row['place']} -> {row['task']} round {row['round']}: {said}")
    yield from _more(len(noted))


def _refused(refused: list[Mapping[str, str]]) -> Iterator[str]:
    for one in refused[:LISTED]:
        yield plain(f"  {one['place']}: {one['reason']}; {one['remedy']} [{one['kind']}]")
    yield from _more(len(refused))


def _more(count: int) -> Iterator[str]:
    if count > LISTED:
        yield f"  and {count - LISTED} more"
