"""LinearJEPA: latent prediction with a linear encoder and a linear predictor, in closed form.

Nothing is trained by gradient descent and nothing is random: the latents that a node's neighbours predict
best are the solution of an eigenproblem (:mod:`nodejepa.methods.closed_form`). Every choice that graphs want
differently is read off the graph, never off labels (docs/recipe.md).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from annotated_types import Ge, Gt, Le, MultipleOf
from torch import Tensor

from nodejepa.config import NonNegativeInt, Positive, PositiveInt, Settings, Share, ShareBelowOne, of_type
from nodejepa.errors import ConfigError
from nodejepa.graph import RowGraph
from nodejepa.machine import announce, peak_memory_mb, progress_bar
from nodejepa.methods.closed_form import SecondMoments, Spectrum, second_moments
from nodejepa.methods.estimator import Estimator
from nodejepa.nn.hop_encoder import HopEncoder, pagerank_weights
from nodejepa.nn.inputs import RowInputs
from nodejepa.training.logger import Logging
from nodejepa.training.run import History, Run

_STRUCTURE_WEIGHT = 0.25  # of a latent of the structure beside those of columns
_RECIPE = 4  # what a saved encoder means: settings of methods that start at this one do not say it


@dataclass(frozen=True)
class LinearJEPAConfig(Settings):
    """All settings of LinearJEPA; defaults were chosen on other graphs than the paper's (docs/recipe.md)."""

    # columns of the embeddings; fewer where the features have few directions
    dim: Annotated[int, Gt(0), Le(1 << 16), MultipleOf(4)] = 256
    # how many directions' worth of prediction are let in: eps is such that dim / 2 of |rho| sum to this ...
    predictability: Positive = 8.0
    # ... and to no more than this share of the directions there are
    predictability_share: Annotated[float, Gt(0), Le(1)] = 0.125
    shrinkage: Positive | None = None  # eps as a share of the trace of C; none: by predictability
    power: Annotated[float, Ge(0), Le(4)] = 0.5  # latent j is scaled by |rho_j| to this power
    hops: Annotated[int, Ge(1), Le(64)] = 10  # of personalised-PageRank (APPNP) propagation
    restart: ShareBelowOne = 0.15  # its restart probability
    own_below: Share = 0.5  # the latents themselves stand beside it where neighbours agree less than this
    agreement: Share | None = None  # of neighbours, 0 to 1; none: read off the signs of rho
    mean_kept: Share | None = None  # share of the latents' mean; none: the agreement
    # principal directions of the features that are looked at, at most
    basis: Annotated[int, Ge(1), Le(8192)] = 768
    # features of no more directions keep hops 0 to 3 apart: dimensions are free there
    side_by_side: NonNegativeInt = 32
    rotated: bool = True  # latents are rotated so that columns are of about equal scale
    equal_rows: bool = True  # rows are of the same length


@dataclass(frozen=True)
class Findings:
    """What the closed form found on a graph."""

    rho: tuple[float, ...]  # how well each latent is predicted, the largest first
    shrinkage: float
    agreement: float
    mean_kept: float
    directions: NonNegativeInt  # that the features have, or that were looked at
    blocks: PositiveInt  # mixtures of hops side by side

    @property
    def correlations(self) -> tuple[float, ...]:
        """rho, cut off at -1 and 1: it goes beyond where nodes of many neighbours differ from the others."""
        return tuple(min(1.0, max(-1.0, value)) for value in self.rho)

    def describe(self) -> str:
        """In plain words."""
        clear = sum(abs(value) >= 0.1 for value in self.rho)
        kind = (
            "neighbours are alike"
            if self.agreement >= 0.75
            else "neighbours are alike in some respects and different in others"
            if self.agreement >= 0.25
            else "neighbours are hardly more alike than random pairs"
        )
        first = f"{self.correlations[0]:.2f}" if self.rho else "none"
        return (
            f"{clear} of {self.directions} directions of the features are clearly predicted by the "
            f"neighbours (|rho| of 0.1 or more; the best: {first}); {kind} (agreement {self.agreement:.2f})."
        )


class LinearJEPA(Estimator):
    """Node embeddings by linear latent prediction, solved exactly.

    >>> from nodejepa.data import load_dataset
    >>> graph = load_dataset("digits").graph
    >>> LinearJEPA().fit(graph).transform(graph).shape
    (1797, 61)
    """

    name = "linear-jepa"
    title = "LinearJEPA (closed form)"
    summary = "linear latent prediction in closed form, no gradient descent"
    citation = "this package"
    seeded = False
    by_gradient = False
    config_class = LinearJEPAConfig
    findings_: Findings

    def check_processes(self, count: int) -> None:
        """Any number: they share columns."""

    def make_encoder(self, in_dim: int) -> HopEncoder:
        """A linear map and a mixture of hops, all zero."""
        found = self.findings_
        if found.blocks == 4:
            return HopEncoder(in_dim, len(found.rho), 4, 3)
        return HopEncoder(
            in_dim, len(found.rho), found.blocks, self.config.hops, equal_rows=self.config.equal_rows
        )

    def learn(
        self,
        inputs: RowInputs,
        run: Run | None,  # noqa: ARG002 - solved in seconds: nothing to go on with
        logging: Logging,
    ) -> tuple[HopEncoder, History]:
        """Solve the eigenproblem; the history is one record, for all of it."""
        started, group = time.perf_counter(), self.process_group
        wanted, columns = self.config.dim, inputs.num_features
        say = group.leads and logging.shown
        if columns < wanted and say:
            most = self._most_columns(columns)
            found = f"at most {most}" if most < wanted else f"perhaps fewer than {wanted}"
            announce(f"{logging.description}: {found} columns, because there are {columns} features")
        with progress_bar(logging.description, shown=group.leads):
            parts = [
                second_moments(inputs, basis=self.config.basis, group=group, columns=part)
                for part in _column_groups(inputs.graph)
            ]
            self.in_dim_, self.history_ = inputs.num_features, []
            if group.leads:
                self.encoder_ = self._solve(inputs, parts)
            self._share()
        if self.encoder_.out_dim < wanted and say:
            announce(
                f"{logging.description}: the embeddings have {self.encoder_.out_dim} columns, not {wanted}, "
                f"because the features have {self.findings_.directions} directions"
            )
        seconds = time.perf_counter() - started
        history: History = [{"epoch": 1, "seconds": seconds, "peak_memory_mb": peak_memory_mb()}]
        return self.encoder_.to(inputs.device), history

    def _solve(self, inputs: RowInputs, parts: Sequence[SecondMoments]) -> HopEncoder:
        """Columns of the nodes and columns of the structure are solved apart, each with an eps of its own.

        Together, those of the structure would be most of what is let in: they are made to be predictable.
        """
        config, directions = self.config, [len(moments.second) for moments in parts]
        apart = sum(directions) <= config.side_by_side and len(parts) == 1
        half = _shares(config.dim // (4 if apart else 2), directions)
        spectra, shrinkages = [Spectrum(moments) for moments in parts], []
        for spectrum, count, size in zip(spectra, half, directions, strict=True):
            wanted = min(config.predictability, config.predictability_share * size)
            shrinkages.append(config.shrinkage or spectrum.shrinkage_for(wanted, count))
        agreement = config.agreement
        if agreement is None:
            eps = shrinkages[0] * spectra[0].trace
            agreement = _agreement(Spectrum(parts[0].centred()).rho(eps, half[0]))
        blocks = 4 if apart else 2 if agreement < config.own_below else 1
        weights, rhos = [], []
        for place, count in enumerate(_shares(config.dim, directions) if blocks == 1 else half):
            v, rho = spectra[place].solve(shrinkages[place] * spectra[place].trace, count)
            weight = v * rho.abs() ** config.power
            weight = weight * (count**0.5 / parts[place].scale(weight))  # of unit variance each
            weights.append(weight * (_STRUCTURE_WEIGHT if place else 1.0))
            rhos.append(rho)
        rho, weight = torch.cat(rhos), torch.block_diag(*weights)  # type: ignore[no-untyped-call]
        order = torch.argsort(rho.abs(), descending=True, stable=True)
        rho, weight = rho[order], weight[:, order]
        kept = config.mean_kept if config.mean_kept is not None else agreement
        self.findings_ = Findings(
            tuple(rho.tolist()), shrinkages[0], agreement, kept, sum(directions), blocks
        )
        if config.rotated and not apart:
            weight = weight @ hartley(len(rho)).to(weight)
        encoder = self.make_encoder(inputs.num_features).to(inputs.device)
        encoder.weight.copy_(weight)
        if not apart:
            mean = torch.cat([moments.to_features(moments.mean[:, None])[:, 0] for moments in parts])
            encoder.shift.copy_((1 - kept) * (mean @ weight))
        encoder.mix.copy_(torch.eye(4) if apart else self._mixture(agreement, blocks))
        return encoder

    def _mixture(self, agreement: float, blocks: int) -> Tensor:
        """How hops are added, ``[blocks, hops + 1]``.

        Personalised PageRank shares weights between a node and its surroundings, which is right where they
        are alike; the latents themselves beside it let a reader tell them apart.
        """
        mix = torch.zeros(blocks, self.config.hops + 1, dtype=torch.float64)
        mix[0] = pagerank_weights(self.config.hops, self.config.restart)
        if blocks == 2:
            mix[1, 0] = self.config.restart * (1 - agreement)
        return mix

    def width(self, graph: RowGraph) -> int:
        """As set; fewer where the features have few directions."""
        return self._most_columns(graph.num_features)

    def _most_columns(self, in_dim: int) -> int:
        """Of embeddings: hops stand side by side where there are few directions, else at most two blocks."""
        directions = min(in_dim, self.config.basis)
        return int(min(self.config.dim, max(2 * directions, 4 * min(directions, self.config.side_by_side))))

    def describe(self) -> str:
        """How predictable the features are, and whether neighbours are alike."""
        return self.findings_.describe()

    def spectrum(self) -> tuple[float, ...]:
        """rho of every latent, largest first, as a correlation: between -1 and 1."""
        return self.findings_.correlations

    def own_facts(self) -> dict[str, Any]:
        """What was found, which also says how large the encoder is."""
        return {"recipe": _RECIPE, "findings": vars(self.findings_) | {"rho": list(self.findings_.rho)}}

    def take_facts(self, facts: Mapping[str, Any]) -> None:
        """The findings back from a file."""
        if facts.get("recipe") != _RECIPE:
            raise ConfigError(
                "the model was solved by an older recipe of LinearJEPA",
                fix="Fit it again, which takes seconds, or use the version of nodejepa that wrote it.",
            )
        self.findings_ = of_type(Findings, facts.get("findings"), "findings")


def _column_groups(graph: RowGraph) -> list[slice]:
    """The columns of the nodes, then those that describe the structure; one group where there is one kind."""
    own = graph.num_features - graph.structural
    return [slice(0, own), slice(own, None)] if 0 < own < graph.num_features else [slice(None)]


def _shares(total: int, directions: Sequence[int]) -> list[int]:
    """How many latents of each group: half of them each, more where the other has fewer directions."""
    if len(directions) == 1:
        return [min(total, directions[0])]
    own, other = directions
    first = min(own, max(total // 2, total - other))
    return [first, min(other, total - first)]


def hartley(size: int) -> Tensor:
    """The orthogonal matrix (cos(2 pi j k / n) + sin(2 pi j k / n)) / sqrt(n): rows spread over all columns.

    Latents fall off by orders of magnitude. A reader who standardises columns, as is usual, would scale
    noise up to what was found; rotated by this, columns hold a share of nearly each.
    """
    place = torch.arange(size, dtype=torch.float64)
    angle: Tensor = 2 * torch.pi * (torch.outer(place, place) % size) / size
    rotation: Tensor = (angle.cos() + angle.sin()) / size**0.5
    return rotation


def _agreement(rho: Tensor) -> float:
    """1 where neighbours only ever agree, 0 where they agree no more than they disagree."""
    total = float(rho.abs().sum())
    return max(0.0, 1 - 2 * float(rho[rho < 0].abs().sum()) / total) if total > 0 else 0.0
