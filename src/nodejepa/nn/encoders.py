"""Encoders by name. All are called alike: ``encoder(inputs, hidden=None, token=None, rows=None)``."""

from typing import Literal, Unpack, get_args

from nodejepa.errors import ConfigError, did_you_mean
from nodejepa.nn.gat import GAT
from nodejepa.nn.gcn import GCN
from nodejepa.nn.gin import GIN
from nodejepa.nn.mlp import MLP
from nodejepa.nn.sage import GraphSAGE
from nodejepa.nn.stack import Encoder, StackSettings

EncoderKind = Literal["gcn", "sage", "gin", "gat", "mlp"]


def make_encoder(
    kind: str,
    in_dim: int,
    *,
    heads: int = 4,
    attention_dropout: float = 0.0,
    **settings: Unpack[StackSettings],
) -> Encoder:
    """A fresh encoder; ``heads`` and ``attention_dropout`` are those of ``"gat"``, the others have none."""
    if kind == "gat":
        return GAT(in_dim, heads=heads, attention_dropout=attention_dropout, **settings)
    plain: dict[str, type[GCN | GraphSAGE | GIN | MLP]] = {
        "gcn": GCN,
        "sage": GraphSAGE,
        "gin": GIN,
        "mlp": MLP,
    }
    if kind in plain:
        return plain[kind](in_dim, **settings)
    known = get_args(EncoderKind)
    hint = did_you_mean(kind, known)
    raise ConfigError(f"encoder {kind!r} is unknown", fix=f"{hint}Use one of {', '.join(known)}.")
