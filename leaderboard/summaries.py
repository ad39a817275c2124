"""Pure: a choice's results summed up as boards, heat maps, distributions and task lists."""

from collections import Counter
from collections.abc import Iterable, Sequence

from benchmark import vocabulary
from leaderboard import ranking
from leaderboard.filters import Choice
from leaderboard.rows import (
    HELD,
    STALE,
    SUSPECT,
    Board,
    CategoryRow,
    Cell,
    Funnel,
    Heatmap,
    HeatRow,
    MethodRow,
    Result,
    Spread,
    Standing,
    TaskRow,
    TaskSummary,
    Unranked,
    tally,
)
from leaderboard.selectors.board import BoardData


def board(data: BoardData) -> Board:
    """Ranked are methods with at least one result that counts, solved or failed."""
    by_method = _by_method(data)
    ranked = {
        method.slug: method
        for method in data.methods
        if any(result.is_judged for result in by_method[method.id])
    }
    placed = ranking.rank(
        [_entry(method, by_method[method.id]) for method in ranked.values()],
        [task.id for task in data.tasks],
    )
    groups = Counter(place.group for place in placed)
    can_time = data.choice.gpu.can_time
    return Board(
        gpu=data.choice.gpu,
        tasks=len(data.tasks),
        published=published_count(data.choice),
        standings=tuple(
            Standing(
                method=ranked[place.key],
                rank=place.rank,
                rank_low=place.rank_low,
                rank_high=place.rank_high,
                group=place.group,
                is_tied=groups[place.group] > 1,
                funnel=funnel(by_method[ranked[place.key].id], len(data.tasks), can_time),
                speedup=place.speedup,
                timed=place.timed,
            )
            for place in placed
        ),
        unranked=tuple(
            Unranked(method, _reason(by_method[method.id], data.choice))
            for method in data.methods
            if method.slug not in ranked
        ),
    )


def published_count(choice: Choice) -> int | None:
    """The published benchmark's count for the choice; it has none by dtype or difficulty here."""
    if choice.dtype or choice.difficulty:
        return None
    if choice.category:
        return vocabulary.CATEGORY_BY_SLUG[choice.category].size
    return vocabulary.PUBLISHED_TASK_COUNT


def funnel(results: Sequence[Result], tasks: int, can_time: bool) -> Funnel:
    judged = [(one, count) for one, count in tally(results) if one.is_judged]
    return Funnel(
        tasks=tasks,
        judged=sum(count for _, count in judged),
        loaded=sum(count for one, count in judged if one.reached("load")),
        called=sum(count for one, count in judged if one.reached("call")),
        correct=sum(count for one, count in judged if one.is_solved),
        faster=sum(one.is_faster for one in results) if can_time else None,
    )


def heatmap(data: BoardData, methods: Sequence[MethodRow]) -> Heatmap:
    """Correct k of n by method and category, in the order of `methods`."""
    tasks: dict[str, list[TaskRow]] = {}
    for task in data.tasks:
        tasks.setdefault(task.category, []).append(task)
    rows = [
        HeatRow(
            method,
            tuple(_cell(data, method, tasks.get(c.slug, [])) for c in vocabulary.CATEGORIES),
        )
        for method in methods
    ]
    return Heatmap(
        tuple(
            CategoryRow(c.slug, c.label, len(tasks.get(c.slug, [])), c.size)
            for c in vocabulary.CATEGORIES
        ),
        tuple(rows),
    )


def spreads(data: BoardData, methods: Sequence[MethodRow]) -> tuple[Spread, ...]:
    """Speedups by method with what has none counted beside: failures are never dropped."""
    key = ("spreads", tuple(methods))
    if key not in data.memo:
        names = {task.id: task.slug for task in data.tasks}
        by_method = _by_method(data)
        data.memo[key] = tuple(_spread(method, by_method[method.id], names) for method in methods)
    found: tuple[Spread, ...] = data.memo[key]
    return found


def task_summaries(data: BoardData) -> tuple[TaskSummary, ...]:
    methods = {method.id: method for method in data.methods}
    by_task: dict[int, list[Result]] = {task.id: [] for task in data.tasks}
    for result in data.results.values():
        if result.is_judged:
            by_task[result.task].append(result)
    return tuple(_task_summary(task, by_task[task.id], methods) for task in data.tasks)


def _by_method(data: BoardData) -> dict[int, list[Result]]:
    by_method: dict[int, list[Result]] | None = data.memo.get("by method")
    if by_method is None:
        by_method = {method.id: [] for method in data.methods}
        for result in data.results.values():
            by_method.setdefault(result.method, []).append(result)
        data.memo["by method"] = by_method
    return by_method


def _entry(method: MethodRow, results: Iterable[Result]) -> ranking.Entry:
    solved = {
        result.task: result.speedup.value if result.speedup else None
        for result in results
        if result.is_solved
    }
    return ranking.Entry(method.slug, solved)


def _reason(results: Sequence[Result], choice: Choice) -> str:
    states = {result.state for result in results}
    if not states:
        return f"nothing {choice.lane_text} on {choice.gpu.name} in this selection"
    if states <= {SUSPECT, HELD}:
        return f"all {len(results)} results are held back until a moderator has looked at them"
    if states == {STALE}:
        return f"all {len(results)} results are of an earlier version of their task"
    return f"all {len(results)} results are held back or of an earlier version of their task"


def _cell(data: BoardData, method: MethodRow, tasks: Sequence[TaskRow]) -> Cell:
    if not tasks:
        return Cell("not-applicable")
    results = [data.results.get((method.id, task.id)) for task in tasks]
    judged = [result for result in results if result and result.is_judged]
    if not judged:
        return Cell("not-attempted", tasks=len(tasks))
    return Cell("counted", sum(r.is_solved for r in judged), len(tasks), len(judged))


def _spread(method: MethodRow, results: Sequence[Result], names: dict[int, str]) -> Spread:
    solved = [result for result in results if result.is_solved]
    timed = [(names[r.task], r.speedup.value) for r in solved if r.speedup]
    failures = Counter(r.word for r in results if not r.is_solved)
    return Spread(
        method=method,
        tasks=len(names),
        speedups=tuple(sorted(timed, key=lambda pair: (pair[1], pair[0]))),
        untimed=len(solved) - len(timed),
        failures=dict(failures.most_common()),
        missing=len(names) - len(results),
    )


def _task_summary(
    task: TaskRow, results: Sequence[Result], methods: dict[int, MethodRow]
) -> TaskSummary:
    solved = [result for result in results if result.is_solved]
    timed = [result for result in solved if result.speedup]
    best = max(timed, key=lambda r: r.speedup.value if r.speedup else 0.0, default=None)
    return TaskSummary(
        task=task,
        solved=len(solved),
        judged=len(results),
        best=best.speedup if best else None,
        best_method=methods[best.method] if best else None,
        best_run=best.run if best else None,
    )
