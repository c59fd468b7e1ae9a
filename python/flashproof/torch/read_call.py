"""The arguments of a call of PyTorch's attention: read, and written again."""

from __future__ import annotations

from typing import Any

import torch

from .backward import is_within_transform
from .problem import NotJudgedError, SdpaArguments, check_call


def read_call(args: tuple[Any, ...], given: dict[str, Any]) -> SdpaArguments:
    """The arguments of a call as its kernel reads them; NotJudgedError for one that cannot be judged."""
    try:
        # The others have to be named.
        if len(args) > 6:
            raise TypeError(f"{len(args)} are positional")
        call = SdpaArguments(*args, **given)
    except TypeError as error:
        raise NotJudgedError(f"its arguments are not known here: {error}") from error
    if is_within_transform():
        raise NotJudgedError("it is within a transform of torch.func")
    check_call(call)
    return _under_autocast(call)


def keywords(call: SdpaArguments) -> dict[str, Any]:
    """The arguments, those that are not the defaults: older releases lack the last ones."""
    defaults = {name: one.default for name, one in SdpaArguments.__dataclass_fields__.items()}
    given = {name: getattr(call, name) for name in defaults}
    return {name: value for name, value in given.items() if value is not defaults[name]}


def _under_autocast(call: SdpaArguments) -> SdpaArguments:
    """The arguments as the kernel reads them: autocast rounds what is wider before."""
    device = call.query.device.type
    if not torch.is_autocast_enabled(device):
        return call
    dtype = torch.get_autocast_dtype(device)
    cast = {
        name: one.to(dtype)
        for name, one in call.tensors().items()
        if one.is_floating_point() and one.dtype != torch.float64
    }
    return SdpaArguments(**{**vars(call), **cast})
