"""Small trainings in groups of forked processes, all from one process that has the libraries loaded."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sys
import traceback
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from tests.forked import Forked
from torch import nn

from nodejepa.data import load_dataset
from nodejepa.errors import NodeJEPAError
from nodejepa.graph import Graph
from nodejepa.methods import make_method
from nodejepa.methods.estimator import Estimator
from nodejepa.tables import StoredGraph
from nodejepa.tables import store as store_module
from nodejepa.tables.prepare import prepare_store
from nodejepa.training.distributed import ProcessGroup, Team, join
from nodejepa.training.logger import Logging


def graph() -> Graph:
    rng = np.random.default_rng(7)
    source, target = rng.integers(0, 120, (2, 700))
    return Graph.from_edges(source, target, features=rng.random((120, 10)), num_nodes=120)


def make_store(folder: Path, labels: bool = False) -> Path:
    """The same graph on disk; classes are signs of the first feature."""
    given = graph()
    source, target = given.adjacency.tocoo().coords
    once = source < target
    edges = pa.table({"source": source[once], "target": target[once]})
    pq.write_table(edges, folder / "edges.parquet")
    columns = {f"x{j}": column for j, column in enumerate(np.asarray(given.features).T)}
    if labels:
        columns["kind"] = np.where(columns["x0"] > np.median(columns["x0"]), "high", "low")
    pq.write_table(pa.table({"id": np.arange(given.num_nodes), **columns}), folder / "nodes.parquet")
    files, named = (folder / "edges.parquet", folder / "nodes.parquet"), {"labels": "kind"} if labels else {}
    prepare_store(*files, out=folder / "graph.store", **named)
    return folder / "graph.store"


def exchange() -> dict:
    """What the operations of a group give this process."""
    group = join(wait_seconds=60, step_seconds=60)
    x = torch.tensor([0.0, 1.0]) + group.rank
    weight = nn.Parameter(torch.zeros(1))
    weight.grad = torch.full((1,), float(group.rank)) / 1.5
    group.sum_gradients([weight, nn.Parameter(torch.zeros(2))])
    return {
        "sum": group.all_reduce(x).tolist(),
        "gradient": weight.grad.tolist(),
        "bytes": group.broadcast(b"first" if group.leads else b"another").decode(),
        "decided": [group.decide(group.leads), group.decide(not group.leads)],
    }


def train(order: dict, out: str | None) -> dict:
    if order.get("exchange"):
        return exchange()
    method = order.get("method", "nodejepa")
    preset = "paper" if method == "nodejepa" else "default"
    estimator = make_method(method, preset=preset, settings=order["settings"])
    if order.get("joined"):
        estimator.process_group = join(wait_seconds=order.get("wait", 60), step_seconds=60)
    stop = order.get("stop_rank")
    if stop is not None and estimator.process_group.rank == stop:
        steps, original = [], torch.optim.AdamW.step

        def step(self, *more):
            steps.append(1)
            if len(steps) > order["stop_at"]:
                os._exit(9)  # as a kill: nothing is closed or said
            return original(self, *more)

        torch.optim.AdamW.step = step
    if "store" in order:
        return embed_store(order, estimator)
    given = load_dataset(order["dataset"]).graph if "dataset" in order else graph()
    estimator.fit(given, out=out, resume=out is not None, logging=Logging(checkpoint_epochs=1))
    if not hasattr(estimator, "encoder_"):
        return {"sha": "nothing to do"}  # the leader found a finished model, which is the leader's
    sha = hashlib.sha256()
    for name, tensor in sorted(estimator.encoder_.state_dict().items()):
        sha.update(name.encode() + tensor.numpy().tobytes())
    weights = torch.cat([t.flatten() for t in estimator.encoder_.state_dict().values()])
    loss = estimator.history_[-1].get("loss")
    return {"sha": sha.hexdigest(), "weights": weights.tolist(), "loss": loss}


def embed_store(order: dict, estimator: Estimator) -> dict:
    """Fit and transform; ``die_at``: after so many messages about columns the rank in question is gone.

    ``local``: so many are on one machine each, and read the graph by blocks of ``rows``.
    """
    if "rows" in order:
        store_module._LEAST_ROWS, store_module.BLOCK_CELLS = order["rows"], 1
    given = StoredGraph(order["store"]) if order["store"] else graph()
    if "memory_limit" in order:
        estimator.memory_limit = order["memory_limit"]
    if "local" in order:
        assert estimator.process_group.team.size == order["local"]
    if estimator.process_group.rank == order.get("die_rank"):
        messages, name = [], "receive" if estimator.process_group.leads else "send"
        owner, name = (Team, "wait") if "local" in order else (ProcessGroup, name)
        original = getattr(owner, name)

        def exchange(self, *more):
            messages.append(1)
            if len(messages) > order["die_at"]:
                os._exit(9)
            return original(self, *more)

        setattr(owner, name, exchange)
    scratch = Path(order["scratch"]) if "scratch" in order else None
    z = estimator.fit(given).transform(given, scratch=scratch)
    rows = z[: z.shape[0]]
    return {"sha": hashlib.sha256(rows.tobytes()).hexdigest(), "z": rows.tolist()}


def fleet(folder: Path, orders: list[dict]) -> list:
    """What groups of processes end with, one group after another, all from one process."""
    (folder / "orders.json").write_text(json.dumps(orders))
    env = {**os.environ, "OMP_NUM_THREADS": "1", "NODEJEPA_CACHE": str(folder / "cache")}
    code, said = Forked(f"from {__name__} import run_all; run_all()", folder, env=env).wait()
    assert code == 0, said[-3000:]
    return json.loads((folder / "results.json").read_text())


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def forked_launch(arguments: list[str], workers: int) -> int:
    """In the place of ``launch``: the same workers without torchrun, which takes half a minute to start."""
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(workers)}
    where |= {"LOCAL_WORLD_SIZE": str(workers)} | loopback()
    code = "import sys, torch; torch.set_num_threads(1); from nodejepa.worker import work; work(sys.argv[1:])"
    envs = [os.environ | where | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(workers)]
    ends = [one.wait() for one in [Forked(code, *arguments, env=env) for env in envs]]
    sys.stdout.write("".join(said for _, said in ends))
    return max(code for code, _ in ends)


def loopback() -> dict[str, str]:
    return {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}


def start(order: dict, folder: Path) -> list[int]:
    """The processes of a group, each with the libraries loaded and used already."""
    size, port, children = order.get("size", 1), free_port(), []
    for rank in range(order.get("started", size)):
        process = os.fork()
        if process == 0:
            code = 1
            try:
                where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
                local = order.get("local", 1)
                where |= {"LOCAL_WORLD_SIZE": str(local), "LOCAL_RANK": str(rank % local)}
                os.environ.update({**where, **loopback(), "RANK": str(rank), "WORLD_SIZE": str(size)})
                out = str(folder / order["out"]) if "out" in order else None
                try:
                    found = train(order, out)
                except NodeJEPAError as error:
                    found = {"error": str(error)}
                (folder / f"rank-{rank}.json").write_text(json.dumps(found))
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        children.append(process)
    return children


def run(order: dict, folder: Path) -> list:
    """What the processes of a group end with: a result, the words of an error, or an exit code."""
    results = []
    for rank, process in enumerate(start(order, folder)):
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        told = folder / f"rank-{rank}.json"
        results.append(json.loads(told.read_text()) if code == 0 else {"code": code})
        told.unlink(missing_ok=True)
    return results


def run_all() -> None:
    """In a process of its own: what is loaded when it is first used is loaded once for all groups."""
    torch.set_num_threads(1)
    place = Path(sys.argv[1])
    orders = json.loads((place / "orders.json").read_text())
    train({name: orders[0][name] for name in ("method", "settings") if name in orders[0]}, None)
    (place / "results.json").write_text(json.dumps([run(order, place) for order in orders]))
