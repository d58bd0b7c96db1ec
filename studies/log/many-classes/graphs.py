"""Two real graphs of many classes, made from Debian packages: ``python graphs.py FOLDER``.

``debian``: the binary packages that ``apt-cache dumpavail`` lists (bookworm, main), an edge where one depends
on or recommends another, the words of the one-line description as features, sections as classes. ``wordnet``:
noun synsets of the package ``wordnet-base``, an edge a pointer, the words of the gloss, lexicographer files
as classes. Classes of fewer than 150 nodes and words on fewer than 15 are left out.
"""

from __future__ import annotations

import collections
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

SMALLEST_CLASS, RAREST_WORD = 150, 15
SILENT = re.compile(
    r"a|an|and|any|are|as|at|be|by|for|from|in|into|is|it|its|of|on|or|that|the|this|to|which|with"
)
NO_SUBJECT = {
    "oldlibs",
    "debug",
    "localization",
    "metapackages",
    "misc",
}  # sections that say nothing of a package


def words(text: str) -> set[str]:
    """What is said, small words left out."""
    return {word for word in re.findall(r"[a-z][a-z0-9+]+", text.lower()) if not SILENT.fullmatch(word)}


def save(folder: Path, name: str, nodes: dict[str, tuple[str, list[str], set[str]]]) -> None:
    """``nodes``: by name its class, the names it points to, its words."""
    sizes = collections.Counter(kind for kind, _, _ in nodes.values())
    kept = {
        n: row for n, row in nodes.items() if sizes[row[0]] >= SMALLEST_CLASS and row[0] not in NO_SUBJECT
    }
    place = {n: i for i, n in enumerate(kept)}
    spread = collections.Counter(word for _, _, said in kept.values() for word in said)
    column = {
        word: i for i, word in enumerate(sorted(w for w, count in spread.items() if count >= RAREST_WORD))
    }
    edges = [
        (place[n], place[m]) for n, (_, others, _) in kept.items() for m in others if m in place and m != n
    ]
    cells = [(place[n], column[w]) for n, (_, _, said) in kept.items() for w in sorted(said) if w in column]
    classes = sorted({kind for kind, _, _ in kept.values()})
    labels = [classes.index(kind) for kind, _, _ in kept.values()]
    np.savez_compressed(
        folder / f"{name}.npz", edges=np.array(edges), cells=np.array(cells), labels=np.array(labels)
    )
    print(f"{name}: {len(kept):,} nodes, {len(edges):,} edges, {len(column):,} words, {len(classes)} classes")


def debian() -> dict[str, tuple[str, list[str], set[str]]]:
    """Packages: section, dependencies, description."""
    listed = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True).stdout
    nodes: dict[str, tuple[str, list[str], set[str]]] = {}
    for stanza in listed.split("\n\n"):
        fields = dict(re.findall(r"^([A-Z][A-Za-z-]*): (.*)$", stanza, re.MULTILINE))
        others = ",".join(fields.get(field, "") for field in ("Depends", "Recommends"))
        names = [re.split(r"[ (|:]", other.strip())[0] for other in others.split(",")]
        said = next((text for field, text in fields.items() if field.startswith("Description")), "")
        if "Package" in fields and fields["Package"] not in nodes:
            section = fields.get("Section", "misc").split("/")[-1]
            nodes[fields["Package"]] = (section, names, words(said))
    return nodes


def wordnet() -> dict[str, tuple[str, list[str], set[str]]]:
    """Noun synsets: lexicographer file, pointers, gloss."""
    nodes = {}
    for line in Path("/usr/share/wordnet/data.noun").read_text(encoding="latin-1").splitlines():
        if line.startswith(" "):
            continue
        head, _, gloss = line.partition("|")
        field = head.split()
        pointers = 4 + 2 * int(field[3], 16)
        others = [
            field[at + 1]
            for at in range(pointers + 1, pointers + 1 + 4 * int(field[pointers]), 4)
            if field[at + 2] == "n"
        ]
        nodes[field[0]] = (field[1], others, words(gloss.split('"')[0]))
    return nodes


if __name__ == "__main__":
    save(Path(sys.argv[1]), "debian", debian())
    save(Path(sys.argv[1]), "wordnet", wordnet())
