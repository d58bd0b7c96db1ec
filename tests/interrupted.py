"""Trainings that are broken off."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from nodejepa.training.run import Run


@contextmanager
def interrupted_after(epoch: int) -> Iterator[None]:
    """What trains inside is broken off once this epoch is written."""
    append = Run.append

    def stop(self, record):
        append(self, record)
        if record["epoch"] == epoch:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "append", stop)
        with pytest.raises(KeyboardInterrupt):
            yield
