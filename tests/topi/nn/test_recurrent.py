import numpy as np
import pytest

from weft import build, te, tir, topi
from weft.target import Target

pytestmark = pytest.mark.sampled(3)

torch = pytest.importorskip("torch")


def operands(floats, gates, states):
    shapes = [(5, 2, 4), (3 * gates, 4), (3 * gates, 3), (3 * gates,), (3 * gates,)]
    return [floats(*shape) for shape in [*shapes, *[(2, 3)] * states]]


def by_layer(layer, arrays):
    """PyTorch's layer with these weights."""
    data, *weights = [torch.from_numpy(a) for a in arrays[:5]]
    states = [torch.from_numpy(a)[None] for a in arrays[5:]]
    for parameter, weight in zip(layer.parameters(), weights, strict=True):
        parameter.data = weight
    out, last = layer(data, tuple(states) if len(states) > 1 else states[0])
    last = last if isinstance(last, tuple) else (last,)
    return [out.detach().numpy(), *[item[0].detach().numpy() for item in last]]


def test_lstm(check, floats):
    arrays = operands(floats, 4, 2)
    check(topi.nn.lstm, arrays, by_layer(torch.nn.LSTM(4, 3), arrays))


def test_gru(check, floats):
    arrays = operands(floats, 3, 1)
    check(topi.nn.gru, arrays, by_layer(torch.nn.GRU(4, 3), arrays))


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_rnn(check, floats, activation):
    arrays = operands(floats, 1, 1)
    layer = torch.nn.RNN(4, 3, nonlinearity=activation)
    check(topi.nn.rnn, arrays, by_layer(layer, arrays), activation)


def test_lstm_backwards_is_the_lstm_of_the_reversed_sequence(check, floats):
    arrays = operands(floats, 4, 2)
    backwards = [np.ascontiguousarray(arrays[0][::-1]), *arrays[1:]]
    out, *last = by_layer(torch.nn.LSTM(4, 3), backwards)
    check(topi.nn.lstm, arrays, [out[::-1], *last], True)


LAYERS = {"lstm": (torch.nn.LSTM, 4, 2), "gru": (torch.nn.GRU, 3, 1), "rnn": (torch.nn.RNN, 1, 1)}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("size", [1, 16, 40, 200, 384])
def test_blocks_of_gates(floats, name, size):
    """One block of all gates, blocks of 8 and of 16 lanes, and blocks that run in parallel."""
    layer, gates, states = LAYERS[name]
    shapes = [(3, 2, 4), (gates * size, 4), (gates * size, size), (gates * size,), (gates * size,)]
    arrays = [floats(*shape) * np.float32(0.2) for shape in [*shapes, *[(2, size)] * states]]
    wanted = by_layer(layer(4, size), arrays)
    inputs = [te.placeholder(array.shape, "float32", f"x{i}") for i, array in enumerate(arrays)]
    func = te.create_prim_func([*inputs, *getattr(topi.nn, name)(*inputs)])
    assert ("T.parallel" in func.script()) == (gates * size**2 >= 1 << 17)
    for target in (Target("llvm"), Target("llvm -mcpu=haswell")):
        results = [np.zeros_like(array) for array in wanted]
        build(func, target)["main"](*arrays, *results)
        for result, expected in zip(results, wanted, strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("index", "shape", "message"),
    [
        (1, (12, 5), r"lstm: weight_ih: expected the shape \(12, 4\), got \(12, 5\)"),
        (2, (12, 4), r"lstm: weight_hh: expected the shape \(12, 3\), got \(12, 4\)"),
        (4, (9,), r"lstm: bias_hh: expected the shape \(12\), got \(9\)"),
        (6, (3, 3), r"lstm: state: expected the shape \(2, 3\), got \(3, 3\)"),
    ],
)
def test_shapes_that_do_not_fit(index, shape, message):
    shapes = [(5, 2, 4), (12, 4), (12, 3), (12,), (12,), (2, 3), (2, 3)]
    shapes[index] = shape
    with pytest.raises(ValueError, match=message):
        topi.nn.lstm(*[te.placeholder(item) for item in shapes])


def test_options_that_do_not_exist():
    shapes = [(5, 2, 4), (3, 4), (3, 3), (3,), (3,), (2, 3)]
    tensors = [te.placeholder(item) for item in shapes]
    with pytest.raises(ValueError, match="activation: expected tanh or relu, got 'gelu'"):
        topi.nn.rnn(*tensors, "gelu")
    with pytest.raises(ValueError, match="expected the letters IFGO, got 'IFOO'"):
        topi.nn.lstm(*tensors, tensors[-1], weight_layout="IFOO")


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("size", [3, 40, 128])
def test_sequences_that_take_steps_together(floats, name, size):
    """Groups of four of a batch that only the run tells, and the rest; and of a known batch."""
    layer, gates, states = LAYERS[name]
    weights = [(gates * size, 4), (gates * size, size), (gates * size,), (gates * size,)]
    n = tir.Var("n", "int64")
    shapes = [(3, n, 4), *weights, *[(n, size)] * states]
    inputs = [te.placeholder(shape, "float32", f"x{i}") for i, shape in enumerate(shapes)]
    any_batch = build(te.create_prim_func([*inputs, *getattr(topi.nn, name)(*inputs)]))["main"]
    for batch in (0, 1, 2, 3, 4, 5, 8, 11):
        arrays = [
            floats(*[batch if extent is n else extent for extent in shape]) * np.float32(0.3)
            for shape in shapes
        ]
        wanted = by_layer(layer(4, size), arrays) if batch else []
        results = [np.full((3, batch, size), 7, "float32"), *[np.copy(a) for a in arrays[5:]]]
        any_batch(*arrays, *results)
        for result, expected in zip(results, wanted, strict=bool(batch)):
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
        if batch not in (3, 5):
            continue
        fixed = [te.placeholder(array.shape, "float32", f"x{i}") for i, array in enumerate(arrays)]
        known = build(te.create_prim_func([*fixed, *getattr(topi.nn, name)(*fixed)]))["main"]
        known(*arrays, *results)
        for result, expected in zip(results, wanted, strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
