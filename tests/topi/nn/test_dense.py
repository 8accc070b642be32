import pytest

from weft import te, topi


def test_dense_when_bias_is_optional(check, floats):
    x, w, b = floats(3, 4), floats(5, 4), floats(5)
    check(topi.nn.dense, [x, w], x @ w.T)
    check(topi.nn.dense, [x, w, b], x @ w.T + b)


@pytest.mark.parametrize(
    ("left", "right"), [((1, 1), (1, 1)), ((0, 4), (5, 4)), ((2, 3, 4), (5, 4))]
)
def test_dense_when_shapes_are_awkward(check, floats, left, right):
    x, w = floats(*left), floats(*right)
    check(topi.nn.dense, [x, w], x @ w.T)


def test_matmul_and_batch_matmul(check, floats):
    a, b = floats(4, 3), floats(4, 5)
    check(lambda x, y: topi.nn.matmul(x, y, transpose_a=True), [a, b], a.T @ b)
    c, d = floats(2, 3, 4), floats(1, 5, 4)
    check(topi.nn.batch_matmul, [c, d], c @ d.transpose(0, 2, 1))


def test_dense_when_printed():
    x, w = te.placeholder((1, 784), name="x"), te.placeholder((128, 784), name="w")
    func = te.create_prim_func([x, w, topi.nn.dense(x, w)])
    assert list(func.attrs["layout_free_buffers"]) == [1]
    assert func.provenance == "te"
    text = func.script()
    assert 'T.block("T_matmul_NT")' in text
    assert "layout_free_placeholders" not in text


def test_dense_when_depths_differ():
    with pytest.raises(ValueError, match="do not multiply: 784 and 783 differ"):
        topi.nn.dense(te.placeholder((1, 784)), te.placeholder((128, 783)))
    with pytest.raises(ValueError, match=r"expected a bias of shape \(5,\)"):
        topi.nn.dense(te.placeholder((1, 4)), te.placeholder((5, 4)), te.placeholder((4,)))
