"""How much is hidden at which epoch: easy first."""

import math
from dataclasses import dataclass

from nodejepa.errors import ConfigError


@dataclass(frozen=True)
class Curriculum:
    """Mask ratio and hops as a function of the epoch.

    Both move linearly from their start at epoch 0 to their end at epoch ``epochs`` and stay there. Hops are
    rounded half up, so with the defaults epochs 0-24 mask 1-hop and later ones 2-hop neighbourhoods
    (the paper: cheap epochs "in the first 25", a jump after).

    >>> Curriculum().at(0), Curriculum().at(25), Curriculum().at(300)
    ((0.2, 1), (0.35, 2), (0.5, 2))
    """

    ratio_start: float = 0.2  # paper, Section 3: mask 0.2 -> 0.5 over 50 epochs
    ratio_end: float = 0.5
    hops_start: int = 1  # paper, Section 3: hops 1 -> 2
    hops_end: int = 2
    epochs: int = 50
    enabled: bool = True  # otherwise the end values hold from the start

    def at(self, epoch: int) -> tuple[float, int]:
        """Mask ratio and hops of an epoch, counted from 0."""
        if epoch < 0:
            raise ConfigError(f"epoch is {epoch!r}", fix="Epochs are counted from 0.")
        done = 1.0 if not self.enabled or epoch >= self.epochs else epoch / self.epochs
        ratio = (1 - done) * self.ratio_start + done * self.ratio_end
        hops = (1 - done) * self.hops_start + done * self.hops_end
        return ratio, math.floor(hops + 0.5)
