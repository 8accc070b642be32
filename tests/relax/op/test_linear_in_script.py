"""R.linear: a name for three operators."""

from weft.script import relax as R


@R.function
def layer(
    x: R.Tensor((2, 3), "float32"), w: R.Tensor((5, 3), "float32"), b: R.Tensor((5,), "float32")
):
    y = R.linear(x, w, b)
    return y


def test_linear_is_a_product_with_the_transposed_weight_and_a_sum():
    names = [binding.value.op.name for binding in layer.body.blocks[0].bindings]
    assert names == ["relax.permute_dims", "relax.matmul", "relax.add"]
    assert [int(extent) for extent in layer.ret_struct_info.shape] == [2, 5]
