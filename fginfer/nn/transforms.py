"""Operators under torch.func: grad and vmap want to be told how to go back and how to map, and jvp would get zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from fginfer.errors import SettingsError

NO_SECOND = "layers have no second derivatives but of crf_loss, marginals and log_partition"


def as_function(
    op: Any, mapped: Callable[..., Any], context: Callable[..., None] | None = None, back: Any = None
) -> Any:
    """The operator as layers call it. `mapped` is its rule under vmap, which is given what calls it; `context` and
    `back` are those of its derivative, if it has one."""

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(*given: Any) -> Any:
            return op(*given)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            if context is not None:
                context(ctx, inputs, output)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            if back is None:
                raise SettingsError(NO_SECOND)
            return back(ctx, *gradients)

        @staticmethod
        def vmap(info: Any, in_dims: Any, *given: Any) -> Any:
            return mapped(call, info, in_dims, *given)

    def call(*given: Any) -> Any:
        within = _innermost()
        if within == "Jvp":
            raise SettingsError(
                "layers have no derivative forwards (jvp, jacfwd, hessian); take torch.func.grad, jacrev or backward()"
            )
        return Function.apply(*given) if within in ("Grad", "Vmap") else op(*given)

    return call


def is_blind() -> bool:
    """Is this no place to look at values: code that is compiled, mapped or differentiated as a function?"""
    return torch.compiler.is_compiling() or _innermost() != ""


def _innermost() -> str:
    """The transform of torch.func that is at work: Grad, Jvp, Vmap or Functionalize; none in code that is compiled."""
    if torch.compiler.is_compiling() or torch._C._functorch.maybe_current_level() is None:
        return ""
    name: str = torch._C._functorch.peek_interpreter_stack().key().name
    return name
