"""Results of torch.compile that are parts of inputs or of other results."""

import pytest
import torch

FUNCTIONS = {
    "a row": lambda x, n: x[n],
    "the end": lambda x, n: x[x.shape[0] // 2 :],
    "a column of a part": lambda x, n: x[1:, n],
    "a part of a result": lambda x, n: (y := x * 2, y[n], y.t()[1:]),
    "a part of a part": lambda x, n: (y := x[n:], y[1:] + 1, y[1:]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parts_of_any_number(name):
    """Numbers and sizes that change become symbols, and so does where a part begins."""
    torch._dynamo.reset()
    function = FUNCTIONS[name]

    def doubled(x, n):
        parts = function(x, n)
        torch._dynamo.graph_break()
        return [part * 2 for part in (parts if isinstance(parts, tuple) else [parts])]

    compiled = torch.compile(doubled, backend="weft", dynamic=True)
    plain = torch.compile(function, backend="weft", dynamic=True)
    for rows, n in ((6, 2), (9, 3), (7, 1)):
        x = torch.randn(rows, 5)
        torch.testing.assert_close(compiled(x, n), doubled(x, n))
        torch.testing.assert_close(plain(x, n), function(x, n))


def test_a_part_of_an_input_shares_its_memory():
    torch._dynamo.reset()
    compiled = torch.compile(lambda x, n: x[n], backend="weft", dynamic=True)
    for n in (2, 3):
        x = torch.zeros(5, 3)
        compiled(x, n).fill_(1)
        assert x.sum(1).tolist() == [3.0 if row == n else 0.0 for row in range(5)]
