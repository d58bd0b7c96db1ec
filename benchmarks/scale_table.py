"""The constants of docs/scale.md: seconds and bytes of each step, and a billion edges computed from them.

``python -m benchmarks.scale_table`` writes scale_table.md from scale.jsonl. Of the newest record of the
largest graph of case ``workers`` it has the seconds of a step by one worker, t1, of the newest of case
``agents`` those by two machines, t2. What is shared between W machines takes s / W, the rest r:
s = 2 (t1 - t2), r = t1 - s. Both grow with the edges.
"""

from __future__ import annotations

from typing import Any

from benchmarks.scale import HERE, case_of, read_records, shown
from nodejepa.files import write_text

PLACE = HERE / "scale_table.md"
WORKERS = (1, 8, 64)
STEPS = {"training": "fit", "embedding": "embed", "writing": "write the file"}
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
    found = {case_of(record): record for record in records if record.get("workers") == 2}
    if {"workers", "agents"} <= found.keys():
        newest, apart = found["workers"], found["agents"]
        edges, theirs = (record["stored_edges"] / 1e6 for record in (newest, apart))
        for step, name in STEPS.items():
            first, second = newest["inside"]["alone"][step] / edges, apart["inside"]["agents"][step] / theirs
            both = min(max(2 * (first - second), 0.0), first)
            moved = apart["phases"]["agents"].get("moved_gb", 0.0) * 1e3 / theirs
            rows.append(
                {
                    "step": name,
                    "shared": both,
                    "alone": first - both,
                    "moved": moved if step == "embedding" else 0.0,
                    "of": newest,
                }
            )
    return rows


def useful(workers: int, columns: int) -> int:
    """How many machines a step gets faster by: with fewer than 16 columns each, a product reads as much."""
    return min(workers, max(1, columns // _LINE))


def render(records: list[dict[str, Any]]) -> str:
    """The table as markdown."""
    rows = constants(records)
    head = ["step", "s per million stored edges, shared", "not shared", "bytes moved per edge"]
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
        how = f"{of['threads']} threads" if names == ("prepare",) else "1 and 2 machines with one worker"
        said.append(
            f"Measurement of {', '.join(names)}: a graph with {of['nodes']:,} nodes, "
            f"{of['stored_edges']:,} stored edges and {of['columns']} features; {how}; "
            f"load average {of['load_average']:.1f}."
        )
    said.append(
        "The columns on the right were computed, not measured. They assume that the time is proportional to "
        "the number of edges. They leave out the network. To include it, divide the bytes moved by the speed "
        "of the network and add the result. Two machines were simulated by processes of one machine without "
        "shared memory."
    )
    said.append(
        "Matrix products get no faster if a machine has fewer than 16 columns of the embeddings. "
        "prepare runs in one process. If the parts are sorted already, prepare has much less to do."
    )
    return said


if __name__ == "__main__":
    write_text(PLACE, render(read_records(HERE / "scale.jsonl")))
