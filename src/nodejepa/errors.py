"""The package's own errors: what is wrong, where, and what to do about it.

Everything a user can get wrong ends in a :class:`NodeJEPAError`; the command line prints it without a
traceback. Any other exception is a bug of ours. Messages speak of settings as ``name=value`` (``name=...``
where any value is meant); the command line rewrites them as its options.
"""

import difflib
from collections.abc import Iterable


def did_you_mean(given: object, known: Iterable[str], cutoff: float = 0.6) -> str:
    """``"Did you mean hops? "`` where something known looks much like it, else nothing.

    >>> did_you_mean("Hop", ["hops", "dim"])
    'Did you mean hops? '
    """
    near = nearest(given, known, cutoff)
    return f"Did you mean {near}? " if near else ""


def nearest(given: object, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name that looks most like the given one, if any looks much like it; case does not count."""
    names = {name.casefold(): name for name in reversed(list(known))}
    near = difflib.get_close_matches(str(given).casefold(), names, n=1, cutoff=cutoff)
    return names[near[0]] if near else None


class NodeJEPAError(Exception):
    """Something the user can mend: ``what`` is wrong, ``where``, and how to ``fix`` it."""

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        self.what, self.where, self.fix = what, where, fix
        place = f" (in {where})" if where else ""
        advice = f" {fix}" if fix else ""
        super().__init__(f"{what}{place}.{advice}")


class GraphError(NodeJEPAError):
    """The input cannot become a graph: bad edges, ids, weights or features."""


class DataError(NodeJEPAError):
    """A named graph or one of its files is missing, damaged or not what it claims to be."""


class EvaluationError(NodeJEPAError):
    """Labels, splits or embeddings do not fit together."""


class ConfigError(NodeJEPAError):
    """A setting is unknown, of the wrong type or out of range."""


class CheckpointError(NodeJEPAError):
    """A saved model or checkpoint is missing, damaged or belongs to something else."""


class TrainingError(NodeJEPAError):
    """Training cannot go on: the loss is not finite, or the run folder is in use."""
