"""One colour, marker and hatch a method for figures and report, readable in grey and by the colour-blind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Look:
    """How a method is drawn."""

    colour: str
    marker: str
    hatch: str
    line: Literal["-", "--", "-.", ":"]


# Okabe and Ito's colours; both JEPA variants are warm, baselines cool, floors grey
_LOOKS = {
    "dgi": Look("#56B4E9", "^", "//", "--"),
    "graphmae": Look("#0072B2", "D", "\\\\", "--"),
    "bgrl": Look("#009E73", "v", "xx", "--"),
    "cca-ssg": Look("#CC79A7", "P", "..", "--"),
    "supervised-gcn": Look("#000000", "*", "", "-."),
    "nodejepa": Look("#D55E00", "o", "", "-"),
    "patchjepa": Look("#E69F00", "s", "--", "-"),
    "raw": Look("#C8C8C8", "x", "", ":"),
    "sgc": Look("#909090", "+", "||", ":"),
    "random-gcn": Look("#606060", "1", "oo", ":"),
    "sgc-1": Look("#A8A8A8", "2", "|", ":"),
    "sgc-3": Look("#787878", "3", "|||", ":"),
    "equal-hops": Look("#B8B8B8", "4", "-", ":"),
    "linear-jepa": Look("#B22222", "X", "**", "-"),
}
_OTHER = Look("#F0E442", "h", "++", "-")


def look(method: str) -> Look:
    """The look of a method; another preset of it keeps the colour but not the marker and the hatch."""
    name, bracket, _ = method.partition(" (")
    found = _LOOKS.get(name, _OTHER)
    return Look(found.colour, _OTHER.marker, _OTHER.hatch, found.line) if bracket else found
