"""PatternContext: graphs of patterns over dataflow blocks."""

import random

import pytest

from weft import relax
from weft.relax.dpl import (
    PatternContext,
    PatternSeq,
    is_call_dps_packed,
    is_const,
    is_op,
    is_shape,
    is_var,
    wildcard,
)
from weft.script import relax as R
from weft.support.errors import IRTypeError, IRValueError


@R.function(private=True)
def diamond(x: R.Tensor((4, 4), "float32"), w: R.Tensor((4, 4), "float32")):
    with R.dataflow():
        top = R.matmul(x, w)
        left = R.nn.relu(top)
        right = R.sigmoid(top)
        bottom = R.add(left, right)
        R.output(bottom)
    return bottom


BLOCK = diamond.body.blocks[0]


def call(name):
    """A call whose arguments are no patterns: a pattern of its own would take the variable."""
    return is_op(name)(varg_default_wildcard=True)


def names(found):
    return None if found is None else [value.name_hint for value in found.values()]


def test_a_diamond_is_found_through_its_edges():
    with PatternContext() as context:
        top = is_op("relax.matmul")(wildcard(), wildcard())
        left, right = is_op("relax.nn.relu")(top), is_op("relax.sigmoid")(top)
        bottom = is_op("relax.add")(left, right)
    found = context.match_dfb(BLOCK)
    assert [found[p].name_hint for p in (top, left, right, bottom)] == [
        "top", "left", "right", "bottom",
    ]  # fmt: skip


def test_only_used_by_refuses_a_second_user():
    with PatternContext() as context:
        call("relax.matmul") >> call("relax.nn.relu")
    assert context.match_dfb(BLOCK) is None
    with PatternContext() as context:
        call("relax.matmul") ^ call("relax.nn.relu")
    assert context.match_dfb(BLOCK) is not None


def test_different_patterns_get_different_variables():
    with PatternContext() as context:
        call("relax.nn.relu") ^ call("relax.add")
        call("relax.nn.relu") ^ call("relax.add")
    assert context.match_dfb(BLOCK) is None


def test_the_index_of_an_edge_counts_arguments():
    for index, expected in ((0, True), (1, False)):
        with PatternContext() as context:
            call("relax.nn.relu").used_by(call("relax.add"), index)
        assert (context.match_dfb(BLOCK) is not None) is expected


def test_arguments_of_registered_functions_count_as_those_of_the_callee():
    @R.function(private=True)
    def twice(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            y = R.call_dps_packed("f", (x,), out_sinfo=R.Tensor((4,), "float32"))
            z = R.call_dps_packed("g", (y, y), out_sinfo=R.Tensor((4,), "float32"))
            R.output(z)
        return z

    with PatternContext() as context:
        producer, consumer = is_call_dps_packed("f"), is_call_dps_packed("g")
        producer.only_used_by(consumer, 0)
        producer.only_used_by(consumer, 1)
    assert names(context.match_dfb(twice.body.blocks[0])) == ["y", "z"]


def test_arguments_that_stand_inline_are_found():
    @R.function(private=True)
    def func(x: R.Tensor((4, 4), "float32")):
        with R.dataflow():
            y = R.multiply(x, R.const(2.0))
            z = R.reshape(y, R.shape([16]))
            R.output(z)
        return z

    with PatternContext() as context:
        constant, shape = is_const(), is_shape([16])
        is_op("relax.reshape")(is_op("relax.multiply")(wildcard(), constant), shape)
    found = context.match_dfb(func.body.blocks[0])
    assert isinstance(found[constant], relax.Constant)
    assert isinstance(found[shape], relax.ShapeExpr)


def test_sequences_are_chained_and_copied():
    with PatternContext() as context:
        chain = call("relax.matmul") ^ call("relax.nn.relu")
        assert isinstance(chain, PatternSeq)
        copy = chain.dup()
        assert copy[0] is not chain[0]
    assert context.match_dfb(BLOCK) is None  # two products, the block has one


def test_a_fork_leads_to_several_consumers():
    with PatternContext() as context:
        source = call("relax.matmul")
        source.fork_to(call("relax.nn.relu"), call("relax.sigmoid"))
    assert names(context.match_dfb(BLOCK)) == ["top", "left", "right"]


def test_shapes_can_be_required_to_be_the_same():
    @R.function(private=True)
    def func(x: R.Tensor((4, 1), "float32"), y: R.Tensor((4, 3), "float32")):
        with R.dataflow():
            same = R.add(x, x)
            wide = R.add(same, y)
            R.output(wide)
        return wide

    for shared, expected in ((True, None), (False, ["x", "y"])):
        with PatternContext() as context:
            left, right = is_var("x"), is_var("y")
            is_op("relax.add")(is_op("relax.add")(left, left), right)
            if shared:
                left.same_shape_as(right)
        found = context.match_dfb(func.body.blocks[0])
        assert (found and [found[left].name_hint, found[right].name_hint]) == expected


def test_contexts_nest_and_incremental_ones_start_from_the_outer():
    relu, add = call("relax.nn.relu"), call("relax.add")
    with PatternContext() as outer:
        call("relax.exp") >> relu
        with PatternContext() as fresh:
            relu >> add
            assert PatternContext.current() is fresh
        with PatternContext(incremental=True) as grown:
            relu >> add
        assert PatternContext.current() is outer
    assert PatternContext.current() is None
    assert fresh.match_dfb(BLOCK) is not None
    assert grown.match_dfb(BLOCK) is None


def test_errors_of_contexts():
    with pytest.raises(IRValueError, match="expected a surrounding PatternContext"):
        PatternContext(incremental=True)
    with pytest.raises(IRTypeError, match="add_constraint: expected an Edge"):
        PatternContext().add_constraint(1)
    with pytest.raises(IRTypeError, match="expected a pattern or a PatternSeq"):
        wildcard().used_by(1)


def random_block(rng, size):
    """A function of ``size`` bindings over two parameters."""
    builder = relax.BlockBuilder()
    info = relax.TensorStructInfo((2, 2), "float32")
    params = [relax.Var("x", info), relax.Var("y", info)]
    known = list(params)
    with builder.function("main", params):
        with builder.dataflow():
            for _ in range(size):
                name = rng.choice(("add", "multiply", "negative", "exp", "subtract"))
                near = known[-6:]
                arity = 1 if name in ("negative", "exp") else 2
                operator = getattr(relax.op, name)
                known.append(builder.emit(operator(*(rng.choice(near) for _ in range(arity)))))
            result = builder.emit_output(known[-1])
        builder.emit_func_output(result)
    return builder.get()["main"].body.blocks[0]


def cut(rng, block, size):
    """A context of patterns cut out of a block, and which variable each was cut from."""
    values = {b.var: b.value for b in block.bindings if isinstance(b.value, relax.Call)}
    chosen = [rng.choice(list(values))]
    while len(chosen) < size:
        users = [v for v in values if any(c in values[v].args for c in chosen)]
        inputs = [arg for v in chosen for arg in values[v].args if arg in values]
        more = [v for v in rng.choice((users, inputs)) or users + inputs if v not in chosen]
        if not more:
            break
        chosen.append(rng.choice(more))
    origin = {}
    with PatternContext() as context:
        patterns = {}
        for var in (v for v in values if v in chosen):  # producers first
            args = [patterns.setdefault(arg, wildcard()) for arg in values[var].args]
            patterns[var] = is_op(values[var].op.name)(*args)
            origin[patterns[var]] = var
    return context, origin


@pytest.mark.parametrize("seed", range(60))
def test_a_pattern_cut_out_of_a_block_is_found_again(seed):
    rng = random.Random(seed)
    block = random_block(rng, 30)
    context, origin = cut(rng, block, 6)
    found = context.match_dfb(block)
    assert found is not None
    values = {binding.var: binding.value for binding in block.bindings}
    for edge in context.edges:
        assert found[edge.producer] in values[found[edge.consumer]].args
    assert len({id(found[pattern]) for pattern in origin}) == len(origin)
    assert found == context.match_dfb(block)


def test_a_thousand_bindings_are_matched():
    """A chain that occurs once at the end of a thousand bindings."""
    block = random_block(random.Random(1), 1000)
    context, _ = cut(random.Random(2), block, 8)
    assert context.edges
    assert context.match_dfb(block) is not None
