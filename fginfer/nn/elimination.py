"""log Z of a batch in operations of torch: the steps of fginfer.nn.sums, with gradients of any order."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, TypeAlias

import torch

from fginfer.errors import ModelError
from fginfer.nn.layer import Layer
from fginfer.nn.plan import Step
from fginfer.nn.transforms import is_blind

Tensor: TypeAlias = torch.Tensor

# Stands for -inf, since logsumexp has no derivative where all its terms are -inf. Sums of it are finite even in single
# precision, and its exp is 0 beside that of any score.
FORBIDDEN = -1e30


def log_partition_of(layer: Layer, unaries: Tensor, second: Tensor) -> Tensor:
    """log Z of each row; `second` are tables, or weights of tables that are known."""
    plan = layer.work.sum_plan()
    _check(unaries, second)
    n = layer.structure.n_variables
    live: list[Any] = _live(layer, unaries.clamp(min=FORBIDDEN), second.clamp(min=FORBIDDEN))
    first = n + layer.structure.n_factors
    total = unaries.new_zeros(len(unaries))
    for k, step in enumerate(plan.steps):
        message = torch.logsumexp(_joint(step, live), -1)
        live[first + k] = message
        if message.dim() == 1:
            total = total + message
    if not is_blind() and bool((total.detach() < FORBIDDEN / 2).any()):
        raise ModelError("an item has no labeling that is allowed")
    return total


def _live(layer: Layer, unaries: Tensor, second: Tensor) -> list[Any]:
    s = layer.structure
    begin, where = s.label_begin.tolist(), s.table_begin.tolist()
    own = [unaries[:, a:b] for a, b in pairwise(begin)]
    known = None if s.known_values is None else torch.as_tensor(s.known_values).to(unaries)
    found = []
    for f, t in enumerate(s.table_ids.tolist()):
        here = slice(where[t], where[t + 1])
        table = second[:, here] if known is None else known[here] * second[:, f, None]
        found.append(table.reshape(-1, *s.table_shapes[t]))
    return [*own, *found, *([None] * s.n_variables)]


def _joint(step: Step, live: list[Any]) -> Tensor:
    total: Any = None
    for m in step.members:
        part = live[m.number].permute(0, *(q + 1 for q in m.order)).reshape(-1, *m.shape)
        total = part if total is None else total + part
    joint: Tensor = total.expand(-1, *step.shape)
    return joint


def _check(unaries: Tensor, second: Tensor) -> None:
    if is_blind():
        return
    for name, x in (("unaries", unaries), ("tables or weights", second)):
        if bool((~(x.detach() < float("inf"))).any()):
            raise ModelError(f"{name} must be numbers or -inf, not NaN or inf")
