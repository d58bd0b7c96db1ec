"""Predictors as their formulas are written: on all nodes, one head after another."""

from __future__ import annotations

import torch


def message_passing(model, context, s, masked, descriptors):
    """Run on all nodes, with the columns of targets struck out of S."""
    state = torch.zeros(len(masked), context.shape[1])
    state[~masked] = context
    from_context = s * (~masked).float()[None, :]
    for i in range(len(model.messages)):
        state = model.messages[i](from_context @ state) + (
            model.structure[i](descriptors) if model.structure else 0
        )
        if i < len(model.norms):
            state = torch.relu(model.norms[i](state))
    return state[masked]


def attention(model, context, masked, descriptors, heads):
    """Each target asks every context node, with its descriptor as the question."""
    query = model.query(descriptors[masked])
    key = model.key(context) + model.key_structure(descriptors[~masked])
    value, width = model.value(context), query.shape[1] // heads
    read = []
    for h in range(heads):
        part = slice(width * h, width * (h + 1))
        read.append(torch.softmax(query[:, part] @ key[:, part].T / width**0.5, dim=1) @ value[:, part])
    return model.out(model.norm(torch.cat(read, dim=1) + query))
