"""The tables of docs/scale.md: what was measured, and the constants from which other sizes are computed.

``python -m benchmarks.scale_table`` writes scale_cases.md and scale_table.md from scale.jsonl. Of each step
the constants take the seconds by one worker, t1 (case ``workers``), and by two machines, t2 (case
``agents``), on the largest graph: the shortest of all records with the settings of the newest, since other
work on the machine only ever adds. What is shared between W machines takes s / W, the rest r:
s = 2 (t1 - t2), r = t1 - s. Both grow with the edges.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from benchmarks.scale import HERE, case_of, key_of, read_records, shown
from nodejepa.files import write_text

PLACE, CASES_PLACE = HERE / "scale_table.md", HERE / "scale_cases.md"
WORKERS = (1, 8, 64)
STEPS = {"training": "fit", "embedding": "embed", "writing": "write the file"}
_IDLE = 2.0  # load average of two workers and nothing else
_BILLION, _LINE = 1000.0, 16  # million edges; columns that memory hands over at a time


def constants(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each step: seconds per million stored edges, shared and not, and bytes moved per edge."""
    one = [record for record in shown(records) if case_of(record) == "sizes"]
    rows = []
    if one:
        largest = one[-1]
        edges = largest["stored_edges"] / 1e6
        seconds = largest["phases"]["prepare"]["seconds"] / edges
        rows.append({"step": "prepare", "shared": 0.0, "alone": seconds, "moved": 0.0, "of": largest})
    alone, apart = (_of_newest(records, case) for case in ("workers", "agents"))
    if alone and apart:
        newest = alone[-1]
        edges, theirs = (found[-1]["stored_edges"] / 1e6 for found in (alone, apart))
        moved = apart[-1]["phases"]["agents"].get("moved_gb", 0.0) * 1e3 / theirs
        for step, name in STEPS.items():
            first = min(record["inside"]["alone"][step] for record in alone) / edges
            second = min(run[step] for record in apart for run in record["inside"].values()) / theirs
            both = min(max(2 * (first - second), 0.0), first)
            rows.append(
                {
                    "step": name,
                    "shared": both,
                    "alone": first - both,
                    "moved": moved if step == "embedding" else 0.0,
                    "of": newest,
                    "records": len(alone) + len(apart),
                }
            )
    return rows


def _of_newest(records: list[dict[str, Any]], case: str) -> list[dict[str, Any]]:
    """All records of a case of two workers that were made as the newest of the largest graph was."""
    found = [record for record in records if case_of(record) == case and record.get("workers") == 2]
    return [record for record in found if key_of(record) == key_of(found[-1])]


def useful(workers: int, columns: int) -> int:
    """How many machines a step gets faster by: with fewer than 16 columns each, a product reads as much."""
    return min(workers, max(1, columns // _LINE))


def render(records: list[dict[str, Any]]) -> str:
    """The table as markdown."""
    rows = constants(records)
    head = [
        "step",
        "shared time: s per million edges",
        "time not shared: s per million edges",
        "bytes moved per edge",
    ]
    head += [f"10^9 edges on {n}" for n in WORKERS]
    lines = ["# Constants of time", "", _row(head), _row(["---", *["---:"] * (len(head) - 1)])]
    totals = dict.fromkeys(WORKERS, 0.0)
    for row in rows:
        minutes = []
        for count in WORKERS:
            found = _BILLION * (row["alone"] + row["shared"] / useful(count, row["of"]["columns"])) / 60
            totals[count] += found
            minutes.append(f"{found:,.0f} min")
        cells = [row["step"], f"{row['shared']:.3f}", f"{row['alone']:.3f}", f"{row['moved']:,.0f}"]
        lines.append(_row([*cells, *minutes]))
    if rows:
        lines.append(_row(["all", "", "", "", *(f"{minutes:,.0f} min" for minutes in totals.values())]))
    return "\n".join([*lines, "", *(f"- {note}" for note in _notes(rows)), ""])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    said = []
    for names in (("prepare",), tuple(STEPS.values())):
        of = next((row["of"] for row in rows if row["step"] in names), None)
        if of is None:
            said.append(f"There is no record of these steps yet: {', '.join(names)}.")
            continue
        how = f"`prepare` ran as one process with {of['threads']} threads"
        if names != ("prepare",):
            count = next(row["records"] for row in rows if row["step"] in names)
            how = (
                "The steps were measured on one machine and on two simulated machines, with one worker on "
                f"each. Each time is the shortest of {count} runs"
            )
        said.append(
            f"Measurement of {', '.join(names)}: a graph with {of['nodes']:,} nodes, "
            f"{of['stored_edges']:,} stored edges and {of['columns']} features. {how}."
        )
    said.append(
        "The columns on the right were computed, not measured. They assume that the time is proportional to "
        "the number of edges. They leave out the network. To include it, divide the bytes moved by the speed "
        "of the network and add the result."
    )
    apart = next((row["of"] for row in rows if row["step"] != "prepare"), None)
    if apart is not None:
        most = useful(max(WORKERS), apart["columns"])
        said.append(
            f"The shared time is divided by at most {most}. The embeddings have {apart['columns']} columns, "
            f"so {most} machines compute {_LINE} columns each. With fewer columns per machine, a matrix "
            "product gets no faster."
        )
        said += [_beyond(row["of"]) for row in rows if row["step"] == "prepare"]
    said.append("prepare runs in one process. It has much less to do if the parts are sorted already.")
    return said


def _beyond(largest: dict[str, Any]) -> str:
    """That a graph whose columns have no room in memory at once takes longer."""
    edges = largest["stored_edges"] / 1e6
    fit, embed = (largest["phases"][phase]["seconds"] / edges for phase in ("fit", "embed"))
    return (
        f"A larger graph can take more per edge. On {largest['nodes']:,} nodes, one process with "
        f"{largest['threads']} threads took {fit:.2f} s per million edges for fit and {embed:.2f} s for "
        "embed. These times include starting the commands and writing the file."
    )


def render_cases(records: list[dict[str, Any]]) -> str:
    """A row for each case with its newest record of the largest graph, as markdown."""
    head = ["what was measured", "nodes", "stored edges", "seconds", "peak memory (GiB)", "result"]
    lines = ["# Measured cases", "", _row(head), _row(["---", *["---:"] * 4, "---"])]
    newest = {case_of(record): record for record in records}
    for case, (title, found) in _CASES.items():
        if case in newest:
            of = newest[case]
            cells = [f"{of['nodes']:,}", f"{of['stored_edges']:,}"]
            cells += [f"{sum(phase['seconds'] for phase in of['phases'].values()):,.0f}"]
            lines.append(_row([title, *cells, f"{of['peak_anonymous_gib']:.1f}", found(of, records)]))
    note = "- Seconds are the sum over all commands of a row. Memory is the highest peak among them."
    return "\n".join([*lines, "", note, ""])


def _seconds(of: dict[str, Any], phase: str) -> str:
    return f"{of['phases'][phase]['seconds']:.0f} s"


def _found_sizes(of: dict[str, Any], _: list[dict[str, Any]]) -> str:
    return ", ".join(f"`{name}` {_seconds(of, name)}" for name in of["phases"])


def _found_text(of: dict[str, Any], _: list[dict[str, Any]]) -> str:
    """Processor seconds of preparing, and when the file was there."""
    prepare, embed = of["phases"]["prepare"], of["phases"]["embed-graph"]
    return (
        f"`prepare` takes {prepare['processor_seconds']:.0f} s of processor time. With `--memory-limit "
        f"{of['memory_limit_gb']:g}`, `embed-graph` writes the parquet file after "
        f"{embed['written_after']:.0f} s and the report with scores after {embed['seconds']:.0f} s"
    )


def _found_workers(of: dict[str, Any], records: list[dict[str, Any]]) -> str:
    """How much faster, in the records with these settings on a machine without other work.

    Other programs slow two workers more than one. Two workers alone make a load of two.
    """
    all_of_them = _of_newest(records, "workers")
    measured = [record for record in all_of_them if record["load_average"] <= _IDLE]
    times = sorted(_fit_and_embed(r, "alone") / _fit_and_embed(r, "shared") for r in measured)
    written, commands = (
        statistics.median(r[name] for r in measured) for name in ("speedup", "speedup_of_commands")
    )
    return (
        f"Two workers fit and embed {statistics.median(times):.2f} times as fast as one (median of "
        f"{len(times)} records on a machine without other work, {times[0]:.2f} to {times[-1]:.2f}). With "
        f"writing the factor is {written:.2f}, for the whole command, which also starts the workers, "
        f"{commands:.2f}. {_differ(of)}"
    )


def _fit_and_embed(record: dict[str, Any], run: str) -> float:
    seconds: dict[str, float] = record["inside"][run]
    return seconds["training"] + seconds["embedding"]


def _found_bits(of: dict[str, Any], _: list[dict[str, Any]]) -> str:
    return "All runs give the same bits" if of["same_bits"] else "The bits differ"


def _found_ray(of: dict[str, Any], _: list[dict[str, Any]]) -> str:
    return (
        f"`pretrain` takes {_seconds(of, 'ray')} with Ray and {_seconds(of, 'shared')} with `--workers 2`. "
        f"{_differ(of)}"
    )


def _differ(of: dict[str, Any]) -> str:
    largest = of["largest_difference"]
    return f"The results differ by at most {largest:.0e}" if largest else "Both results have the same bits"


_CASES: dict[str, tuple[str, Callable[[dict[str, Any], list[dict[str, Any]]], str]]] = {
    "sizes": ("one process", _found_sizes),
    "text": ("text ids and labels", _found_text),
    "workers": ("one worker, then two workers", _found_workers),
    "killed": ("one run without a kill, two with a killed worker", _found_bits),
    "agents": ("two runs of two torchrun agents", _found_bits),
    "ray": ("two workers of Ray", _found_ray),
}


if __name__ == "__main__":
    made = read_records(HERE / "scale.jsonl")
    write_text(PLACE, render(made))
    write_text(CASES_PLACE, render_cases(made))
