"""LinearJEPA: latent prediction with a linear encoder and a linear predictor, in closed form.

Nothing is trained by gradient descent and nothing is random: the latents that a node's neighbours foretell
best are the solution of an eigenproblem (:mod:`nodejepa.methods.closed_form`). Every choice that graphs want
differently is read off the graph, never off labels (docs/recipe.md).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nodejepa.config import require
from nodejepa.errors import ConfigError
from nodejepa.graph_rows import RowGraph
from nodejepa.methods.closed_form import Moments, Spectrum, moments_of
from nodejepa.methods.estimator import Estimator
from nodejepa.nn.hop_encoder import HopEncoder
from nodejepa.nn.inputs import GraphInputs, StoredInputs, WholeGraph
from nodejepa.progress import progress_bar
from nodejepa.store.graph import BLOCK_ROWS
from nodejepa.training.journal import Logging, peak_memory_mb
from nodejepa.training.run import History, Run


@dataclass(frozen=True)
class LinearJEPAConfig:
    """All settings of LinearJEPA; defaults were chosen on the development graphs (docs/recipe.md)."""

    dim: int = 256  # columns of the embeddings; fewer where the features have few directions
    # how many directions' worth of prediction are let in: eps is such that the |rho| sum to this ...
    predictability: float = 3.0
    predictability_share: float = 0.125  # ... and to no more than this share of the directions there are
    shrinkage: float | None = None  # eps as a share of the trace of C; none: by predictability
    power: float = 0.5  # latent j is as loud as |rho_j| to this power
    hops: int = 4  # how far the low part reaches
    equal_hops: bool = True  # every hop is brought to the same loudness before they are added
    high: bool = True  # whether the difference to the neighbours is kept beside the sum
    agreement: float | None = None  # of neighbours, 0 to 1; none: read off the signs of rho
    mean_kept: float | None = None  # share of the latents' mean; none: the root of the agreement
    basis: int = 768  # principal directions of the features that are looked at, at most
    side_by_side: int = 64  # features of no more directions keep hops 0 to 3 apart: dimensions are free there

    def __post_init__(self) -> None:
        require(self.dim >= 4 and self.dim % 4 == 0, "dim", self.dim, "a multiple of 4")
        require(self.predictability > 0, "predictability", self.predictability, "above 0")
        share = self.predictability_share
        require(0 < share <= 1, "predictability_share", share, "above 0 and at most 1")
        require(self.shrinkage is None or self.shrinkage > 0, "shrinkage", self.shrinkage, "above 0 or none")
        require(0 <= self.power <= 4, "power", self.power, "between 0 and 4")
        require(1 <= self.hops <= 64, "hops", self.hops, "between 1 and 64")
        for name in ("agreement", "mean_kept"):
            value = getattr(self, name)
            require(value is None or 0 <= value <= 1, name, value, "between 0 and 1, or none")
        require(1 <= self.basis <= 8192, "basis", self.basis, "between 1 and 8,192")
        require(self.side_by_side >= 0, "side_by_side", self.side_by_side, "0 or more")


@dataclass(frozen=True)
class Findings:
    """What the closed form found on a graph."""

    rho: tuple[float, ...]  # how well each latent is foretold, loudest first
    shrinkage: float
    agreement: float
    mean_kept: float
    directions: int  # that the features have, or that were looked at
    blocks: int  # mixtures of hops side by side

    def describe(self) -> str:
        """In plain words."""
        clear = sum(abs(value) >= 0.1 for value in self.rho)
        kind = (
            "neighbours are alike"
            if self.agreement >= 0.75
            else "neighbours are alike in some respects and different in others"
            if self.agreement >= 0.25
            else "neighbours are hardly more alike than strangers"
        )
        first = f"{self.rho[0]:.2f}" if self.rho else "none"
        return (
            f"{clear} of {self.directions} directions of the features are clearly foretold by the neighbours "
            f"(|rho| of 0.1 or more; the best: {first}); {kind} (agreement {self.agreement:.2f})."
        )


class LinearJEPA(Estimator):
    """Node embeddings by linear latent prediction, solved exactly.

    >>> from nodejepa.data import load_dataset
    >>> graph = load_dataset("digits").graph
    >>> LinearJEPA().fit(graph).transform(graph).shape
    (1797, 244)
    """

    name = "linear-jepa"
    config_class = LinearJEPAConfig
    findings_: Findings

    @classmethod
    def preset(cls, name: str, dataset: str | None = None) -> LinearJEPAConfig:  # noqa: ARG003 - one for all
        """``default``: one setting for all graphs."""
        if name != "default":
            raise ConfigError(f"{cls.name} has no preset {name!r}", fix="Use default.")
        return LinearJEPAConfig()

    def make_encoder(self, in_dim: int) -> HopEncoder:
        """A linear map and a mixture of hops, all zero."""
        found = self.findings_
        hops = 3 if found.blocks == 4 else self.config.hops
        return HopEncoder(in_dim, len(found.rho), found.blocks, hops)

    def learn(
        self,
        inputs: WholeGraph | StoredInputs,
        run: Run | None,  # noqa: ARG002 - solved in seconds: nothing to go on with
        logging: Logging,
    ) -> tuple[HopEncoder, History]:
        """Solve the eigenproblem; the history is one record, for all of it."""
        started = time.perf_counter()
        with progress_bar(logging.description):
            encoder = self._solve(inputs, moments_of(inputs, basis=self.config.basis))
        seconds = time.perf_counter() - started
        return encoder, [{"epoch": 1, "seconds": seconds, "peak_memory_mb": peak_memory_mb()}]

    def _solve(self, inputs: WholeGraph | StoredInputs, moments: Moments) -> HopEncoder:
        config, directions = self.config, len(moments.second)
        apart = directions <= config.side_by_side
        latents = min(config.dim // (4 if apart else 2 if config.high else 1), directions)
        spectrum = Spectrum(moments)
        shrinkage = config.shrinkage
        if shrinkage is None:
            wanted = min(config.predictability, config.predictability_share * directions)
            shrinkage = spectrum.shrinkage_for(wanted, latents)
        eps = shrinkage * spectrum.trace
        v, rho = spectrum.solve(eps, latents)
        agreement = config.agreement
        if agreement is None:
            agreement = _agreement(Spectrum(moments.centred()).rho(eps, latents))
        kept = config.mean_kept if config.mean_kept is not None else agreement**0.5
        blocks = 4 if apart else 2 if config.high else 1
        self.findings_ = Findings(tuple(rho.tolist()), shrinkage, agreement, kept, directions, blocks)
        weight = v * rho.abs() ** config.power
        encoder = self.make_encoder(inputs.num_features).to(inputs.device)
        encoder.weight.copy_(weight)
        if not apart:
            mean = moments.to_features(moments.mean[:, None])[:, 0]
            encoder.shift.copy_((1 - kept) * (mean @ weight))
        loudness = hop_loudness(encoder, inputs)
        if not config.equal_hops:
            loudness = torch.ones_like(loudness)
        encoder.mix.copy_(_mixture(agreement, encoder.mix.shape, apart=apart) / loudness)
        return encoder

    def width(self, graph: RowGraph) -> int:  # noqa: ARG002 - the same on all
        """As set; fewer where the features have few directions."""
        return int(self.config.dim)

    def describe(self) -> str:
        """How predictable the features are, and whether neighbours are alike."""
        return self.findings_.describe()

    def spectrum(self) -> tuple[float, ...]:
        """rho of every latent, loudest first."""
        return self.findings_.rho

    def own_facts(self) -> dict[str, Any]:
        """What was found, which also says how large the encoder is."""
        return {"findings": vars(self.findings_) | {"rho": list(self.findings_.rho)}}

    def take_facts(self, facts: Mapping[str, Any]) -> None:
        """The findings back from a file."""
        found = facts["findings"]
        self.findings_ = Findings(
            tuple(float(value) for value in found["rho"]),
            float(found["shrinkage"]),
            float(found["agreement"]),
            float(found["mean_kept"]),
            int(found["directions"]),
            int(found["blocks"]),
        )


def _agreement(rho: Tensor) -> float:
    """1 where neighbours only ever agree, 0 where they agree no more than they disagree."""
    total = float(rho.abs().sum())
    return max(0.0, 1 - 2 * float(rho[rho < 0].abs().sum()) / total) if total > 0 else 0.0


def _mixture(agreement: float, shape: torch.Size, *, apart: bool) -> Tensor:
    """How hops are added, ``[blocks, hops + 1]``.

    The sum shares weights between a node and its neighbours, which is right where they are alike: then far
    hops count, too, and the node itself less. The difference lets a reader tell them apart.
    """
    if apart:
        return torch.eye(shape[0], shape[1], dtype=torch.float64)
    mix = torch.zeros(shape, dtype=torch.float64)
    mix[0, 0] = 1 - agreement / 2
    mix[0, 1:3] = 1
    mix[0, 3:] = agreement
    if shape[0] == 2:
        mix[1, 0], mix[1, 1] = 1 - agreement / 2, agreement / 2 - 1
    return mix


def hop_loudness(encoder: HopEncoder, inputs: GraphInputs) -> Tensor:
    """Root of the mean squared length of a row of every hop; 1 for a hop that is silent."""
    squares = [0.0] * encoder.mix.shape[1]
    rows = BLOCK_ROWS if inputs.on_disk else max(inputs.num_nodes, 1)
    for group in inputs.column_groups(encoder.weight.shape[1]):
        for k, hop in enumerate(encoder.hops(inputs, encoder.latents(inputs, group))):
            squares[k] += sum(float(part.double().square().sum()) for part in torch.split(hop, rows))
    means = [square / max(inputs.num_nodes, 1) for square in squares]
    return torch.tensor([mean**0.5 if mean > 0 else 1.0 for mean in means], dtype=torch.float64)
