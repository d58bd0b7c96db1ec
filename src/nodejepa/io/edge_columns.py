"""Which columns of an edge list are its ends and its weight, as told or as their names suggest."""

from collections.abc import Sequence

from nodejepa.errors import Advice, GraphError, Setting
from nodejepa.io.column_names import ENDINGS, IDS, PAIRS, PARTNER, WEIGHTS, frame_indexes, plain
from nodejepa.io.reading_options import ReadingOptions, ReadReport
from nodejepa.io.tables import InputTable


def edge_columns(
    table: InputTable, reading: ReadingOptions, report: ReadReport
) -> tuple[str, str, str | None]:
    """Names of the source, target and weight columns; what was not told is guessed, and said."""
    if len(table.names) < 2:
        raise GraphError(
            f"an edge list needs two columns, there is only {', '.join(map(repr, table.names)) or 'none'}",
            where=table.where,
            fix="Give one column for each end of an edge.",
        )
    source, target, weight = reading.source, reading.target, reading.weight
    told = {name for name in (source, target, weight) if name}
    for name, argument in ((source, "source"), (target, "target"), (weight, "weight")):
        if name:
            table.find(name, argument)
    free = [name for name in table.names if name not in told]
    if source is None or target is None:
        index = frame_indexes(table.names)
        own = [name for name in free if name not in index]
        ends = own if len(own) >= (source is None) + (target is None) else free
        first, second = _guess_ends(ends, source, target)
        if first is None or second is None or first == second:
            raise GraphError(
                "the ends of the edges cannot be found", where=table.where, fix="Name source and target."
            )
        report.note(f"edges run from column {first!r} to column {second!r} (guessed).")
        source, target = first, second
    if source == target:
        raise GraphError(
            f"source and target are both {source!r}", where=table.where, fix="Name two different columns."
        )
    if weight is None:
        left = (name for name in free if name not in (source, target))
        weight = next((name for name in left if plain(name) in WEIGHTS), False)
        if weight:
            left_out = Setting("weight", False)
            report.note(
                Advice(f"edge weights are column {weight!r} (guessed; ", left_out, " leaves them out).")
            )
    elif weight and weight in (source, target):
        raise GraphError(f"{weight!r} is an end of the edges and their weight", where=table.where)
    unused = [name for name in table.names if name not in (source, target, weight)]
    if unused:
        report.note(f"columns of the edges that are not used: {', '.join(map(repr, unused[:10]))}.")
    report.edge_columns = {"source": source, "target": target, "weight": weight or None}
    return source, target, weight or None


def refuse_swapped(edges: object, nodes: object, reading: ReadingOptions) -> None:
    """Refuse a list of edges in the place of the nodes, and nodes in that of the edges, by their columns."""
    told = reading.source or reading.target or reading.id_column
    if told or not isinstance(edges, InputTable) or not isinstance(nodes, InputTable):
        return
    ends, own = _telling_ends(nodes.names), {plain(name) for name in edges.names}
    if ends and not set(IDS) & {plain(name) for name in nodes.names}:
        named = next((name for name in edges.names if plain(name) in IDS), None)
        if named is not None and not any(a in own and PARTNER[a] in own for a in PARTNER):
            raise GraphError(
                f"edges and nodes are swapped: the nodes have columns {ends[0]!r} and {ends[1]!r}, the edges "
                f"have {named!r}",
                where=f"{edges.where}, {nodes.where}",
                fix=Advice(
                    "Name them the other way round, or say ",
                    Setting("source", ""),
                    " and ",
                    Setting("target", ""),
                    " if they are right.",
                ),
            )


def _telling_ends(names: Sequence[str]) -> tuple[str, str] | None:
    """Two columns that are hardly anything but the ends of edges; x and y may be places."""
    known = {plain(name): name for name in reversed(names)}
    pairs = (
        (a + end, b + end) for end in ENDINGS for a, b in PAIRS if len(a) > 1 and a not in ("row", "start")
    )
    return next(((known[a], known[b]) for a, b in pairs if a in known and b in known), None)


def _guess_ends(free: list[str], source: str | None, target: str | None) -> tuple[str | None, str | None]:
    names = {plain(name): name for name in reversed(free)}
    if source is not None:
        return source, names.get(PARTNER.get(plain(source), ""), free[0] if free else None)
    if target is not None:
        reverse = {b: a for a, b in PARTNER.items()}
        return names.get(reverse.get(plain(target), ""), free[0] if free else None), target
    for end in ENDINGS:
        for a, b in PAIRS:
            if a + end in names and b + end in names:
                return names[a + end], names[b + end]
    return free[0], free[1] if len(free) > 1 else None
