"""The same for tensors of torch: opaque operators, so that torch.compile, vmap and autocast leave them alone.

Operators take tensors and plain values only: a layer is known to them by its number, and settings are numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch

from fginfer.errors import ModelError, SettingsError
from fginfer.nn.elimination import log_partition_of
from fginfer.nn.layer import LAYERS, Layer, run_loss
from fginfer.nn.scores import Moments, Rows, Scores, Shapes, check_scores, check_shapes
from fginfer.nn.scores import check_labels as check_truth
from fginfer.nn.transforms import NO_SECOND, as_function
from fginfer.nn.work import NOISES

Tensor: TypeAlias = torch.Tensor
F = TypeVar("F", bound=Callable[..., Any])

# -- from tensors to arrays and back -----------------------------------------------------------------------------


def _array(x: Tensor) -> Any:
    return x.detach().cpu().to(torch.float64).numpy()


def _scores(layer: Layer, unaries: Tensor, second: Tensor) -> Scores:
    """Those an operator was given: its second tensor is tables, or weights, with one row for all or for each item."""
    s = layer.structure
    rows = _array(second)
    rows = rows[0] if len(rows) == 1 else rows
    known = s.known is not None
    return check_scores(s, _array(unaries), None if known else rows, rows if known else None)[0]


def _keys(keys: Tensor | None, batch: int) -> list[int | None]:
    return [None] * batch if keys is None else [int(k) for k in keys.reshape(-1).tolist()]


def _numbers(options: dict[str, Any]) -> list[float]:
    """Settings as numbers: a cost for each variable or for all, or what noise there is."""
    if "cost" in options:
        cost = options["cost"]
        return [float(c) for c in cost] if isinstance(cost, list) else [float(cost)]
    if not options:
        return []
    drawn = [options["samples"], options["sigma"], NOISES.index(options["noise"]), options["seed"]]
    return [float(x) for x in (*drawn, options.get("strength", 0.0))]


def _options(kind: str, numbers: Sequence[float]) -> dict[str, Any]:
    if kind == "hinge":
        return {"cost": numbers[0] if len(numbers) == 1 else list(numbers)}
    if kind != "perturbed":
        return {}
    samples, sigma, noise, seed, strength = numbers
    told = {"samples": int(samples), "sigma": sigma, "noise": NOISES[int(noise)], "seed": int(seed)}
    return told if strength == 0 else told | {"strength": strength}


def _back(rows: Rows, like: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of unaries and of tables or weights, a row an item."""
    second = rows.weights if rows.tables is None else rows.tables
    assert second is not None
    return _tensor(rows.unaries, like), _tensor(second, like)


def _tensor(x: Any, like: Tensor) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(x)).to(like.dtype).to(like.device)


def _second_size(layer: Layer) -> int:
    s = layer.structure
    return s.n_values if s.known is None else s.n_factors


# -- operators ---------------------------------------------------------------------------------------------------


@torch.library.custom_op("fginfer::loss", mutates_args=())
def loss_op(
    layer: int, kind: str, options: Sequence[float], truth: Tensor, keys: Tensor | None, unaries: Tensor, second: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """A loss of each item, and its gradients."""
    of = LAYERS[layer]
    scores = _scores(of, unaries, second)
    true = check_truth(of.structure, (len(unaries),), truth.detach().cpu().numpy())
    values, rows = run_loss(of.work, kind, scores, true, _keys(keys, len(unaries)), _options(kind, options))
    return (_tensor(values, unaries), *_back(rows, unaries))


@loss_op.register_fake
def _(layer: int, kind: str, options: Sequence[float], truth: Any, keys: Any, unaries: Tensor, second: Tensor) -> Any:
    batch = unaries.shape[0]
    return unaries.new_empty(batch), torch.empty_like(unaries), unaries.new_empty(batch, second.shape[1])


def _loss_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(output[1], output[2])
    ctx.set_materialize_grads(False)
    ctx.shared = inputs[6].shape[0] != inputs[5].shape[0]


def _loss_backward(ctx: Any, grad: Tensor | None, *of_gradients: Tensor | None) -> Any:
    """Gradients are outputs, too: who asks for their derivative would get zeros."""
    if any(g is not None for g in of_gradients):
        raise SettingsError(NO_SECOND)
    if grad is None:
        return (None,) * 7
    own, second = ctx.saved_tensors
    weighed = grad[:, None] * second
    return None, None, None, None, None, grad[:, None] * own, weighed.sum(0, True) if ctx.shared else weighed


loss_op.register_autograd(_loss_backward, setup_context=_loss_context)


@torch.library.custom_op("fginfer::answer", mutates_args=())
def answer_op(
    layer: int, kind: str, options: Sequence[float], keys: Tensor | None, unaries: Tensor, second: Tensor
) -> tuple[Tensor, Tensor]:
    """Marginals of labels, and what the way back needs: marginals of states, or labelings (and for "labels" these)."""
    of = LAYERS[layer]
    scores, known = _scores(of, unaries, second), _keys(keys, len(unaries))
    if kind == "labels":
        return unaries.new_empty(0), torch.from_numpy(of.work.best(scores, known).astype(np.int64))
    if kind == "sparse":
        found = of.work.sparsemap(scores, known)
        # The way back reads the supports: they are kept in double precision.
        return _tensor(found.labels, unaries), torch.from_numpy(np.concatenate([found.labels, found.states], 1))
    told = _options(kind, options)
    del told["strength"]
    mean, labels = of.work.interpolated(scores, known, **told)
    return _tensor(mean, unaries), torch.from_numpy(labels.astype(np.int64))


@answer_op.register_fake
def _(layer: int, kind: str, options: Sequence[float], keys: Any, unaries: Tensor, second: Tensor) -> Any:
    s, batch = LAYERS[layer].structure, unaries.shape[0]
    if kind == "labels":
        return unaries.new_empty(0), unaries.new_empty(batch, s.n_variables, dtype=torch.int64)
    if kind == "sparse":
        width = s.n_labels + int(s.state_begin[-1])
        return torch.empty_like(unaries), unaries.new_empty(batch, width, dtype=torch.float64)
    samples = int(options[0])
    return torch.empty_like(unaries), unaries.new_empty(batch, samples, s.n_variables, dtype=torch.int64)


@torch.library.custom_op("fginfer::answer_back", mutates_args=())
def answer_back_op(
    layer: int,
    kind: str,
    options: Sequence[float],
    keys: Tensor | None,
    unaries: Tensor,
    second: Tensor,
    saved: Tensor,
    gradient: Tensor,
) -> tuple[Tensor, Tensor]:
    """The gradients of an answer: rows of unaries, and of tables or weights."""
    of = LAYERS[layer]
    scores, given = _scores(of, unaries, second), _array(gradient)
    if not np.isfinite(given).all():
        raise ModelError("the gradient that comes back to the layer is not finite")
    if kind == "sparse":
        both, n = saved.numpy(), of.structure.n_labels
        found = Moments(np.ascontiguousarray(both[:, :n]), np.ascontiguousarray(both[:, n:]))
        return _back(of.work.sparsemap_back(scores, found, given), unaries)
    told = _options(kind, options)
    strength = told.pop("strength")
    labels = saved.numpy().astype(np.int32)
    known = _keys(keys, len(unaries))
    return _back(of.work.interpolated_back(scores, labels, given, known, strength, **told), unaries)


@answer_back_op.register_fake
def _(
    layer: int,
    kind: str,
    options: Sequence[float],
    keys: Any,
    unaries: Tensor,
    second: Tensor,
    saved: Tensor,
    gradient: Tensor,
) -> Any:
    return torch.empty_like(unaries), unaries.new_empty(unaries.shape[0], second.shape[1])


def _answer_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.told = inputs[:3]
    keys, unaries, second = inputs[3:]
    ctx.save_for_backward(keys, unaries, second, output[1])


def _answer_backward(ctx: Any, grad: Tensor, _: Any) -> Any:
    keys, unaries, second, saved = ctx.saved_tensors
    if ctx.told[1] == "labels":
        return None, None, None, None, None, None
    own, rows = _answer_back(*ctx.told, keys, unaries, second, saved, grad.contiguous())
    shared = second.shape[0] != unaries.shape[0]
    return None, None, None, None, own, rows.sum(0, True) if shared else rows


answer_op.register_autograd(_answer_backward, setup_context=_answer_context)


@torch.library.custom_op("fginfer::places", mutates_args=())
def places_op(layer: int, truth: Tensor) -> tuple[Tensor, Tensor]:
    """Where the scores of a labeling are: in a row of unaries, and in one of tables. An operator sees its labels, also
    those of a mapped axis, and can say which are wrong."""
    s, rows = LAYERS[layer].structure, truth.detach().cpu().numpy()
    if rows.size:
        check_truth(s, (len(rows),), rows)
    own, entries = s.label_begin[:-1] + rows, s.table_begin[s.table_ids] + s.states_at(rows)
    return torch.from_numpy(own.astype(np.int64)).to(truth.device), torch.from_numpy(entries).to(truth.device)


@places_op.register_fake
def _(layer: int, truth: Tensor) -> Any:
    s, batch = LAYERS[layer].structure, truth.shape[0]
    shapes = (batch, s.n_variables), (batch, s.n_factors)
    return tuple(truth.new_empty(shape, dtype=torch.int64) for shape in shapes)


# -- vmap: the mapped axis becomes one of the batch ----------------------------------------------------------------


def _mapped(tensors: Sequence[int], batched: Sequence[int]) -> Callable[..., Any]:
    """tensors: places of arguments with an axis for the batch; batched: those of them that may have one row for all."""

    def rule(call: Any, info: Any, in_dims: Any, *args: Any) -> Any:
        size, given = info.batch_size, list(args)
        rows = None
        for k in tensors:
            if given[k] is None:
                continue
            x = given[k].movedim(in_dims[k], 0) if in_dims[k] is not None else given[k].expand(size, *given[k].shape)
            rows = x.shape[1] if k not in batched else rows
            given[k] = x
        for k in tensors:
            if given[k] is not None:
                x = given[k]
                if k in batched and x.shape[1] == 1 and rows != 1:
                    x = x.expand(size, rows, *x.shape[2:])
                given[k] = x.reshape(-1, *x.shape[2:])
        out = call(*given)
        folded = tuple(x if x.numel() == 0 else x.reshape(size, -1, *x.shape[1:]) for x in out)
        return folded, tuple(None if x.numel() == 0 else 0 for x in out)

    return rule


_loss = as_function(loss_op, _mapped((3, 4, 5, 6), (6,)), _loss_context, _loss_backward)
_answer = as_function(answer_op, _mapped((3, 4, 5), (5,)), _answer_context, _answer_backward)
_answer_back = as_function(answer_back_op, _mapped((3, 4, 5, 6, 7), (5,)))
_places = as_function(places_op, _mapped((1,), ()))


def _not_compiled(f: F) -> F:
    """Compiled code leaves itself for this, and comes back."""
    disable: Callable[[F], F] = torch.compiler.disable
    return disable(f)


# -- what Layer calls ------------------------------------------------------------------------------------------------


def _given(layer: Layer, unaries: Any, tables: Any, weights: Any) -> tuple[Shapes, Tensor, Tensor]:
    """Two tensors in rows, in one precision: half precision, which autocast may give, becomes single."""
    tensors = [x if x is None or isinstance(x, Tensor) else torch.as_tensor(x) for x in (unaries, tables, weights)]
    if tensors[0] is None:
        raise ModelError("unaries are missing")
    s = layer.structure
    shapes = check_shapes(s, *tensors)
    dtype = torch.float32
    for x in tensors:
        if x is not None and x.is_floating_point():
            dtype = torch.promote_types(dtype, x.dtype)
    own = tensors[0].to(dtype).reshape(-1, s.n_labels)
    second = tensors[1] if s.known is None else tensors[2]
    size = _second_size(layer)
    if second is None:
        second = own.new_ones(1, size) if s.known is not None else own.new_zeros(1, 0)
    rows = second.to(dtype).to(own.device)
    return shapes, own, rows.reshape(-1, size) if size else own.new_zeros(1, 0)


def _keys_tensor(keys: Any, lead: tuple[int, ...]) -> Tensor | None:
    if keys is None:
        return None
    given = torch.as_tensor(keys)
    if tuple(given.shape) != lead or given.is_floating_point():
        raise SettingsError(f"keys must be whole numbers, one for each item, of shape {lead}, not {tuple(given.shape)}")
    return given.reshape(-1).to(torch.int64)


def _truth(layer: Layer, truth: Any, lead: tuple[int, ...]) -> Tensor:
    given = torch.as_tensor(truth)
    wanted = (*lead, layer.structure.n_variables)
    if tuple(given.shape) != wanted or given.is_floating_point():
        raise ModelError(f"labels must be whole numbers of the shape {wanted}, not {given.dtype} {tuple(given.shape)}")
    return given.reshape(-1, layer.structure.n_variables)


def _shaped(layer: Layer, rows: Tensor, lead: tuple[int, ...]) -> Tensor:
    s = layer.structure
    return rows.reshape(*lead, *((s.n_labels,) if s.uniform is None else (s.n_variables, s.uniform)))


def labels(layer: Layer, unaries: Any, tables: Any, weights: Any, keys: Any) -> Tensor:
    shapes, own, second = _given(layer, unaries, tables, weights)
    found = _answer(layer.number, "labels", [], _keys_tensor(keys, shapes.lead), own.detach(), second.detach())
    best: Tensor = found[1].reshape(*shapes.lead, layer.structure.n_variables)
    return best


def loss(
    layer: Layer, kind: str, truth: Any, unaries: Any, tables: Any, weights: Any, keys: Any, options: Any
) -> Tensor:
    shapes, own, second = _given(layer, unaries, tables, weights)
    true, known = _truth(layer, truth, shapes.lead), _keys_tensor(keys, shapes.lead)
    values = _loss(layer.number, kind, _numbers(options), true, known, own, second)[0]
    by_item: Tensor = values.reshape(shapes.lead)
    return by_item


def sparsemap(layer: Layer, unaries: Any, tables: Any, weights: Any, keys: Any) -> Tensor:
    shapes, own, second = _given(layer, unaries, tables, weights)
    found = _answer(layer.number, "sparse", [], _keys_tensor(keys, shapes.lead), own, second)
    return _shaped(layer, found[0], shapes.lead)


def interpolated(layer: Layer, unaries: Any, tables: Any, weights: Any, keys: Any, options: dict[str, Any]) -> Tensor:
    shapes, own, second = _given(layer, unaries, tables, weights)
    known = _keys_tensor(keys, shapes.lead)
    found = _answer(layer.number, "perturbed", _numbers(options), known, own, second)
    return _shaped(layer, found[0], shapes.lead)


# -- sums: operations of torch itself, with derivatives of any order; compiled code leaves itself for them -------------


@_not_compiled
def log_partition(layer: Layer, unaries: Any, tables: Any, weights: Any) -> Tensor:
    shapes, own, second = _given(layer, unaries, tables, weights)
    return log_partition_of(layer, own, second).reshape(shapes.lead)


@_not_compiled
def marginals(layer: Layer, unaries: Any, tables: Any, weights: Any) -> Tensor:
    shapes, own, second = _given(layer, unaries, tables, weights)
    # As a function of functions, so that whatever maps or differentiates the layer may have this inside.
    found = torch.func.grad(lambda x: log_partition_of(layer, x, second).sum())(own)
    needs = own.requires_grad or second.requires_grad
    return _shaped(layer, found if needs else found.detach(), shapes.lead)


@_not_compiled
def crf_loss(layer: Layer, truth: Any, unaries: Any, tables: Any, weights: Any) -> Tensor:
    shapes, own, second = _given(layer, unaries, tables, weights)
    s = layer.structure
    places, entries = _places(layer.number, _truth(layer, truth, shapes.lead).to(own.device))
    own_scores = own.gather(1, places).sum(1)
    if s.known is None:
        joint = second.expand(len(own), -1).gather(1, entries)
    else:
        assert s.known_values is not None
        joint = torch.as_tensor(s.known_values, dtype=own.dtype, device=own.device)[entries] * second
    value = log_partition_of(layer, own, second) - own_scores - joint.sum(1)
    return value.reshape(shapes.lead)
