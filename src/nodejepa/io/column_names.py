"""Names that say what a column is: the end of an edge, a weight, an id, or the index of a data frame."""

import re
from collections.abc import Sequence

# both ends of an edge; of several pairs the first counts
_PAIRS = """
source-target src-dst src-dest source-destination source-dest from-to u-v head-tail start-end
sender-receiver citing-cited follower-followee subject-object parent-child node1-node2 id1-id2 user1-user2
i-j row-col a-b x-y
"""
PAIRS = tuple((a, b) for a, _, b in (pair.partition("-") for pair in _PAIRS.split()))
ENDINGS = ("", "id", "node", "nodeid", "name", "uuid")
PARTNER = {a + end: b + end for end in ENDINGS for a, b in reversed(PAIRS)}
WEIGHTS = ("weight", "weights", "edgeweight")
# "label" names nodes in some formats and classes in others: never guessed
IDS = ("id", "nodeid", "node", "nodes", "uuid", "key", "vertex", "vertexid", "name")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_INDEX = re.compile(r"__index_level_\d+__|Unnamed: 0(\.\d+)?")  # what pandas calls an index without a name


def plain(name: str) -> str:
    """Letters and digits in lower case: ``Source_ID`` and ``sourceid`` are one name."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def words_of(name: str) -> set[str]:
    """The words in a name, in lower case: ``user`` and ``id`` of ``userId`` and of ``user_id``."""
    return {word.lower() for word in _WORD.findall(name)}


def unnamed(position: int) -> str:
    """How a column without a name is called; the first is 1."""
    return f"column {position}"


def speaks_of_a_graph(names: Sequence[str]) -> bool:
    """Whether the names of columns are known ones: both ends of an edge, or a node's id."""
    known = {plain(name) for name in names}
    return bool(known & set(IDS)) or any(name in known and PARTNER[name] in known for name in PARTNER)


def frame_indexes(names: Sequence[str]) -> tuple[str, ...]:
    """The columns that are the unnamed index of a data frame, which spreadsheets and pandas write along.

    In a text file that is a first column without a name where all others have one.
    """
    named = [name for i, name in enumerate(names, start=1) if name != unnamed(i)]
    first = names[:1] if len(names) > 1 and list(names[1:]) == named else ()
    return (*first, *(name for name in names if _INDEX.fullmatch(name)))
