"""Recurrent layers beside torch's."""

from __future__ import annotations

import pytest
import torch

from tests.lib.aten import check_model
from weft.relax.frontend.torch import from_exported_program
from weft.relax.frontend.torch.capture import CaptureError, capture

pytestmark = [pytest.mark.sampled(3), pytest.mark.torch]


@pytest.fixture(autouse=True)
def same_weights():
    torch.manual_seed(0)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (torch.nn.LSTM(5, 6, 2, bidirectional=True, batch_first=True), (3, 4, 5)),
        (torch.nn.LSTM(5, 6, bias=False), (4, 5)),
        (torch.nn.GRU(5, 6, 2), (4, 3, 5)),
        (torch.nn.GRU(1, 1, bidirectional=True), (1, 1, 1)),
        (torch.nn.RNN(5, 6, nonlinearity="relu", bidirectional=True), (4, 3, 5)),
        (torch.nn.RNN(5, 6, 2, batch_first=True), (3, 4, 5)),
        (torch.nn.LSTMCell(5, 6), (3, 5)),
        (torch.nn.GRUCell(5, 6), (3, 5)),
        (torch.nn.RNNCell(5, 6), (3, 5)),
    ],
    ids=["lstm", "lstm without bias", "gru", "gru of ones", "rnn relu", "rnn", "lstm cell",
         "gru cell", "rnn cell"],
)  # fmt: skip
def test_recurrent_layers(layer, shape):
    check_model(layer, torch.randn(shape))


class WithStates(torch.nn.Module):
    """A layer that starts from given states and returns its last ones."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.LSTM(5, 6, batch_first=True)

    def forward(self, x, hidden, cell):
        outputs, (hidden, cell) = self.layer(x, (hidden, cell))
        return outputs, hidden, cell


def test_states_and_a_symbolic_batch():
    batch = torch.export.Dim("batch", max=16)
    state = {1: batch}
    check_model(
        WithStates(), torch.randn(3, 4, 5), torch.randn(1, 3, 6), torch.randn(1, 3, 6),
        dynamic_shapes=({0: batch}, state, state),
        others=[(torch.randn(2, 4, 5), torch.randn(1, 2, 6), torch.randn(1, 2, 6))],
    )  # fmt: skip


def test_a_layer_stays_whole():
    mod = from_exported_program(capture(torch.nn.LSTM(5, 6).eval(), (torch.randn(4, 3, 5),)))
    assert "R.nn.lstm(" in mod.script()


class Projected(torch.nn.Module):
    """Projections of both directions, from states that are given."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.LSTM(5, 6, proj_size=3, bidirectional=True)

    def forward(self, x, hidden, cell):
        return self.layer(x, (hidden, cell))


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
def test_projections():
    states = torch.randn(2, 2, 3), torch.randn(2, 2, 6)
    check_model(Projected(), torch.randn(3, 2, 5), *states)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
def test_projections_of_layers_without_biases():
    check_model(torch.nn.LSTM(5, 6, 2, proj_size=3, bias=False), torch.randn(3, 2, 5))


STEPS = torch.export.Dim("steps", min=2, max=64)
BATCH = torch.export.Dim("batch", min=2, max=64)


@pytest.mark.parametrize(
    ("layer", "axis"),
    [
        (torch.nn.LSTM(5, 6, 2, bidirectional=True, batch_first=True), 1),
        (torch.nn.LSTM(5, 6, proj_size=3), 0),
        (torch.nn.GRU(5, 6, bidirectional=True), 0),
        (torch.nn.RNN(5, 6, nonlinearity="relu"), 0),
        (torch.nn.RNN(5, 6, batch_first=True), 1),
    ],
    ids=["lstm", "projected", "gru", "rnn relu", "rnn"],
)
@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
def test_a_symbolic_number_of_steps(layer, axis):
    def given(steps, batch):
        return (torch.randn(*((batch, steps) if axis else (steps, batch)), 5),)

    check_model(
        layer, *given(4, 3), dynamic_shapes=({axis: STEPS, 1 - axis: BATCH},),
        others=[given(2, 2), given(11, 3), given(3, 7)],
    )  # fmt: skip


def test_a_symbolic_number_of_steps_among_other_operators():
    class Tagger(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = torch.nn.GRU(5, 6, batch_first=True, bidirectional=True)
            self.head = torch.nn.Linear(12, 4)

        def forward(self, x):
            outputs, last = self.encoder(x)
            return self.head(outputs).softmax(-1), last.sum(0) + outputs.amax((0, 1))[:6]

    check_model(
        Tagger(), torch.randn(2, 4, 5), dynamic_shapes=({1: STEPS},),
        others=[(torch.randn(2, 2, 5),), (torch.randn(2, 13, 5),)],
    )  # fmt: skip


def test_torch_is_left_as_it_was():
    layer = torch.ops.aten.lstm.input
    before = dict(layer.py_kernels)
    capture(torch.nn.GRU(5, 6), (torch.randn(4, 2, 5),), None, ({0: STEPS},))
    with pytest.raises(CaptureError):
        capture(torch.nn.GRU(5, 6), (torch.randn(4, 2, 7),))
    assert layer.py_kernels == before
