"""What every test may use: the real data if it is there, a private cache, a toy graph."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from tests import small

from nodejepa.data import Dataset
from nodejepa.graph import Graph

settings.register_profile(
    "nodejepa",
    deadline=None,  # shared machines stall; a slow example is no failure
    derandomize=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("nodejepa")

for name in ("COLUMNS", "LINES"):  # set in a process of xdist; consoles made on import would keep that width
    os.environ.pop(name, None)


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of the real benchmark graphs; tests that need it are skipped where it is missing."""
    beside_checkout = Path(__file__).resolve().parents[2] / "shared" / "datasets"
    root = Path(os.environ.get("NODEJEPA_DATA") or beside_checkout)
    if not (root / "Amazon" / "Photo" / "raw").is_dir():
        pytest.skip(f"needs the real graphs: set NODEJEPA_DATA to their folder (looked in {root})")
    return root


@pytest.fixture(autouse=True, scope="session")
def _private_cache(tmp_path_factory: pytest.TempPathFactory):
    """Tests never read or write the user's own cache, and draw their maps in fewer steps."""
    patch = pytest.MonkeyPatch()
    patch.setenv("NODEJEPA_CACHE", str(tmp_path_factory.mktemp("nodejepa-cache")))
    patch.setattr("nodejepa.report.maps._TSNE_STEPS", 250)  # maps are most of a report's time
    yield
    patch.undo()


@pytest.fixture(scope="session")
def toy_graph() -> Graph:
    """60 nodes in two communities, 8 dense features that lean on the community."""
    rng = np.random.default_rng(7)
    community = np.repeat([0, 1], 30)
    chance = np.where(community[:, None] == community[None, :], 0.2, 0.02)
    source, target = np.nonzero(np.triu(rng.random((60, 60)) < chance, k=1))
    features = rng.normal(size=(60, 8)) + community[:, None]
    return Graph.from_edges(source, target, features=features, num_nodes=60)


@pytest.fixture(scope="session")
def small_digits() -> Dataset:
    """What stands for ``digits`` where its size would only take time."""
    return small.small_digits()


class Run:
    """Runs commands in this process."""

    def __init__(self, capsys) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        """Exit code, stdout and stderr; tracebacks are for ``--debug``."""
        from nodejepa.cli import main

        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        out, err = self._capsys.readouterr()
        assert "Traceback" not in out + err or "--debug" in arguments or os.environ["NODEJEPA_DEBUG"]
        return int(left.value.code or 0), out, err

    def ok(self, *arguments: object) -> tuple[str, str]:
        """Stdout and stderr of a command that ends well."""
        code, out, err = self(*arguments)
        assert code == 0, err
        return out, err

    def refused(self, *arguments: object) -> str:
        """What is said against the command, as one line."""
        code, _, err = self(*arguments)
        assert code == 2, (arguments, err)
        return " ".join(err.split())


@pytest.fixture
def run(capsys, monkeypatch) -> Run:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NODEJEPA_DEBUG", "")  # put back afterwards, whatever --debug does to it
    return Run(capsys)
