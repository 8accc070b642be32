"""Caches of keys and values, and effects of the user's own."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.relax.frontend import nn
from weft.relax.op import null_value


class Cached(nn.Module):
    def __init__(self, size=2):
        self.cache = nn.KVCache(size, [3])

    def forward(self, x: nn.Tensor, total):
        self.cache.append(x)
        return nn.sum(self.cache.view(total), axis=0)


SPEC = {"forward": {"x": nn.spec.Tensor(["n", 3], "float32"), "total": int}}


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("mode", ["plain", "packed"])
@pytest.mark.parametrize("executor", ["native", "bytecode"])
def test_a_cache_grows_over_calls(debug, mode, executor, random):
    method = {**SPEC["forward"], "$": {"effect_mode": mode}}
    mod, _ = Cached().export_tvm({"forward": method}, debug=debug)
    vm = relax.VirtualMachine(relax.build(mod), weft.cpu(), exec_mode=executor)
    effects, seen = vm["_initialize_effect"](), []
    for count in (1, 3, 2):
        seen.append(random(count, 3))
        rows = np.concatenate(seen)
        state = [tuple(effects)] if mode == "packed" else list(effects)
        result, effects = vm["forward"](seen[-1], weft.runtime.ShapeTuple([len(rows)]), *state)
        np.testing.assert_allclose(result.numpy(), rows.sum(0), rtol=1e-5)


def test_jit_keeps_the_state(random):
    torch = pytest.importorskip("torch")
    model, other = Cached().jit(SPEC), Cached().jit(SPEC)
    x, y = torch.from_numpy(random(2, 3)), torch.from_numpy(random(1, 3))
    model["forward"](x, 2)
    torch.testing.assert_close(model["forward"](y, 3), torch.cat([x, y]).sum(0))
    torch.testing.assert_close(other["forward"](y, 1), y.sum(0))


def test_verify_runs_a_cache_in_the_reference_interpreter(random):
    mod, _ = Cached().export_tvm(SPEC)
    with weft.transform.PassContext(verify=True):
        vm = relax.VirtualMachine(relax.build(mod), weft.cpu())
    x = random(2, 3)
    result, _ = vm["forward"](x, weft.runtime.ShapeTuple([1]), *vm["_initialize_effect"]())
    np.testing.assert_allclose(result.numpy(), x[0], rtol=1e-6)


def test_wrong_use_of_a_cache():
    class Wrong(Cached):
        def forward(self, x: nn.Tensor, total):
            self.cache.append(x.astype("float16"))

    with pytest.raises(TypeError, match='set to use dtype "float32", but got "float16"'):
        Wrong().export_tvm(SPEC)
    with pytest.raises(ValueError, match="KVCache.view: the cache has no state here"):
        nn.KVCache(2, [3]).view(1)


class Counter(nn.Effect):
    """Counts calls on the host."""

    def emit_init(self, name_hint, builder):
        return [builder.emit(null_value(), name_hint)]

    def create(self, name_hint):
        return [relax.Var(name_hint, relax.ObjectStructInfo())]

    def set_state(self, state_vars):
        (self.state,) = state_vars

    def finalize(self):
        return [self.state]


def test_an_effect_of_the_users_own():
    class Model(nn.Module):
        def __init__(self):
            self.calls = Counter()

        def forward(self, x: nn.Tensor):
            self.calls.state = relax.BlockBuilder.current().emit(
                relax.op.call_pure_packed(
                    "test.nn.count", self.calls.state, sinfo_args=relax.ObjectStructInfo()
                )
            )
            return x

    weft.register_func("test.nn.count", lambda n: 1 if n is None else n + 1, override=True)
    mod, _ = Model().export_tvm({"forward": {"x": nn.spec.Tensor([1], "float32")}})
    vm = relax.VirtualMachine(relax.build(mod), weft.cpu())
    effects = vm["_initialize_effect"]()
    for _ in range(3):
        _, effects = vm["forward"](np.zeros(1, "float32"), *effects)
    assert list(effects) == [3]


@pytest.mark.parametrize("method", ["emit_init", "create", "set_state", "finalize"])
def test_an_effect_that_lacks_a_method(method):
    args = {"emit_init": ("e", None), "create": ("e",), "set_state": ([],), "finalize": ()}[method]
    with pytest.raises(NotImplementedError, match=f"Effect has no {method}"):
        getattr(nn.Effect(), method)(*args)


def test_io_effect_is_created_once():
    effect = nn.IOEffect()
    effect.set_state(effect.create("a"))
    with pytest.raises(ValueError, match="create was called twice without finalize"):
        effect.create("b")
    effect.finalize()
    assert effect.effect is None
