"""One of several processes that pretrain or embed together: what torchrun starts, and Ray Train calls.

``nodejepa pretrain GRAPH --workers 2 ...`` does it on one machine. On several, on each of them:

    torchrun --nnodes=2 --nproc-per-node=4 --max-restarts=3 --rdzv-backend=c10d --rdzv-id=mine \
        --rdzv-endpoint=FIRST:29400 -m nodejepa.worker GRAPH --out runs/mine --set micro_batches=8 ...

Options are those of ``nodejepa pretrain``; ``-m nodejepa.worker embed RUN STORE --out z.parquet`` embeds a
graph store, of which every machine has a copy at the same place, as of the run. A worker always
goes on with the run in the folder: it may have been started again. Only the first process reads and writes
the folder. A mistake in the command ends all of it: starting the workers again would not mend it.
"""

import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn


def work(arguments: Sequence[str]) -> NoReturn:
    """Do a command, ``pretrain`` if none is named, as one of a group; leaves with its exit code."""
    from nodejepa.cli import main as run
    from nodejepa.errors import TrainingError

    named = arguments[:1] and arguments[0] in ("pretrain", "embed", "embed-graph")
    command, *more = arguments if named else ["pretrain", *arguments]
    try:
        run([command, "--as-worker", *more])
    except SystemExit as ended:
        wrong = ended.code == 2 and not isinstance(ended.__context__, TrainingError | OSError)
        if wrong and "TORCHELASTIC_RUN_ID" in os.environ:  # the parent is torchrun's agent
            os.kill(os.getppid(), signal.SIGTERM)
        raise


if __name__ == "__main__":
    work(sys.argv[1:])
