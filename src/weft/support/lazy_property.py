"""``lazy_property``: an attribute that is computed when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class lazy_property(Generic[T]):  # noqa: N801 - a decorator, as property is one
    """An attribute that a method computes when it is first asked for; the object keeps the result.

    ``functools.cached_property`` of Python 3.11 holds a lock meanwhile, one for all objects of the
    class. A child that is forked in that time waits for the lock for ever, and two threads that
    compile wait for each other. Here two threads that ask at once may both compute the value, which
    has to be the same; one of the results is kept.

    >>> class Square:
    ...     def __init__(self, side):
    ...         self.side = side
    ...
    ...     @lazy_property
    ...     def area(self):
    ...         print("computed")
    ...         return self.side**2
    >>> square = Square(3)
    >>> square.area, square.area
    computed
    (9, 9)
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        value: T = instance.__dict__.setdefault(self._name, self.function(instance))
        return value
