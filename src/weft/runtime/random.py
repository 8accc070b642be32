"""Random numbers for programs: one generator, functions that fill arrays.

The numbers are those of numpy's Philox generator, a counter-based one (Salmon et al., "Parallel
random numbers: as easy as 1, 2, 3", 2011), from a seed of the operating system or of ``seed``.
They are not PyTorch's. Programs call the functions by name, ``weft.random.*``, through
``call_dps_packed``; the first argument is the number of the call in its program, which keeps two
calls with equal arguments apart. Importing the module registers them; the virtual machine does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft.runtime.ndarray import NDArray
from weft.runtime.registry import register_func
from weft.support.errors import IRValueError, wrong_type

_LOCK: Final = threading.Lock()
_STATE: Final[dict[str, np.random.Generator]] = {}


def seed(value: int | None = None) -> None:
    """Start the generator anew: equal seeds give equal numbers; None takes a fresh seed.

    >>> import weft
    >>> weft.random.seed(7)
    """
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise wrong_type("seed: expected an int or None", value)
    if value is not None and value < 0:
        raise IRValueError(f"seed: expected a number of 0 or more, got {value}")
    with _LOCK:
        _STATE["generator"] = np.random.Generator(np.random.Philox(value))


def _drawn(draw: Callable[[np.random.Generator], object]) -> Any:
    """What the generator gives; one thread at a time."""
    if "generator" not in _STATE:
        seed(None)
    try:
        with _LOCK:
            return draw(_STATE["generator"])
    except ValueError as error:  # numpy's words for a deviation below 0, an empty range ...
        raise IRValueError(f"random numbers: {error}") from error


def _fill(out: NDArray, values: object) -> None:
    target = np.dtype(str(out.dtype)) if str(out.dtype) != "bfloat16" else out.numpy().dtype
    with np.errstate(over="ignore"):  # a number beyond float16 is infinite there
        out.copyfrom(np.asarray(values).astype(target).reshape(out.shape))


@register_func("weft.random.uniform", override=True)
def uniform(_: int, low: float, high: float, out: NDArray) -> None:
    """Uniform in [low, high)."""
    values = _drawn(lambda generator: generator.random(out.shape, np.float64))
    kind = out.numpy().dtype
    scaled = (float(low) + (float(high) - float(low)) * values).astype(kind)
    if float(low) < float(high):  # rounding to the type may give the upper end
        scaled = np.minimum(scaled, np.nextafter(kind.type(high), kind.type(low)))
    _fill(out, scaled)


@register_func("weft.random.normal", override=True)
def normal(_: int, mean: float, deviation: float, out: NDArray) -> None:
    """Normal with a mean and a standard deviation."""
    _fill(out, _drawn(lambda generator: generator.normal(mean, deviation, out.shape)))


@register_func("weft.random.normal_of", override=True)
def normal_of(_: int, mean: NDArray, deviation: NDArray, out: NDArray) -> None:
    """Normal with the mean and the standard deviation of each element."""
    drawn = _drawn(lambda generator: generator.standard_normal(out.shape))
    _fill(out, mean.numpy() + deviation.numpy() * drawn)


@register_func("weft.random.integers", override=True)
def integers(_: int, low: int, high: int, out: NDArray) -> None:
    """Integers in [low, high), each as likely."""
    _fill(out, _drawn(lambda generator: generator.integers(int(low), int(high), out.shape)))


@register_func("weft.random.permutation", override=True)
def permutation(_: int, out: NDArray) -> None:
    """The numbers 0 .. n - 1 in random order."""
    if len(out.shape) != 1:
        raise IRValueError(f"random numbers: expected a list to permute, got shape {out.shape}")
    _fill(out, _drawn(lambda generator: generator.permutation(out.shape[0])))


@register_func("weft.random.bernoulli", override=True)
def bernoulli(_: int, probability: NDArray, out: NDArray) -> None:
    """1 with the probability of each element, else 0."""
    if probability.shape != out.shape:
        raise IRValueError(
            f"random numbers: {out.shape} of probabilities of shape {probability.shape}"
        )
    drawn = _drawn(lambda generator: generator.random(out.shape))
    _fill(out, drawn < np.asarray(probability.numpy(), np.float64))


@register_func("weft.random.exponential", override=True)
def exponential(_: int, rate: float, out: NDArray) -> None:
    """Exponential with a rate."""
    if not float(rate) > 0:
        raise IRValueError(f"random numbers: expected a rate above 0, got {rate}")
    _fill(out, _drawn(lambda generator: generator.exponential(1.0 / float(rate), out.shape)))


@register_func("weft.random.geometric", override=True)
def geometric(_: int, probability: float, out: NDArray) -> None:
    """The number of trials up to the first success."""
    _fill(out, _drawn(lambda generator: generator.geometric(float(probability), out.shape)))


@register_func("weft.random.multinomial", override=True)
def multinomial(_: int, weights: NDArray, replacement: int, out: NDArray) -> None:
    """Places drawn in proportion to the weights of each row, with or without putting back.

    Without: the largest of exponential races (Efraimidis and Spirakis 2006).
    """
    rows = np.atleast_2d(np.asarray(weights.numpy(), np.float64))
    count = out.shape[-1]
    totals = rows.sum(axis=1, keepdims=True)
    if (rows < 0).any() or not np.isfinite(rows).all() or (totals <= 0).any():
        raise IRValueError("multinomial: expected weights of 0 or more, with a sum above 0")
    if replacement:
        edges = np.cumsum(rows, axis=1) / totals
        drawn = _drawn(lambda generator: generator.random((len(rows), count)))
        pairs = zip(edges, drawn, strict=True)
        places = np.stack([np.searchsorted(edge, row, side="right") for edge, row in pairs])
        places = np.minimum(places, rows.shape[1] - 1)
    else:
        if (np.count_nonzero(rows, axis=1) < count).any():
            raise IRValueError(
                f"multinomial: {count} places without replacement of a row that has fewer "
                "weights above 0"
            )
        races = _drawn(lambda generator: generator.exponential(1.0, rows.shape))
        with np.errstate(divide="ignore"):
            places = np.argsort(races / rows, axis=1)[:, :count]
    _fill(out, places)
