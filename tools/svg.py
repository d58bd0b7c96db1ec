"""A canvas for figures of a few shapes: text stays text, the same drawing gives the same bytes."""

from __future__ import annotations

from html import escape

DARK, ORANGE, GREY, PALE, INK = "#0b3d66", "#b34700", "#8a8a8a", "#e2e2e2", "#111111"
_FONT = "system-ui, 'DejaVu Sans', Arial, sans-serif"


class Canvas:
    """Shapes in the order they are drawn, on white in light and in dark pages alike."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self.shapes: list[str] = []

    def line(self, x: int, y: int, x2: int, y2: int, *, colour: str = INK, width: float = 1.2) -> None:
        """A stroke."""
        self._add(f'<line x1="{x}" y1="{y}" x2="{x2}" y2="{y2}" stroke="{colour}" stroke-width="{width}"/>')

    def circle(self, x: int, y: int, r: int, *, fill: str, edge: str = "white", dashed: bool = False) -> None:
        """A node."""
        self._add(f'<circle cx="{x}" cy="{y}" r="{r}" {self._look(fill, edge, dashed)}/>')

    def square(self, x: int, y: int, r: int, *, fill: str, edge: str = "white") -> None:
        """Another kind of node."""
        place = f'x="{x - r}" y="{y - r}" width="{2 * r}" height="{2 * r}"'
        self._add(f"<rect {place} {self._look(fill, edge, False)}/>")

    def box(self, x: int, y: int, width: int, words: str, *, filled: bool = False) -> None:
        """Words in a frame, centred at a point."""
        place = f'x="{x - width // 2}" y="{y - 20}" width="{width}" height="40" rx="6"'
        self._add(f"<rect {place} {self._look(DARK if filled else 'white', DARK, False)}/>")
        self.text(x, y + 5, words, size=15, colour="white" if filled else INK)

    def arrow(self, x: int, y: int, x2: int, y2: int) -> None:
        """From here to there."""
        look = f'stroke="{INK}" stroke-width="2" fill="none" marker-end="url(#tip)"'
        self._add(f'<path d="M{x} {y}L{x2} {y2}" {look}/>')

    def text(self, x: int, y: int, words: str, *, size: int, colour: str = INK) -> None:
        """Centred words."""
        self._add(f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}">{escape(words)}</text>')

    def words(self, y: int, *lines: str) -> None:
        """Lines below a drawing."""
        for i, line in enumerate(lines):
            self.text(self.width // 2, y + 18 + 22 * i, line, size=16)

    def svg(self) -> str:
        """The file."""
        tip = (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="5" markerHeight="5" '
            f'orient="auto"><path d="M0 0L8 4L0 8z" fill="{INK}"/></marker></defs>'
        )
        size = f'viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{_FONT}" '
        ground = f'<rect width="{self.width}" height="{self.height}" fill="white"/>'
        title = f"<title>{escape(self.title)}</title>"
        return "\n".join([head + 'text-anchor="middle">', title, tip, ground, *self.shapes, "</svg>", ""])

    def _add(self, shape: str) -> None:
        self.shapes.append(shape)

    @staticmethod
    def _look(fill: str, edge: str, dashed: bool) -> str:
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        return f'fill="{fill}" stroke="{edge}" stroke-width="2"{dash}'
