"""The cache of whole models: what is in its key, what it gives back, what turns it off."""

from __future__ import annotations

import importlib
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import weft
from tests.lib.python_process import output_of
from weft import relax, tir
from weft.driver import model_cache
from weft.driver.sources import Request
from weft.ir.transform import PassContext
from weft.relax.op.lowering import legalisations
from weft.support.errors import IRValueError
from weft.target.target import Target

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
compiling = importlib.import_module("weft.driver.compile")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("WEFT_NO_CACHE", raising=False)
    return tmp_path / "models"


@pytest.fixture
def imports(monkeypatch):
    """What was imported, that is: not found in the cache."""
    seen = []
    real = compiling.import_model

    def count(request):
        seen.append(request.model)
        return real(request)

    monkeypatch.setattr(compiling, "import_model", count)
    return seen


class Net(torch.nn.Module):
    def __init__(self, rate=0.5, negative=False):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.activation = torch.nn.LeakyReLU(rate)
        self.negative = negative

    def forward(self, x, mask=None):
        y = self.activation(self.linear(x))
        if mask is not None:
            y = y * mask
        return -y if self.negative else y


def net(**options):
    torch.manual_seed(0)
    return Net(**options).eval()


X = torch.linspace(-1, 1, 8).reshape(2, 4)


def key(model, *args, target="llvm", dynamic=None, settings=("weft", "default"), **kwargs):
    request = Request(model, args, kwargs, dynamic, True)
    return model_cache.key_of(request, Target(target), *settings)


def test_the_second_compilation_is_a_hit(folder, imports):
    first, second = weft.compile(net(), (X,)), weft.compile(net(), (X,))
    assert len(imports) == 1
    torch.testing.assert_close(second(X), net()(X).detach())
    assert second.to_bytes() == first.to_bytes()
    assert len(list(folder.iterdir())) == 1
    assert folder.stat().st_mode & 0o777 == 0o700
    assert weft.ir.structural_equal(second.mod, first.mod)
    assert len(imports) == 2


def test_other_processes_hit(folder, tmp_path):
    program = textwrap.dedent("""
        import sys, torch, weft
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).eval()
        weft.compile(model, (torch.ones(2, 4),))
        print("weft.driver.torch_models" in sys.modules)
    """)
    found = []
    for _ in range(2):
        printed = output_of(program)
        found.append(printed.strip())
    assert found == ["True", "False"]


def test_what_decides_the_result_is_in_the_key(folder, monkeypatch):
    changed = net()
    with torch.no_grad():
        changed.linear.bias[0] += 1
    program = torch.export.export(net(), (X,))
    keys = [
        key(net(), X), key(changed, X), key(net(), X[:1]), key(net(), X.double()),
        key(net(), X, X[:, :3]), key(net(), X, mask=X[:, :3]), key(net(negative=True), X),
        key(net(rate=0.25), X), key(net(), X, target="llvm -opt-level=1"),
        key(net(), X, dynamic={"x": {0: torch.export.Dim("n")}}),
        key(net(), X, settings=("default", "default")),
        key(program), key(torch.export.export(changed, (X,))),
    ]  # fmt: skip
    with PassContext(opt_level=0):
        keys.append(key(net(), X))
    with PassContext(config={"tir.disable_vectorize": True}):
        keys.append(key(net(), X))
    for dtype in ("bfloat16", "float16"):
        with PassContext(config={"relax.narrow_weights": dtype}):
            keys.append(key(net(), X))
    with monkeypatch.context() as patched:
        patched.setenv("WEFT_PERF", "1")
        keys.append(key(net(), X))
    assert None not in keys
    assert len({*keys}) == len(keys)
    assert keys[0] == key(net(), X)


def test_the_sources_of_all_that_compiles_are_in_the_key():
    """But for old spellings, which say what is called and not what it does."""
    program = (
        "import sys, weft.driver.compile, weft.driver.model_cache as cache\n"
        "loaded = {name.split('.')[1] for name in sys.modules if name.count('.') > 1 and "
        "name.startswith('weft.')}\n"
        "print(sorted(loaded - {'compat', *cache._ROOMS}))"
    )
    printed = output_of(program)
    assert printed.strip() == "[]"


def test_what_a_models_source_computes_is_in_the_key(folder, tmp_path, monkeypatch):
    source = tmp_path / "model_of_a_test.py"
    text = "import torch\nclass M(torch.nn.Module):\n    def forward(self, x): return x + 1\n"
    source.write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("model_of_a_test")
    before = key(module.M(), X)
    source.write_text(text.replace("x + 1", "x + 22"), encoding="utf-8")
    module = importlib.reload(module)
    assert before is not None
    assert key(module.M(), X) not in (None, before)
    del sys.modules["model_of_a_test"]


class Wild(torch.nn.Module):
    def __init__(self, **values):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        vars(self.linear).update(values)

    def forward(self, x):
        y = self.linear(x)
        return y if x.shape[0] == 2 else -y


def hooked(rate=1.0):
    model = net()
    model.linear.register_forward_hook(lambda module, args, result: result + rate)
    return model


@pytest.mark.parametrize("make", [net, hooked, Wild, lambda: Wild(function=len)])
def test_a_model_is_exported_once_for_its_key_and_its_import(folder, make, imports, monkeypatch):
    from weft.driver import torch_keys, torch_models

    exports = []
    for module in (torch_keys, torch_models):
        real = module.capture
        monkeypatch.setattr(module, "capture", lambda *a, real=real: exports.append(1) or real(*a))
    torch.manual_seed(0)
    model = make().eval()
    for count in (1, 2):
        torch.testing.assert_close(weft.compile(model, (X,))(X), model(X).detach())
        assert len(exports) == count
    assert len(imports) == 1
    with torch.no_grad():
        model.linear.bias[0] += 1
    torch.testing.assert_close(weft.compile(model, (X,))(X), model(X).detach())
    assert len(imports) == 2


def test_what_a_key_cannot_see_turns_the_cache_off(folder, imports, monkeypatch):
    class Nothing:
        def run_before_pass(self, mod, info):
            pass

    weft.compile(net(), (X,))
    with PassContext(instruments=[Nothing()]):
        weft.compile(net(), (X,))
    weft.compile(net(), (X,), cache=False)
    weft.compile(net(), (X,), relax_pipeline=weft.relax.get_pipeline("weft"))
    weft.compile(net(), (X,), custom_converters={})
    operator = next(iter(legalisations()))
    monkeypatch.setitem(operator.attributes, "FLegalize", lambda builder, call: call)
    weft.compile(net(), (X,))
    monkeypatch.undo()
    assert len(imports) == 6


def test_the_cache_can_be_off(tmp_path, monkeypatch, imports):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("WEFT_NO_CACHE", "1")
    weft.compile(net(), (X,))
    weft.compile(net(), (X,))
    assert len(imports) == 2
    assert not (tmp_path / "models").exists()


def test_a_damaged_entry_is_a_miss(folder, imports):
    weft.compile(net(), (X,))
    (entry,) = folder.iterdir()
    entry.write_bytes(entry.read_bytes()[:-200])
    weft.compile(net(), (X,))
    weft.compile(net(), (X,))
    assert len(imports) == 2


def test_large_models_are_not_kept_and_old_ones_go(folder, monkeypatch, imports):
    monkeypatch.setenv("WEFT_MODEL_CACHE_SIZE", "1")
    big = torch.nn.Linear(512, 512, bias=False).eval()
    weft.compile(big, (torch.ones(1, 512),))
    assert not folder.exists() or not list(folder.iterdir())
    for size in range(300, 306):  # of 350 KB each
        weft.compile(torch.nn.Linear(size, 300).eval(), (torch.ones(1, size),))
    total = sum(item.stat().st_size for item in folder.iterdir())
    assert 0 < total <= 1 << 20


class Holds(torch.nn.Module):
    def __init__(self, held):
        super().__init__()
        self.held = held

    def forward(self, x):
        return self.held(x) + 1


def encoder(layer_norm_eps=1e-5, **options):
    layer = torch.nn.TransformerEncoderLayer(
        4, options.pop("nhead", 1), 8, batch_first=True, layer_norm_eps=layer_norm_eps, **options
    )
    return Holds(torch.nn.TransformerEncoder(layer, 1, enable_nested_tensor=False))


class Scaled(torch.nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, weight):
        return weight * self.rate


def parametrized(rate):
    linear = torch.nn.Linear(4, 4)
    torch.nn.utils.parametrize.register_parametrization(linear, "weight", Scaled(rate))
    return Holds(linear)


RATE = [1.0]


@torch.fx.wrap
def rated(x):
    return x * RATE[0]


class Rated(torch.nn.Module):
    def __init__(self, rate):
        super().__init__()
        RATE[0] = rate

    def forward(self, x):
        return rated(x)


class Strided(torch.nn.Module):
    def __init__(self, turned):
        super().__init__()
        weight = torch.rand(4, 4)
        self.weight = torch.nn.Parameter(weight.t().contiguous().t() if turned else weight)

    def forward(self, x):
        return x @ torch.as_strided(self.weight, (4, 4), (4, 1))


@pytest.mark.parametrize(
    "makers",
    [
        [lambda: encoder(), lambda: encoder(nhead=2), lambda: encoder(norm_first=True),
         lambda: encoder(activation="gelu"), lambda: encoder(1.0)],
        [lambda: parametrized(1.0), lambda: parametrized(3.0)],
        [lambda: hooked(1.0), lambda: hooked(3.0)],
        [lambda: Rated(1.0), lambda: Rated(3.0)],
        [lambda: Strided(False), lambda: Strided(True)],
    ],
    ids=["in a leaf", "parametrization", "hook", "global", "strides"],
)  # fmt: skip
def test_models_that_compute_something_else_have_other_keys(folder, makers):
    keys = []
    for make in makers:
        for _ in range(2):
            torch.manual_seed(0)
            keys.append(key(make().eval(), X[None]))
    assert None not in keys
    assert keys[::2] == keys[1::2]
    assert len({*keys}) == len(makers)


def test_hooks_of_all_modules_are_in_the_key(folder):
    register = torch.nn.modules.module.register_module_forward_hook
    keys = [key(net(), X)]
    for rate in (2, 3):
        handle = register(lambda module, args, result, rate=rate: result * rate)
        try:
            keys.append(key(net(), X))
        finally:
            handle.remove()
    assert len({*keys}) == 3


def test_an_operator_of_the_users_has_no_key(folder):
    @torch.library.custom_op("weft_cache_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_fake(torch.empty_like)

    class Uses(torch.nn.Module):
        def forward(self, x):
            return twice(x)

    assert key(Uses(), X) is None


class Remembers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.history, self.last, self.calls = [], {"y": None, "of": ({1},)}, 0

    def forward(self, x):
        y = torch.relu(x)
        self.history.append(y)
        self.last["y"] = y
        self.last["of"][0].add(y)
        self.calls += 1
        self.new = 1
        return y


def test_the_users_module_stays_as_it_is(folder):
    model = Remembers()
    for _ in range(2):  # a miss and a hit
        weft.compile(model, (X,))
        assert (model.history, model.last) == ([], {"y": None, "of": ({1},)})
        assert model.calls == 0
        assert not hasattr(model, "new")


def test_pipelines_and_converters_that_were_registered_turn_the_cache_off(folder, monkeypatch):
    from weft.driver import pipeline
    from weft.relax.frontend.torch.registry import CONVERTERS

    assert key(net(), X) is not None
    monkeypatch.setitem(pipeline._PIPELINES, "test", lambda: pipeline.get_pipeline("weft"))
    assert key(net(), X, settings=("test", "default")) is None
    monkeypatch.setitem(CONVERTERS, "aten.relu.default", lambda context, x: x)
    assert key(net(), X) is None


def users_converter(*args, **kwargs):
    raise AssertionError("not called")


def added_to_torch():
    from weft.relax.frontend.torch.registry import CONVERTERS, converter

    converter("aten.weft_cache_test.default")(users_converter)
    return CONVERTERS, "aten.weft_cache_test.default"


def added_to_graphs_of_torch():
    from weft.relax.frontend.torch.operators.control_flow import handles
    from weft.relax.frontend.torch.translate import HIGHER_ORDER

    handles("weft_cache_test")(users_converter)
    return HIGHER_ORDER, "weft_cache_test"


def added_to_onnx():
    from weft.relax.frontend.onnx import registry

    registry.converter("CacheTest", domain="tests", since=1)(users_converter)
    return registry._TABLE, ("tests", "CacheTest")


@pytest.mark.parametrize("add", [added_to_torch, added_to_graphs_of_torch, added_to_onnx])
def test_a_converter_that_the_user_registered_turns_the_cache_off(folder, add):
    table, name = add()
    try:
        assert key(net(), X) is None
    finally:
        del table[name]
    assert key(net(), X) is not None


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count.add_(1)
        return x * self.count


def test_states_are_those_of_the_model_that_was_given(folder, imports):
    weft.compile(Counter(), (X,))(X)
    model = Counter()
    assert key(model, X) is not None
    assert model.count.item() == 0
    found = weft.compile(model, (X,))
    torch.testing.assert_close(found(X), X)
    torch.testing.assert_close(found(X), X * 2)
    assert model.count.item() == 2
    assert len(imports) == 1


def test_threads_are_not_in_the_key(folder, imports):
    assert weft.compile(net(), (X,)).num_threads is None
    assert weft.compile(net(), (X,), num_threads=1).num_threads == 1
    assert len(imports) == 1


def test_files_of_models_are_found_by_their_content(folder, imports, tmp_path):
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    def save(operator):
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"])], "g", [x], [y])
        onnx.save(helper.make_model(graph), tmp_path / "m.onnx")

    save("Relu")
    for _ in range(2):
        torch.testing.assert_close(
            torch.from_numpy(weft.compile(tmp_path / "m.onnx")(X.numpy())), torch.relu(X)
        )
    assert len(imports) == 1
    save("Neg")
    torch.testing.assert_close(weft.compile(tmp_path / "m.onnx")(X), -X)
    assert len(imports) == 2
    with pytest.raises(IRValueError, match="the model has no input 'z'"):
        weft.compile(tmp_path / "m.onnx", {"z": [1]})
    assert Path(folder).exists()


def test_initialisers_among_the_inputs_are_no_inputs(folder):
    pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    shapes = {"w": [2], "x": [3, 2], "y": [3, 2]}
    infos = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in shapes.items()
    ]
    weight = helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0])
    node = helper.make_node("Add", ["w", "x"], ["y"])
    graph = helper.make_graph([node], "g", infos[:2], infos[2:], [weight])
    x = np.ones((3, 2), "float32")
    for cache in (False, True, True):
        model = weft.compile(helper.make_model(graph), (x,), cache=cache)
        np.testing.assert_array_equal(model(x), [[2, 3]] * 3)


def test_telling_a_model_leaves_its_buffers_as_they_are():
    class Assigns(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

        def forward(self, x):
            self.calls += 1
            return x * self.calls

    model = Assigns()
    compiled = weft.compile(model, (torch.ones(2),))
    assert compiled(torch.ones(2)).tolist() == [1.0, 1.0]
    assert compiled(torch.ones(2)).tolist() == [2.0, 2.0]


def ir_module(weight=1.0, name="x"):
    x = relax.Var(name, relax.TensorStructInfo((3,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        weights = relax.const(np.array([weight, 2, 3], "float32"))
        builder.emit_func_output(builder.emit(relax.op.multiply(x, weights)))
    return builder.get()


def test_ir_modules_have_keys(folder, imports):
    x = np.ones(3, "float32")
    module = ir_module()
    first = weft.compile(module)
    found = weft.compile(ir_module())
    assert len(imports) == 1
    np.testing.assert_array_equal(found(x), [1, 2, 3])
    assert found.to_bytes() == first.to_bytes()
    assert weft.ir.structural_equal(found.mod, module)
    np.testing.assert_array_equal(weft.compile(ir_module(weight=5))(x), [5, 2, 3])
    np.testing.assert_array_equal(weft.compile(ir_module(name="y"))(y=x), [1, 2, 3])


def test_code_from_the_cache_has_its_sources(folder):
    first, found = weft.compile(ir_module()), weft.compile(ir_module())
    for fmt in ("ll", "asm"):
        assert found.kernels.get_source(fmt) == first.kernels.get_source(fmt)


def operations(model, x):
    """Kernel -> its operations, by what a profile says of time and speed."""
    rows = [row for row in model.profile(x).calls if "GFLOP/s" in row]
    return {row["Name"]: round(row["GFLOP/s"].ratio * row["Duration (us)"].microseconds * 1e3)
            for row in rows}  # fmt: skip


@pytest.mark.parametrize("extent", [5, tir.Var("n", "int64")])
def test_profiles_of_models_from_caches_and_files_know_the_operations(folder, tmp_path, extent):
    builder = relax.BlockBuilder()
    param = relax.Var("x", relax.TensorStructInfo((extent, 3), "float32"))
    with builder.function("main", [param]):
        builder.emit_func_output(builder.emit(relax.op.add(param, param)))
    models = [weft.compile(builder.get()) for _ in range(2)]
    models[1].save(tmp_path / "m.weft")
    models.append(weft.load(tmp_path / "m.weft"))
    x = np.ones((5, 3), "float32")
    assert [[*operations(model, x).values()] for model in models] == [[15]] * 3


def test_who_made_a_kernel_is_in_the_key(folder):
    module = weft.relax.transform.LegalizeOps()(ir_module())
    key_of = model_cache.key_of_ir
    before = key_of(module)
    assert before is not None
    kernel = next(f for f in module.functions.values() if isinstance(f, weft.tir.PrimFunc))
    assert kernel.provenance == "te"
    kernel.provenance = None
    assert key_of(module) != before


def test_modules_with_operators_or_objects_of_the_users_have_no_key(folder, monkeypatch):
    module = ir_module()
    monkeypatch.setitem(
        weft.ir.Op.get("relax.multiply").attributes, "FLegalize", lambda builder, call: call
    )
    assert model_cache.key_of_ir(module) is None
    monkeypatch.undo()
    assert model_cache.key_of_ir(module) is not None
    assert model_cache.key_of_ir(module.with_attr("thing", object())) is None


def test_nn_modules_have_keys(folder, imports):
    from weft.relax.frontend import nn

    class Layer(nn.Module):
        def __init__(self, weight):
            self.linear = nn.Linear(4, 3, bias=False)
            self.linear.load_state_dict({"weight": np.full((3, 4), weight, "float32")})

        def forward(self, x: nn.Tensor):
            return self.linear(x)

    x = np.ones((2, 4), "float32")
    for weight, count in ((1, 1), (1, 1), (2, 2)):
        found = weft.compile(Layer(weight), (x,))
        np.testing.assert_array_equal(found(x), np.full((2, 3), 4 * weight))
        assert len(imports) == count
    assert len(weft.compile(Layer(2), (x,)).mod["forward"].params) == 1
    weft.compile(Layer(2), (nn.spec.Tensor(["n", 4], "float32"),))
    assert len(imports) == 4  # one for the module of the last line but one, one for other inputs
