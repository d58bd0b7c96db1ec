"""What is known of a method: one entry of the table of methods."""

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from nodejepa.methods.budget import Cost, FloorCost, GradientCost


@dataclass(frozen=True)
class Look:
    """How a method is drawn: readable in grey and by the colour-blind."""

    colour: str
    marker: str
    hatch: str
    line: Literal["-", "--", "-.", ":"]


OTHER_LOOK = Look("#F0E442", "h", "++", "-")


@dataclass(frozen=True)
class MethodEntry:
    """One row of the table of methods: all that is known of one."""

    name: str
    title: str  # what tables call it
    summary: str
    citation: str
    method: Any
    look: Look = OTHER_LOOK
    seeded: bool = True
    trained: bool = True
    by_gradient: bool = True  # or solved in closed form
    supervised: bool = False  # whether fit needs labels and a split
    presets: tuple[str, ...] = ("default",)
    about_presets: str = ""  # where their names do not tell
    cost: Cost = field(default_factory=GradientCost)  # measured: peak memory of two epochs


def floor(
    method: Any,
    title: str,
    summary: str,
    citation: str,
    colour: str,
    marker: str,
    hatch: str,
    *,
    seeded: bool = False,
) -> MethodEntry:
    """The entry of a floor: nothing is learned, and its lines are dotted."""
    entry = MethodEntry(method.name, title, summary, citation, method, Look(colour, marker, hatch, ":"))
    return replace(entry, seeded=seeded, trained=False, by_gradient=False, cost=FloorCost())
