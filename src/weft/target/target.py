"""Target: the machine that code is generated for.

A target is a kind (``llvm``), keys (``cpu``), attributes (``mcpu``, ``num-cores`` ...) and perhaps
a host. It is written as text, ``"llvm -mcpu=native -num-cores=2"``, as JSON, as a dict, or as a
tag (``"nvidia/geforce-rtx-3070"``); names are TVM 0.20's. ``with target:`` makes it
``Target.current()`` for the thread.
"""

from __future__ import annotations

import difflib
import json
import shlex
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from weft.ir.json_text import register_codec
from weft.support import plugins, slots
from weft.support.errors import IRValueError, wrong_type
from weft.support.scopes import Scopes
from weft.target.kinds import (
    KINDS,
    OPTION_TYPES,
    TAGS,
    TargetKind,
    option_names,
    refuses_others,
)

_OPEN: Final[Scopes[Target]] = Scopes("targets")
_RESERVED: Final = ("kind", "keys", "tag", "host")


TargetLike: TypeAlias = "Target | str | Mapping[str, object]"
"""A target as users write it."""


class Target:
    """An immutable description of a machine; equal when all its parts are.

    >>> target = Target("llvm -mcpu=native -num-cores=2")
    >>> target.kind.name, target.attrs["num-cores"], target.mcpu
    ('llvm', 2, 'native')
    """

    __slots__ = ("_hash", "attrs", "host", "keys", "kind", "tag")

    def __init__(self, target: TargetLike, host: TargetLike | None = None) -> None:
        config = _config_of(target)
        self.kind: TargetKind = _kind_of(config)
        given_host = host if host is not None else config.get("host")
        self.host: Target | None = None if given_host is None else as_target(given_host)
        self.tag: str = str(config.get("tag", ""))
        self.attrs: dict[str, Any] = {
            name: _option(self.kind, name, value)
            for name, value in config.items()
            if name not in _RESERVED
        }
        keys = [str(key) for key in _as_list(config.get("keys", ()))]
        device = self.attrs.get("device")
        if device and not keys:
            keys.append(device)
        self.keys: list[str] = list(dict.fromkeys([*keys, *self.kind.default_keys]))
        self._hash = hash(self.structural_bytes())

    # Parts that have names of their own.

    @property
    def mcpu(self) -> str:
        """The processor's name, empty for the host's."""
        return str(self.attrs.get("mcpu", ""))

    @property
    def mattr(self) -> list[str]:
        """Processor features to turn on (``+``) and off (``-``), by LLVM's names."""
        return list(self.attrs.get("mattr", ()))

    @property
    def mtriple(self) -> str:
        """The LLVM triple, empty for the host's."""
        return str(self.attrs.get("mtriple", ""))

    @property
    def num_cores(self) -> int | None:
        """The number of cores that schedules assume and parallel loops use at most, if given."""
        value = self.attrs.get("num-cores")
        return None if value is None else int(value)

    @property
    def arch(self) -> str:
        """The architecture option of GPU kinds."""
        return str(self.attrs.get("arch", ""))

    @property
    def libs(self) -> list[str]:
        """Libraries that kernels may be taken from."""
        return list(self.attrs.get("libs", ()))

    @property
    def device_name(self) -> str:
        """The ``device`` option."""
        return str(self.attrs.get("device", ""))

    @property
    def model(self) -> str:
        """The ``model`` option, ``unknown`` if not given."""
        return str(self.attrs.get("model", "unknown"))

    @property
    def max_num_threads(self) -> int:
        """The most threads of a GPU block."""
        return int(self.attrs.get("max_num_threads", self.kind.defaults.get("max_num_threads", 1)))

    @property
    def thread_warp_size(self) -> int:
        """The threads that run in step on a GPU."""
        return int(self.attrs.get("thread_warp_size", self.kind.defaults.get("warp", 1)))

    def get_kind_attr(self, attr_name: str) -> Any:
        """An attribute of the kind, or None."""
        return self.kind.defaults.get(attr_name)

    def get_target_device_type(self) -> int:
        """The DLPack device type that code for this target runs on."""
        return self.kind.device_type

    # Other forms.

    def export(self) -> dict[str, object]:
        """The target as a dict that ``Target`` takes."""
        exported: dict[str, object] = {
            "kind": self.kind.name,
            "tag": self.tag,
            "keys": list(self.keys),
            **self.attrs,
        }
        if self.host is not None:
            exported["host"] = self.host.export()
        return exported

    def structural_bytes(self) -> bytes:
        """The canonical bytes that structural equality and hash take."""
        return json.dumps(self.export(), sort_keys=True).encode()

    def __str__(self) -> str:
        parts = [self.kind.name, f"-keys={','.join(self.keys)}"]
        for name in sorted(self.attrs):
            value = self.attrs[name]
            text = ",".join([str(item) for item in value]) if isinstance(value, list) else value
            parts.append(f"-{name}={int(text) if isinstance(text, bool) else text}")
        return " ".join(parts)

    def __repr__(self) -> str:
        return str(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and self.structural_bytes() == other.structural_bytes()

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Callable[[dict[str, object]], Target], tuple[dict[str, object]]]:
        return Target, (self.export(),)

    def with_host(self, host: TargetLike) -> Target:
        """The same target with another host."""
        return Target(self.export(), host)

    def with_attrs(self, **changes: object) -> Target:
        """The same target with some options set (``num_cores`` names ``num-cores``)."""
        named = {
            name.replace("_", "-") if name not in OPTION_TYPES else name: value
            for name, value in changes.items()
        }
        return Target({**self.export(), **named})

    # The scope.

    def __enter__(self) -> Target:
        _OPEN.push(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        _OPEN.pop()

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """The target of the innermost ``with``; raises if there is none and ``allow_none`` is not.

        >>> with Target("llvm -num-cores=2"):
        ...     Target.current().num_cores
        2
        """
        target = _OPEN.innermost
        if target is not None or allow_none:
            return target
        raise IRValueError("expected a current target: wrap the call in `with Target('llvm'):`")

    @staticmethod
    def list_kinds() -> list[str]:
        """The names of all kinds, those of installed plug-ins too."""
        return sorted({*KINDS, *plugins.names(plugins.TARGETS)})

    @staticmethod
    def from_device(device: object) -> Target:
        """The target of a device: the host for a CPU."""
        kind = str(getattr(device, "type", getattr(device, "device_type", device))).split(":")[0]
        if kind in ("cpu", "llvm", "1"):
            return Target("llvm")
        return Target(kind)

    @staticmethod
    def canon_target(target: TargetLike | None) -> Target | None:
        """A Target from any form; None stays None."""
        return None if target is None else as_target(target)

    @staticmethod
    def canon_target_and_host(
        target: TargetLike, target_host: TargetLike | None = None
    ) -> tuple[Target, Target | None]:
        """Both as Targets, the host attached to the target."""
        if target is None:
            return None, None
        canonical = as_target(target)
        if target_host is not None:
            canonical = canonical.with_host(target_host)
        return canonical, canonical.host


def as_target(value: TargetLike) -> Target:
    """A Target from a Target, text, JSON or a dict."""
    return value if isinstance(value, Target) else Target(value)


def target_meant(value: TargetLike | None = None) -> Target:
    """The target that a user means: None is the one in scope, or else this machine's CPU."""
    if value is None:
        return Target.current(allow_none=True) or Target("llvm")
    return as_target(value)


def _config_of(target: TargetLike) -> dict[str, Any]:
    if isinstance(target, Target):
        return target.export()
    if isinstance(target, Mapping):
        return {str(name): value for name, value in target.items()}
    if not isinstance(target, str):
        raise wrong_type("expected a target as text ('llvm -mcpu=native'), JSON or a dict", target)
    text = target.strip()
    if text.startswith("{"):
        try:
            parsed = json.loads(text)
        except json.JSONDecodeError as error:
            raise IRValueError(f"expected a target in JSON, {error}: {text[:60]!r}") from error
        return dict(parsed)
    if text in TAGS:
        return {**TAGS[text], "tag": text}
    return _parse_text(text)


def _parse_text(text: str) -> dict[str, Any]:
    """``kind -option=value -option value -flag``."""
    words = shlex.split(text)
    if not words:
        raise IRValueError("expected the name of a target such as 'llvm', got an empty text")
    config: dict[str, Any] = {"kind": words[0]}
    position = 1
    while position < len(words):
        word = words[position]
        if not word.startswith("-"):
            raise IRValueError(
                f"expected an option such as -mcpu=native in the target {text!r}, got {word!r}"
            )
        name, equals, value = word.lstrip("-").partition("=")
        position += 1
        if not equals:
            follows = position < len(words) and not words[position].startswith("-")
            value = words[position] if follows else "1"
            position += 1 if follows else 0
        config[name] = value
    return config


def _kind_of(config: Mapping[str, object]) -> TargetKind:
    name = config.get("kind")
    kind = KINDS.get(str(name)) or slots.plugin_kind.get()(str(name))
    if kind is None:
        if "/" in str(name):
            raise IRValueError(
                f"target tag {name!r} is not known; expected one of {', '.join(sorted(TAGS)[:5])}, "
                "... or a kind with options"
            )
        kinds = Target.list_kinds()
        nearest = difflib.get_close_matches(str(name), [*kinds, *TAGS], n=3)
        hint = f"; did you mean {', '.join(nearest)}?" if nearest else ""
        raise IRValueError(
            f"target kind {name!r} is not known; expected one of {', '.join(kinds)}{hint}"
        )
    return kind


def _as_list(value: Any) -> list[object]:
    if isinstance(value, str):
        return [part for part in value.split(",") if part]
    return list(value)


def _option(kind: TargetKind, name: str, value: object) -> object:
    """The value of an option in its type; unknown options of ``llvm`` are refused."""
    expected = OPTION_TYPES.get(name)
    if expected is None or (refuses_others(kind.name) and name not in option_names(kind.name)):
        if not refuses_others(kind.name):
            return value
        known = option_names(kind.name)
        nearest = difflib.get_close_matches(name, known, n=3)
        hint = f"did you mean {', '.join(nearest)}?" if nearest else f"there are {', '.join(known)}"
        raise IRValueError(f"target {kind.name} has no option {name!r}; {hint}")
    if expected is list:
        return [str(item) for item in _as_list(value)]
    try:
        if expected is bool:
            return {"1": True, "0": False, "true": True, "false": False}[str(value).lower()]
        converted = expected(value)
    except (ValueError, TypeError, KeyError) as error:
        raise IRValueError(
            f"target option {name}: expected {expected.__name__}, got {value!r}"
        ) from error
    if name == "num-cores" and converted < 1:
        raise IRValueError(f"target option num-cores: expected at least 1, got {converted}")
    return converted


register_codec(__name__, Target, Target.export, Target)
