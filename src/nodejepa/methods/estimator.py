"""What all pretraining methods share: settings, ``fit``, ``transform``, ``save`` and ``load``."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch

from nodejepa.config import override, to_dict
from nodejepa.diagnostics import TallRows
from nodejepa.errors import ConfigError
from nodejepa.graph import Graph, RowGraph
from nodejepa.graph_checks import Features
from nodejepa.memory import Room
from nodejepa.methods.arguments import (
    check_columns,
    check_config,
    check_folder,
    check_seed,
    check_sizes,
    dataset_key,
    pick_device,
)
from nodejepa.methods.habits import Habits, with_own_features
from nodejepa.methods.migrations import config_of_today
from nodejepa.methods.saved import restore_model, save_model
from nodejepa.nn.inputs import WholeGraph
from nodejepa.nn.stored import embed_stored
from nodejepa.nn.stored_inputs import StoredInputs, array_bytes
from nodejepa.principal import PrincipalAxes, ProjectedRows
from nodejepa.provenance import source_hash, versions
from nodejepa.tables import as_graph, graph_with_features, refuse_another
from nodejepa.tables.store import StoredGraph
from nodejepa.training.distributed import SINGLE, ProcessGroup
from nodejepa.training.logger import Logging
from nodejepa.training.run import History, Run


class Estimator(Habits, ABC):
    """A method that learns an encoder from a graph without labels.

    Args:
        config: all settings; the preset's if not given.
        preset: named settings, ``"paper"`` or ``"default"``.
        dataset: name of the data set where a preset differs between data sets.
        seed: of everything random.
        device: ``"auto"`` (CUDA if there is one), ``"cpu"`` or ``"cuda"``.
        settings: changes by name, as in :func:`nodejepa.config.override`: ``epochs=100`` or
            ``**{"masking.hops": 1}``.
    """

    name: ClassVar[str]
    config_class: ClassVar[type[Any]]
    encoder_: Any
    in_dim_: int
    history_: History
    max_columns: int | None = None  # columns; of wider embeddings ``fit`` keeps so many principal components
    reduction_: PrincipalAxes | None = None
    only_for_: str | None = None  # hash of the graph whose adjacency was among the features
    memory_limit: float | None = None  # gigabytes, of work on a graph on disk; none: as much as is free
    # who fits together: every process calls ``fit``, with the same graph and settings
    process_group: ProcessGroup = SINGLE

    def __init__(
        self,
        config: Any = None,
        *,
        preset: str = "default",
        dataset: str | None = None,
        seed: int = 0,
        device: str = "auto",
        **settings: Any,
    ) -> None:
        if config is None:
            config = self.preset(preset, dataset_key(dataset))
        self.config = override(check_config(config, self.config_class, self.name), settings)
        check_sizes(self.config)
        self.seed, self.device = check_seed(seed), device

    @classmethod
    @abstractmethod
    def preset(cls, name: str, dataset: str | None = None) -> Any:
        """The settings called ``name`` for a data set."""

    @abstractmethod
    def make_encoder(self, in_dim: int) -> Any:
        """The network that ``transform`` runs, with fresh weights."""

    @abstractmethod
    def learn(self, inputs: Any, run: Run | None, logging: Logging) -> tuple[Any, History]:
        """The encoder, learned from a graph, and the history of learning it: one record an epoch."""

    @abstractmethod
    def width(self, graph: RowGraph) -> int:
        """Columns of the embeddings, at most, if all are kept."""

    def describe(self) -> str:
        """What was found on the graph, in plain words; most methods cannot say."""
        return ""

    def spectrum(self) -> tuple[float, ...]:
        """How well each direction is predicted, best first; empty for methods that have no directions."""
        return ()

    def prepare(self, graph: Graph | StoredGraph) -> None:
        """Compute what the method needs of a graph's structure; ``fit`` finds it in the cache."""

    def fit(
        self,
        graph: Any,
        X: Any = None,
        *,
        out: str | Path | None = None,
        resume: bool = False,
        logging: Logging | None = None,
    ) -> Self:
        """Pretrain on a graph (or a PyG ``Data``, NetworkX or SciPy object, or a :class:`StoredGraph`).

        Args:
            graph: without features it is described by its structure; up to 50,000 nodes for no other graph.
            X: features ``[nodes, F]`` in place of the graph's own; a pandas frame is aligned by its index.
            out: run folder for history, checkpoints and the final model; none keeps all in memory.
            resume: go on with the run in ``out`` if there is one.
            logging: how often to checkpoint, TensorBoard.
        """
        self.only_for_ = None
        if not isinstance(graph, StoredGraph):
            graph = graph_with_features(with_own_features(graph, X))
            self.only_for_ = graph.structure_hash if graph.incomparable else None
        logging = logging or Logging(description=f"Pretraining {self.name}")
        if out is None:
            for asked, what in ((resume, "resume=True"), (logging.tensorboard, "tensorboard=True")):
                if asked:
                    raise ConfigError(f"{what} needs a run folder", fix="Name one with out=...")
            self._learn(graph, None, logging)
            return self
        if not self.process_group.leads:  # the folder is the first one's
            if self.process_group.decide(False):
                self._learn(graph, None, logging)
            return self
        run = Run(check_folder(out))
        with run.owned():
            run.start(
                self._facts(graph),
                resume=resume,
                config_of_today=lambda was: to_dict(config_of_today(self.name, self.config_class, was)),
            )
            if not self.process_group.decide(not run.model.exists()):
                return restore_model(self, run.folder)
            self._learn(graph, run, logging)
            run.require_there()
            self.save(run.folder)
            run.checkpoint.unlink(missing_ok=True)  # the finished model has taken its place
        return self

    def transform(self, graph: Any, X: Any = None) -> Features:
        """Embeddings ``[N, D]`` of a graph's nodes, rows in the graph's order; the graph may be a new one.

        float32, and dense but for floors, which leave sparse features sparse. ``X`` as in :meth:`fit`.
        """
        z = self._embed(self.inputs_to_encode(with_own_features(graph, X)))
        return z if self.reduction_ is None else self.reduction_.project(z).astype(np.float32)

    def _embed(self, inputs: WholeGraph) -> Features:
        with torch.no_grad():
            z: torch.Tensor | Features = self.encoder_.embed(inputs)
        return z.cpu().numpy() if isinstance(z, torch.Tensor) else z

    def transform_stored(self, graph: StoredGraph, scratch: Path | None = None) -> TallRows:
        """Embeddings of a graph on disk, computed by rows, layer by layer; ``scratch`` is for large files."""
        z = self._embed_stored(graph, scratch)
        return z if self.reduction_ is None else ProjectedRows(z, self.reduction_)

    def _embed_stored(self, graph: StoredGraph, scratch: Path | None) -> TallRows:
        self._refuse_to_encode(graph)
        check_columns(graph, self.in_dim_)
        self.encoder_.eval().cpu()
        with torch.no_grad():
            return embed_stored(self.encoder_, self._stored_inputs(graph, scratch))

    def _stored_inputs(self, graph: StoredGraph, scratch: Path | None) -> StoredInputs:
        return StoredInputs(graph, scratch, array_bytes(Room.of(self.memory_limit)))

    def inputs_to_encode(self, graph: Any) -> WholeGraph:
        """The graph as the fitted encoder takes it, checked; both are on the device afterwards."""
        graph = as_graph(graph)
        self._refuse_to_encode(graph)
        graph = graph_with_features(graph, comparable=self.only_for_ is None)
        check_columns(graph, self.in_dim_)
        device = pick_device(self.device)
        self.encoder_.eval().to(device)
        return WholeGraph(graph, device)

    def _refuse_to_encode(self, graph: RowGraph) -> None:
        if not hasattr(self, "encoder_"):
            raise ConfigError("the method has not been fitted", fix="Call fit or load first.")
        refuse_another(graph, self.only_for_)

    def save(self, folder: str | Path) -> None:
        """Write the trained encoder and its settings: safetensors and JSON, no pickle."""
        if not hasattr(self, "encoder_"):
            raise ConfigError("there is nothing to save", fix="Call fit first.")
        save_model(self, folder)

    @classmethod
    def load(cls, folder: str | Path, *, device: str = "auto") -> Self:
        """The method saved in a folder, ready to ``transform``."""
        return restore_model(cls(device=device), folder)

    def _learn(self, graph: Graph | StoredGraph, run: Run | None, logging: Logging) -> None:
        scratch = run.folder if run else None
        self.encoder_, self.history_ = self.learn(
            self._stored_inputs(graph, scratch)
            if isinstance(graph, StoredGraph)
            else WholeGraph(graph, pick_device(self.device)),
            run,
            logging,
        )
        self.in_dim_, self.reduction_ = graph.num_features, None
        if self.max_columns is not None:
            z: Features | TallRows = (
                self._embed_stored(graph, scratch)
                if isinstance(graph, StoredGraph)
                else self._embed(self.inputs_to_encode(graph))
            )
            self.reduction_ = PrincipalAxes.of(z, self.max_columns) if z.shape[1] > self.max_columns else None

    def own_facts(self) -> dict[str, Any]:
        """What a method must know beside its settings to build its encoder again; most need nothing."""
        return {}

    def take_facts(self, facts: Mapping[str, Any]) -> None:
        """Take :meth:`own_facts` back from a saved model."""

    def training_data(self, graph: RowGraph) -> dict[str, Any]:
        """What a run is trained on: resuming with anything else is refused."""
        shape = {"nodes": graph.num_nodes, "edges": graph.num_edges, "features": graph.num_features}
        return shape | {"hash": graph.content_hash}

    def _facts(self, graph: RowGraph) -> Mapping[str, Any]:
        return {
            "method": self.name,
            "config": to_dict(self.config),
            "seed": self.seed,
            "graph": self.training_data(graph),
            "max_columns": self.max_columns,
            "versions": versions(),
            "source_hash": source_hash(),
        }
