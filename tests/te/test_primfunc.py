import numpy as np
import pytest

from weft import te
from weft.tir.interp import run

MATMUL_RELU = """
@T.prim_func
def main(A: {0}, B: {0}, relu: {0}):
    T.func_attr({{"tir.noalias": T.bool(True)}})
    # with T.block("root"):
    matmul = T.alloc_buffer((128, 128))
    for i, j, k in T.grid(128, 128, 128):
        with T.block("matmul"):
            v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
            T.reads(A[v_i, v_k], B[v_k, v_j])
            T.writes(matmul[v_i, v_j])
            with T.init():
                matmul[v_i, v_j] = T.float32(0.0)
            matmul[v_i, v_j] = matmul[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]
    for i0, i1 in T.grid(128, 128):
        with T.block("relu"):
            v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
            T.reads(matmul[v_i0, v_i1])
            T.writes(relu[v_i0, v_i1])
            relu[v_i0, v_i1] = T.max(matmul[v_i0, v_i1], T.float32(0.0))
"""
MATMUL_RELU = MATMUL_RELU.format('T.Buffer((128, 128), "float32")')


def te_matmul(a, b):
    assert a.shape[1] == b.shape[0]
    k = te.reduce_axis((0, a.shape[1]), name="k")
    return te.compute(
        (a.shape[0], b.shape[1]), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="matmul"
    )


def te_relu(a):
    return te.compute(a.shape, lambda *i: te.max(a(*i), 0), name="relu")


def square_matrices():
    return [te.placeholder((128, 128), name=name) for name in "AB"]


def squeezed(text):
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


def test_create_prim_func_when_intermediate_is_allocated():
    a, b = square_matrices()
    func = te.create_prim_func([a, b, te_relu(te_matmul(a, b))])
    text = func.script()
    assert squeezed(text[text.index("@T.prim_func") :]) == squeezed(MATMUL_RELU)
    assert func.attrs["global_symbol"] == "main"


def test_create_prim_func_when_intermediate_is_an_argument():
    a, b = square_matrices()
    c = te_matmul(a, b)
    func = te.create_prim_func([a, b, c, te_relu(c)])
    assert len(func.params) == 4
    assert "alloc_buffer" not in func.script()


def test_create_prim_func_when_extents_are_symbolic():
    n, m = te.var("n"), te.var("m")
    a, b = te.placeholder((n, 3), name="A"), te.placeholder((3, m), name="B")
    func = te.create_prim_func([a, b, te_relu(te_matmul(a, b))])
    assert "match_buffer" in func.script()
    x = np.random.default_rng(0).random((2, 3)).astype("float32") - 0.5
    y, out = x.T.copy(), np.zeros((2, 2), "float32")
    run(func, x, y, out)
    np.testing.assert_allclose(out, np.maximum(x @ y, 0), rtol=1e-5)


def test_create_prim_func_when_a_variable_is_a_parameter():
    n = te.var("n", "int64")
    a = te.placeholder((4,), name="A")
    out = te.compute((4,), lambda i: a[i] + n.astype("float32"), name="out")
    func = te.create_prim_func([a, out, n])
    data, result = np.ones(4, "float32"), np.zeros(4, "float32")
    run(func, data, result, 5)
    np.testing.assert_array_equal(result, data + 5)


def test_create_prim_func_when_zero_dimensional():
    a = te.placeholder((), name="A")
    func = te.create_prim_func([a, te.compute((), lambda: a() + 1.0, name="out")])
    assert "vi = T.axis.spatial(1, 0)" in func.script()
    result = np.zeros((), "float32")
    run(func, np.array(2, "float32"), result)
    assert result == 3


def test_create_prim_func_when_names_repeat():
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1.0)
    c = te.compute((4,), lambda i: b[i] + 1.0)
    text = te.create_prim_func([a, c]).script()
    assert 'T.block("compute")' in text
    assert 'T.block("compute_1")' in text


def test_create_prim_func_when_index_dtype_is_overridden():
    a = te.placeholder((4, 5), name="A")
    idx = te.placeholder((3,), "int32", name="rows")
    out = te.compute((3, 5), lambda i, j: a[idx[i], 4 - j] + i.astype("float32"), name="out")
    func = te.create_prim_func([a, idx, out], "int64")
    for _, buffer in func.buffer_map.items():
        assert all(extent.dtype == "int64" for extent in buffer.shape)
    text = func.script()
    assert "T.grid(T.int64(3), T.int64(5))" in text
    data = np.arange(20, dtype="float32").reshape(4, 5)
    rows, result = np.array([3, 0, 1], "int32"), np.zeros((3, 5), "float32")
    run(func, data, rows, result)
    np.testing.assert_array_equal(result, data[rows][:, ::-1] + np.arange(3)[:, None])


def test_create_prim_func_when_index_is_stored_as_value():
    out = te.compute((4,), lambda i: i * 2, name="out")
    func = te.create_prim_func([out], "int64")
    result = np.zeros(4, "int32")
    run(func, result)
    np.testing.assert_array_equal(result, np.arange(4) * 2)


def test_regions_when_one_buffer_is_read_at_several_places():
    a = te.placeholder((10,), name="A")
    out = te.compute((8,), lambda i: a[i] + a[i + 1] + a[i + 2], name="out")
    assert "T.reads(A[v_i:v_i + 3])" in te.create_prim_func([a, out]).script()


def test_regions_when_an_index_is_data():
    a, i = te.placeholder((10,), name="A"), te.placeholder((4,), "int32", name="index")
    out = te.compute((4,), lambda x: a[i[x]], name="out")
    assert "T.reads(A[index[v_x]], index[v_x])" in te.create_prim_func([a, i, out]).script()


def test_nest_when_a_range_depends_on_an_axis():
    a = te.placeholder((5, 5), name="A")

    def lower_sum(i):
        k = te.reduce_axis((0, i + 1), "k")
        return te.sum(a[i, k], axis=k)

    func = te.create_prim_func([a, te.compute((5,), lower_sum, name="rows")])
    assert 'T.block("rows_l1")' in func.script()
    data, result = np.random.default_rng(0).random((5, 5)).astype("float32"), np.zeros(5, "float32")
    run(func, data, result)
    np.testing.assert_allclose(result, np.tril(data).sum(1), rtol=1e-5)


def test_annotations_when_attrs_are_given():
    a = te.placeholder((4,), name="A")
    out = te.compute((4,), lambda i: a[i], name="out", attrs={"rule": "mine", "axis": 1})
    assert 'T.block_attr({"axis": 1, "rule": "mine"})' in te.create_prim_func([a, out]).script()


def test_several_outputs_of_one_compute():
    a = te.placeholder((4,), name="A")
    b, c = te.compute((4,), lambda i: (a[i] + 1.0, a[i] * 2.0), name="pair")
    data = np.arange(4, dtype="float32")
    first, second = np.zeros(4, "float32"), np.zeros(4, "float32")
    run(te.create_prim_func([a, b, c]), data, first, second)
    np.testing.assert_array_equal(first, data + 1)
    np.testing.assert_array_equal(second, data * 2)


def test_create_prim_func_when_an_input_is_missing():
    a, b = square_matrices()
    with pytest.raises(ValueError, match="the input B is not among the arguments"):
        te.create_prim_func([a, te_matmul(a, b)])
    with pytest.raises(TypeError, match="expected tensors and variables, got int"):
        te.create_prim_func([a, 3])


def test_create_prim_func_when_the_graph_is_deep():
    tensor = source = te.placeholder((2,), name="A")
    for _ in range(300):
        tensor = _next(tensor)
    func = te.create_prim_func([source, tensor])
    result = np.zeros(2, "float32")
    run(func, np.zeros(2, "float32"), result)
    assert result[0] == 300


def _next(tensor):
    return te.compute((2,), lambda i: tensor[i] + 1.0)


def test_provenance_marks_functions_made_here():
    a = te.placeholder((4,), name="A")
    assert te.create_prim_func([a, te_relu(a)]).provenance == "te"


def test_nested_reductions_bind_the_outer_axes_first():
    x = te.placeholder((4, 4, 4), "float32", "x")

    def triangle(i):
        row = te.reduce_axis((0, i), "row")
        column = te.reduce_axis((0, row.var), "column")
        return te.sum(x[i, row, column], axis=[row, column])

    text = te.create_prim_func([x, te.compute((4,), triangle, name="y")]).script()
    inner = text.index("v_row_1 = T.axis.reduce((v_row, v_row + 1), v_row)")
    assert text.index("v_i_2 = T.axis.spatial((v_i_1, v_i_1 + 1), v_i_1)") < inner
    assert inner < text.index("v_column = T.axis.reduce(v_row, column)")


def test_a_region_names_each_index_once():
    a = te.placeholder((4, 8), name="A")
    made = te.compute((4, 8), lambda i, j: a[i, j] - a[i, 0] + a[i, j] * a[i, 0], name="y")
    text = te.create_prim_func([a, made]).script()
    low, high = "T.min(v_j, 0)", "T.max(v_j, 0)"
    assert f"T.reads(A[v_i, {low}:{low} + ({high} + 1 - {low})])" in text


def test_arguments_in_any_order():
    a = te.placeholder((3,), name="A")
    b = te.compute((3,), lambda i: a[i] * 2.0, name="B")
    data, result = np.arange(3, dtype="float32"), np.zeros(3, "float32")
    run(te.create_prim_func([b, a]), result, data)
    assert result.tolist() == [0, 2, 4]


def test_arguments_that_nothing_reads():
    a, b = te.placeholder((3,), name="A"), te.placeholder((2,), "int8", name="B")
    n = te.var("n")
    func = te.create_prim_func([a, n, b])
    assert [param.name for param in func.params] == ["var_A", "n", "var_B"]
    run(func, np.zeros(3, "float32"), 1, np.zeros(2, "int8"))
    assert len(te.create_prim_func([]).params) == 0


def test_one_tensor_is_one_argument():
    a = te.placeholder((3,), name="A")
    with pytest.raises(ValueError, match="buffer A stands for two parameters"):
        te.create_prim_func([a, a, te.compute((3,), lambda i: a[i])])


def test_what_two_tensors_read_is_computed_once():
    a = te.placeholder((3,), name="A")
    shared = te.compute((3,), lambda i: a[i] + 1.0, name="shared")
    left = te.compute((3,), lambda i: shared[i] * 2.0, name="left")
    right = te.compute((3,), lambda i: shared[i] - left[i], name="right")
    func = te.create_prim_func([a, left, right])
    assert func.script().count('T.block("shared")') == 1
    assert func.script().count("alloc_buffer") == 1
    results = [np.zeros(3, "float32"), np.zeros(3, "float32")]
    run(func, np.arange(3, dtype="float32"), *results)
    assert [result.tolist() for result in results] == [[2, 4, 6], [-1, -2, -3]]


@pytest.mark.parametrize("name", ["for", "a b", "T", "1st", "A.v0", "ä"])
def test_names_that_are_no_names_of_python(name):
    from weft.ir.structural import structural_equal
    from weft.script import from_source

    a = te.placeholder((3,), name=name)
    func = te.create_prim_func([a, te.compute((3,), lambda i: a[i] + 1.0, name=name)])
    assert structural_equal(from_source(func.script()), func)


def test_tensors_in_attributes_are_buffers_of_the_block():
    a, w = te.placeholder((3,), name="A"), te.placeholder((3,), name="W")
    out = te.compute(
        (3,), lambda i: a[i] * w[i], name="out", attrs={"layout_free_placeholders": [w], "of": a}
    )
    func = te.create_prim_func([a, w, out])
    assert list(func.attrs["layout_free_buffers"]) == [1]
    text = func.script()
    assert 'T.block_attr({"of": A})' in text
    assert "layout_free_placeholders" not in text


def test_weights_that_are_computed_stay_an_annotation():
    a, w = te.placeholder((3,), name="A"), te.placeholder((3,), name="W")
    twice = te.compute((3,), lambda i: w[i] * 2.0, name="twice")
    out = te.compute(
        (3,), lambda i: a[i] * twice[i], name="out", attrs={"layout_free_placeholders": [twice, w]}
    )
    func = te.create_prim_func([a, w, out])
    assert list(func.attrs["layout_free_buffers"]) == [1]
    assert '"layout_free_placeholders": [twice]' in func.script()
