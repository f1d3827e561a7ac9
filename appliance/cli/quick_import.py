"""Importing without what takes a third of it: looking for garbage, and compiling methods of dataclasses."""

from __future__ import annotations

import dataclasses
import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any

METHODS_COME_COMPILED = sys.version_info >= (3, 13)
"""Since Python 3.13 a class's methods are compiled together, and there is little to gain."""


@contextmanager
def quick_import() -> Iterator[None]:
    """Import quickly until the context is left; to be used while nothing but importing is done.

    Next to nothing that importing makes is garbage, so it is not looked for; what was made is never looked at again.
    Before 3.13 `dataclasses` compiles six functions for each class, which takes longer than all else that importing
    the house does. Meanwhile, all of them but `__init__` are closures that do the same.
    """
    private = [] if METHODS_COME_COMPILED else [name for name in _CLOSURES if hasattr(dataclasses, name)]
    replaced = {name: getattr(dataclasses, name) for name in private}
    gc.disable()
    for name in replaced:
        setattr(dataclasses, name, _CLOSURES[name])
    try:
        yield
    finally:
        for name, function in replaced.items():
            setattr(dataclasses, name, function)
        gc.freeze()
        gc.enable()


def _repr(fields: Sequence[dataclasses.Field[Any]], _: object) -> Any:
    names = [field.name for field in fields]

    @recursive_repr("...")
    def show(self: object) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({values})"

    return show


def _hash(fields: Sequence[dataclasses.Field[Any]], _: object) -> Any:
    values = _values_of([field.name for field in fields])
    return lambda self: hash(values(self))


def _compare(method: str, operator: str, own: str, other: str, **scope: Any) -> Any:
    """`own` is the text of the tuple to compare, `(self.a,self.b,)`."""
    if operator != "==":
        return _COMPILE_COMPARISON(method, operator, own, other, **scope)
    values = _values_of([each.removeprefix("self.") for each in own.strip("()").split(",") if each])

    def equal(self: object, other: object) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


def _values_of(names: Sequence[str]) -> Callable[[object], tuple[Any, ...]]:
    """What makes a tuple of an object's attributes."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda it: tuple([getattr(it, name) for name in names])


def _frozen(cls: Any, fields: Sequence[dataclasses.Field[Any]], _: object) -> tuple[Any, Any]:
    names = frozenset(field.name for field in fields)

    def set_attribute(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete_attribute(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    set_attribute.__name__, delete_attribute.__name__ = "__setattr__", "__delattr__"  # by these they are found
    return set_attribute, delete_attribute


_CLOSURES = {"_repr_fn": _repr, "_hash_fn": _hash, "_cmp_fn": _compare, "_frozen_get_del_attr": _frozen}
_COMPILE_COMPARISON: Any = getattr(dataclasses, "_cmp_fn", None)
