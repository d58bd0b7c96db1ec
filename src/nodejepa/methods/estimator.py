"""What all pretraining methods share: settings, ``fit``, ``transform``, ``save`` and ``load``."""

from __future__ import annotations

import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast, overload

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nodejepa.config import (
    NonNegativeInt,
    PositiveInt,
    flatten,
    of_type,
    override,
    setting_of_type,
    to_dict,
)
from nodejepa.diagnostics import PrincipalAxes, RowArray
from nodejepa.errors import CheckpointError, ConfigError, GraphError
from nodejepa.files import parse_json, source_hash, versions
from nodejepa.graph import Graph, RowGraph
from nodejepa.graph_checks import Features
from nodejepa.machine import Room
from nodejepa.methods.migrations import config_of_today
from nodejepa.nn.hop_encoder import HopEncoder
from nodejepa.nn.inputs import RowInputs, WholeGraph, pick_device
from nodejepa.nn.workspace import array_bytes
from nodejepa.training.distributed import SINGLE, ProcessGroup
from nodejepa.training.logger import Logging
from nodejepa.training.run import (
    History,
    Run,
    check_history,
    load_into,
    load_tensors,
    refuse_others,
    save_tensors,
)

_LIGHT = 0.1  # mean weight of edges below which embeddings are nearly those of the features alone
_KEPT = "kept."  # before the names of the principal axes in a model

if TYPE_CHECKING:
    from nodejepa.tables.store import StoredGraph


@dataclass(frozen=True)
class _Facts:
    """What every saved model says; methods add facts of their own."""

    config: dict[str, Any]
    seed: NonNegativeInt
    in_dim: NonNegativeInt
    history: list[Any]
    max_columns: PositiveInt | None = None
    only_for: str | None = None
    feature_names: tuple[str, ...] | None = None
    edges: str | None = None
    encoding: str = ""


class Estimator(ABC):
    """A method that learns an encoder from a graph without labels.

    Args:
        config: all settings; the preset's if not given.
        preset: named settings, ``"paper"`` or ``"default"``.
        dataset: name of the data set where a preset differs between data sets.
        seed: the random seed.
        device: ``"auto"`` (CUDA if there is one), ``"cpu"`` or ``"cuda"``.
        settings: changes by name, as in :func:`nodejepa.config.override`: ``epochs=100`` or
            ``**{"masking.hops": 1}``.
    """

    name: ClassVar[str]  # under which records and files know it
    title: ClassVar[str] = ""  # what tables call it
    summary: ClassVar[str] = ""
    citation: ClassVar[str] = "-"
    config_class: ClassVar[type[Any]]
    presets: ClassVar[tuple[str, ...]] = ("default",)
    about_presets: ClassVar[str] = ""  # where their names do not tell
    seeded: ClassVar[bool] = True
    trained: ClassVar[bool] = True
    by_gradient: ClassVar[bool] = True  # or solved in closed form
    supervised: ClassVar[bool] = False  # whether fit needs labels and a split

    encoder_: Any
    in_dim_: int
    history_: History
    max_columns: int | None = None  # columns; of wider embeddings ``fit`` keeps so many principal components
    reduction_: PrincipalAxes | None = None
    only_for_: str | None = None  # hash of the graph whose adjacency was among the features
    feature_names_: tuple[str, ...] | None = None  # columns of the table that the fitted features are from
    encoding_: str = ""  # identifies how they were made of it
    edges_: str | None = None  # what kind of edges the fitted graph has; older models do not know
    output_: Literal["default", "pandas"] = "default"
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
            config = self.preset(preset, dataset)
        elif not isinstance(config, self.config_class):
            raise ConfigError(
                f"config is of type {type(config).__name__}",
                where=self.name,
                fix=f"Give a {self.config_class.__name__}, or name a preset and single settings: "
                f"make_method({self.name!r}, preset=..., settings={{...}}).",
            )
        self.config = override(config, settings)
        self.seed, self.device = int(setting_of_type(NonNegativeInt, seed, "seed")), device

    @classmethod
    def preset(cls, name: str = "default", dataset: str | None = None) -> Any:
        """The settings called ``name``, one of :attr:`presets`, for a data set."""
        if name not in cls.presets:
            raise ConfigError(
                f"method {cls.name} has no preset {name!r}", fix=f"Use one of {', '.join(cls.presets)}."
            )
        if not isinstance(dataset, str | None):
            raise ConfigError(
                f"dataset is a {type(dataset).__name__}", fix="Give the data set's name, or leave it out."
            )
        return cls.preset_config(name, dataset.lower() if dataset else None)

    @classmethod
    def preset_config(cls, name: str, dataset: str | None) -> Any:  # noqa: ARG003 - one for all
        """What a preset is; methods that have several say it."""
        return cls.config_class()

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

    def check_processes(self, count: int) -> None:
        """Refuse so many processes where the method cannot share its work between them."""
        if count > 1:
            raise ConfigError(
                f"{self.name} has no work that processes could share", where="workers", fix="Use one process."
            )

    def prepare(self, graph: RowGraph) -> None:  # noqa: B027 - most need nothing
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
        """Pretrain on a graph in memory or on disk (or a PyG ``Data``, NetworkX or SciPy object).

        Args:
            graph: without features it is described by its structure; up to 250,000 nodes for no other graph.
            X: features ``[nodes, F]`` in place of the graph's own; a pandas frame is aligned by its index.
            out: run folder for history, checkpoints and the final model; none keeps all in memory.
            resume: go on with the run in ``out`` if there is one.
            logging: how often to checkpoint, what to show.
        """
        graph = with_features(as_row_graph(graph, X))
        incomparable = isinstance(graph, Graph) and graph.incomparable
        self.only_for_ = graph.structure_hash if incomparable else None
        self.feature_names_, self.encoding_ = _columns_of(graph) or None, getattr(graph, "encoding", "")
        self.edges_ = _kind_of_edges(graph)
        _warn_of_light_edges(graph)
        logging = logging or Logging(description=f"Pretraining {self.name}")
        if out is None:
            if resume:
                raise ConfigError("resume=True needs a run folder", fix="Name one with out=...")
            self._learn(graph, None, logging)
        elif self.process_group.leads:  # the folder is the first one's
            with Run(out).owned() as run:
                self._run(graph, run, resume, logging)
        elif not self.process_group.decide(False):
            self._learn(graph, None, logging)
        return self

    def _run(self, graph: RowGraph, run: Run, resume: bool, logging: Logging) -> None:
        """Begin, go on with or take over what is in a run folder."""
        facts = self._identity() | {
            "graph": self.training_data(graph),
            "max_columns": self.max_columns,
            "source_hash": source_hash(),
        }
        run.start(
            facts,
            resume=resume,
            config_of_today=lambda was: to_dict(config_of_today(self.name, self.config_class, was)),
        )
        if self.process_group.decide(run.model.exists()):  # all of them know that it is finished
            self._restore(run.folder)
            return
        self._learn(graph, run, logging)
        run.require_there()
        self.save(run.folder)
        run.checkpoint.unlink(missing_ok=True)  # the finished model has taken its place

    @overload
    def transform(self, graph: StoredGraph, X: None = None, *, scratch: Path | None = None) -> RowArray: ...

    @overload
    def transform(self, graph: Any, X: Any = None, *, scratch: Path | None = None) -> Features: ...

    def transform(self, graph: Any, X: Any = None, *, scratch: Path | None = None) -> Features | RowArray:
        """Embeddings ``[N, D]`` of a graph's nodes, rows in the graph's order; the graph may be a new one.

        float32, and dense but for untrained baselines, which leave sparse features sparse. ``X`` as in
        :meth:`fit`. Embeddings of a graph on disk are read as ``z[low:high]`` or ``z[nodes]``; what of them
        is too large for memory is a file in the folder ``scratch``. Of several processes all call it, and
        the first has the rows.
        """
        self._share()
        graph = as_row_graph(graph, X)
        self._check_columns(graph)
        z = self._embed(self.inputs_to_encode(graph, scratch), scratch)
        z = z if self.reduction_ is None else self.reduction_.reduce(z)
        if self.output_ == "default" or not isinstance(graph, Graph):
            return z
        from nodejepa.tables import embeddings_frame

        frame: Features = embeddings_frame(graph.node_ids, z)
        return frame

    def _check_columns(self, graph: RowGraph) -> None:
        """Refuse features of other columns; warn of the same columns made in another way."""
        given, fitted = _columns_of(graph), self.feature_names_
        if given and fitted and given != fitted:
            raise GraphError(
                f"the features are columns {', '.join(given[:20])}, the encoder was fitted on "
                f"{', '.join(fitted[:20])}",
                where="features",
                fix="Give the same columns in the same order.",
            )
        encoding = getattr(graph, "encoding", "")
        if encoding and self.encoding_ and encoding != self.encoding_:
            warnings.warn(
                "the features of this graph were scaled and encoded anew, not as those of the graph that the "
                "encoder was fitted on, so the same values count as others: read it with "
                "read_graph(edges, nodes, schema=read_graph(FITTED EDGES, FITTED NODES).schema)",
                stacklevel=3,
            )

    def _embed(self, inputs: RowInputs, scratch: Path | None = None) -> Features | RowArray:
        """Several processes share the work of a linear encoder; a network is run by the first alone."""
        encoder, group = self.encoder_, self.process_group
        with torch.no_grad():
            z: Any
            if isinstance(encoder, HopEncoder):
                z = encoder.embed(inputs, group=group, scratch=scratch)
            else:
                z = encoder.embed(inputs) if group.leads else torch.empty(0, encoder.out_dim)
        if isinstance(z, Tensor):
            z = inputs.workspace.join([z]) if inputs.workspace.on_disk else z.cpu().numpy()
        embeddings: Features | RowArray = z
        return embeddings

    def _share(self) -> None:
        """Give all processes the model that the first one has, as a file would."""
        group = self.process_group
        if group.size == 1:
            return
        facts = group.broadcast(json.dumps(self._model_facts()).encode() if group.leads else b"")
        tensors = group.first(self._model_tensors)
        if not group.leads:
            self._take_model(tensors, parse_json(facts), "the first process")

    @property
    def out_dim_(self) -> int:
        """Columns of the embeddings of a fitted method."""
        self._require_fitted()
        return int(self.encoder_.out_dim if self.reduction_ is None else self.reduction_.axes.shape[1])

    def _require_fitted(self) -> None:
        if not hasattr(self, "encoder_"):
            raise ConfigError("the method has not been fitted", fix="Call fit or load first.")

    def inputs_to_encode(self, graph: Any, scratch: Path | None = None) -> RowInputs:
        """The graph as the fitted encoder takes it, checked; both are on one device afterwards."""
        self._require_fitted()
        graph = as_row_graph(graph)
        if self.only_for_ is not None:
            from nodejepa.tables import refuse_another

            refuse_another(graph, self.only_for_)
        graph = with_features(graph, comparable=self.only_for_ is None)
        if graph.num_features != self.in_dim_:
            raise GraphError(
                f"the graph has {graph.num_features} feature columns, the encoder expects {self.in_dim_}",
                where="features",
                fix="Give the same columns in the same order.",
            )
        if self.edges_ not in (None, _kind_of_edges(graph)):
            warnings.warn(
                f"the encoder was trained on {self.edges_} edges, these are {_kind_of_edges(graph)}: their "
                "embeddings may differ for that reason alone",
                stacklevel=3,
            )
        inputs = self._inputs(graph, scratch)
        self.encoder_.eval().to(inputs.device)
        return inputs

    def _inputs(self, graph: RowGraph, scratch: Path | None) -> RowInputs:
        """The only place that asks where a graph lies."""
        if isinstance(graph, Graph):
            return WholeGraph(graph, pick_device(self.device))
        from nodejepa.nn.stored_inputs import StoredInputs

        local = self.process_group.local  # processes that share the memory of this machine
        room = Room.of(self.memory_limit and self.memory_limit / local)
        memory = array_bytes(room) // (1 if room.given else local)
        return StoredInputs(cast(Any, graph), scratch, memory)

    def save(self, folder: str | Path) -> None:
        """Write the trained encoder and its settings: safetensors and JSON, no pickle."""
        self._require_fitted()
        save_tensors(Run(folder).model, self._model_tensors(), self._model_facts())

    def _identity(self) -> dict[str, Any]:
        """What runs and models say first: who made them, and how."""
        config = to_dict(self.config)
        return {"method": self.name, "config": config, "seed": self.seed, "versions": versions()}

    def _model_facts(self) -> dict[str, Any]:
        facts = self._identity() | {"in_dim": self.in_dim_, "history": self.history_} | self.own_facts()
        more = {
            "max_columns": self.max_columns,
            "only_for": self.only_for_,
            "feature_names": self.feature_names_,
            "encoding": self.encoding_ or None,
            "edges": self.edges_,
        }
        return facts | {name: value for name, value in more.items() if value is not None}

    def _model_tensors(self) -> dict[str, Tensor]:
        axes = {} if self.reduction_ is None else vars(self.reduction_)
        return dict(self.encoder_.state_dict()) | {
            f"{_KEPT}{name}": torch.from_numpy(value) for name, value in axes.items()
        }

    @classmethod
    def load(cls, folder: str | Path, *, device: str = "auto") -> Self:
        """The method saved in a folder, ready to ``transform``."""
        return cls(device=device)._restore(folder)

    def _restore(self, folder: str | Path) -> Self:
        """Bring the method to what :meth:`save` wrote."""
        path = Run(folder).model
        self._take_model(*load_tensors(path), str(path))
        return self

    def _take_model(self, tensors: dict[str, Tensor], facts: Mapping[str, Any], where: str) -> None:
        """Everything that the file says is checked."""
        if facts.get("method") != self.name:
            raise CheckpointError(f"the model is a {facts.get('method')}, not a {self.name}", where=where)
        try:
            known, axes = of_type(_Facts, facts), None
            self.config = config_of_today(self.name, self.config_class, known.config)
            self.seed, self.in_dim_ = known.seed, known.in_dim
            self.history_ = check_history(known.history, where)
            self.take_facts(facts)
            self.max_columns, self.only_for_ = known.max_columns, known.only_for
            self.feature_names_, self.encoding_ = known.feature_names, known.encoding
            self.edges_ = known.edges
            if f"{_KEPT}axes" in tensors:
                axes = PrincipalAxes(*(tensors.pop(f"{_KEPT}{name}").numpy() for name in ("mean", "axes")))
            self.reduction_ = axes
            with torch.device("meta"):  # takes no memory, whatever sizes the file asks for
                sizes = self.make_encoder(self.in_dim_)
        except (KeyError, TypeError, ValueError, OverflowError, RuntimeError, ConfigError) as error:
            raise CheckpointError(
                f"the model's description is not understood: {error}", where=where
            ) from None
        refuse_others(sizes, tensors, where)
        self.encoder_ = self.make_encoder(self.in_dim_)
        load_into(self.encoder_, tensors, where)

    def _learn(self, graph: RowGraph, run: Run | None, logging: Logging) -> None:
        inputs = self._inputs(graph, run.folder if run else None)
        self.in_dim_, self.reduction_ = graph.num_features, None
        self.encoder_, self.history_ = self.learn(inputs, run, logging)
        if self.max_columns is not None:
            self.encoder_.eval().to(inputs.device)
            z = self._embed(inputs, run.folder if run else None)
            wide = z.shape[1] > self.max_columns and self.process_group.leads
            self.reduction_ = PrincipalAxes.of(z, self.max_columns) if wide else None

    def own_facts(self) -> dict[str, Any]:
        """What a method must know beside its settings to build its encoder again; most need nothing."""
        return {}

    def take_facts(self, facts: Mapping[str, Any]) -> None:  # noqa: B027 - most have none
        """Take :meth:`own_facts` back from a saved model."""

    def training_data(self, graph: RowGraph) -> dict[str, Any]:
        """What a run is trained on: resuming with anything else is refused."""
        shape = {"nodes": graph.num_nodes, "edges": graph.num_edges, "features": graph.num_features}
        return shape | {"hash": graph.content_hash}

    # what scikit-learn's users expect

    def fit_transform(self, graph: Any, X: Any = None, y: Any = None, **options: Any) -> Features:  # noqa: ARG002
        """``fit`` and then ``transform`` of the same graph; the result is kept as ``embedding_``.

        ``X`` are features ``[nodes, F]`` in the place of the graph's own; labels there are not looked at.
        """
        graph = as_row_graph(graph, X)
        self.embedding_: Features = self.fit(graph, **options).transform(graph)
        return self.embedding_

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Seed, device and every setting by its dotted name: what the constructor takes."""
        return {"seed": self.seed, "device": self.device, **flatten(self.config)}

    def set_params(self, **params: Any) -> Self:
        """Change seed, device or settings, by full or short names; ``fit`` again afterwards."""
        seed, device = params.pop("seed", self.seed), params.pop("device", self.device)
        changed = type(self)(override(self.config, params), seed=seed, device=device)
        self.config, self.seed, self.device = changed.config, changed.seed, changed.device
        return self

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:  # noqa: ARG002
        """Names of the columns of the embeddings: ``z0``, ``z1``, ..."""
        return np.array([f"z{i}" for i in range(self.out_dim_)], dtype=object)

    def set_output(self, *, transform: Literal["default", "pandas"] | None = None) -> Self:
        """What ``transform`` of a graph in memory gives: arrays, or pandas frames with its ids as index."""
        if transform not in (None, "default", "pandas"):
            raise ConfigError(f"the output {transform!r} is unknown", fix="Use default or pandas.")
        self.output_ = transform or self.output_
        return self

    def __sklearn_clone__(self) -> Self:
        """A copy that is not fitted."""
        copy = type(self)(self.config, seed=self.seed, device=self.device)
        return copy if self.output_ == "default" else copy.set_output(transform=self.output_)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(seed={self.seed}, config={json.dumps(to_dict(self.config))})"


def as_row_graph(source: Any, X: Any = None) -> RowGraph:
    """A graph, in memory or on disk; foreign objects are read by :func:`nodejepa.tables.as_graph`.

    ``X`` are features in the place of its own; one-dimensional ones are the labels that pipelines pass, and
    unused.
    """
    graph: RowGraph = source
    if not hasattr(type(source), "in_rows"):
        from nodejepa.tables import as_graph

        graph = as_graph(source)
    if X is None or np.ndim(X) == 1:
        if np.asarray(X).dtype.kind == "f":
            warnings.warn(
                "X has one dimension and is not used: features are [nodes, F], X.reshape(-1, 1) or "
                "frame[[name]] of one column",
                stacklevel=3,
            )
        return graph
    if isinstance(graph, Graph):
        return graph.with_features(X)
    raise GraphError(
        "a graph on disk has its features beside it", where="features", fix="Leave X out, or prepare it anew."
    )


def _kind_of_edges(graph: RowGraph) -> str:
    direction = "directed" if graph.directed else "undirected"
    return f"{direction} {'weighted' if graph.is_weighted else 'unweighted'}"


def _columns_of(graph: RowGraph) -> tuple[str, ...]:
    """Names of the columns that features were made of; a graph on disk has its schema beside it."""
    return getattr(graph, "columns", ())


def _warn_of_light_edges(graph: RowGraph) -> None:
    """Warn of weights so small that neighbours hardly count: a node's weight to itself is 1."""
    if not graph.is_weighted:
        return
    mean = float(graph.degrees.sum(dtype=np.float64)) / max(graph.num_edges, 1)
    if 0 < mean < _LIGHT:
        warnings.warn(
            f"edge weights are {mean:.2g} on average, and every node has a weight of 1 to itself, so "
            "neighbours hardly count: divide the weights by their mean",
            stacklevel=3,
        )


def with_features(graph: RowGraph, *, comparable: bool = False) -> RowGraph:
    """The graph; one in memory that has no features is described by its structure.

    ``comparable``: by descriptors alone, which mean the same on every graph.
    """
    if graph.num_features or not isinstance(graph, Graph):
        return graph
    from nodejepa.tables import graph_with_features

    return graph_with_features(graph, comparable=comparable)
