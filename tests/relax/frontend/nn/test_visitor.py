"""Mutators: names of places, replacement of modules, parameters and effects."""

from weft.relax.frontend import nn


class Leaf(nn.Module):
    def __init__(self):
        self.weight = nn.Parameter((2,))
        self.cache = nn.KVCache(1, [2])
        self.note = "kept"


class Tree(nn.Module):
    def __init__(self):
        self.leaf = Leaf()
        self.leaves = nn.ModuleList([Leaf(), nn.ModuleList([nn.ReLU()])])
        self.named = nn.ModuleDict({"a": Leaf()})


class Names(nn.Mutator):
    def __init__(self):
        self.seen = []

    def visit_param(self, name, node):
        self.seen.append(("param", name))
        return node

    def visit_effect(self, name, node):
        self.seen.append(("effect", name))
        return node

    def visit_modulelist(self, name, node):
        self.seen.append(("list", name))
        return super().visit_modulelist(name, node)

    def visit_module(self, name, node):
        self.seen.append(("module", name))
        return super().visit_module(name, node)


def leaf(name):
    return [("module", name), ("param", f"{name}.weight"), ("effect", f"{name}.cache")]


def test_names_of_places():
    names, tree = Names(), Tree()
    assert names.visit("t", tree) is tree
    assert names.seen == [
        *leaf("t.leaf"), ("list", "t.leaves"), *leaf("t.leaves.0"), ("list", "t.leaves.1"),
        ("module", "t.leaves.1.0"), ("module", "t.named"), *leaf("t.named.a"),
    ]  # fmt: skip
    names = Names()
    names.visit("", tree.leaf)
    assert names.seen == [("param", "weight"), ("effect", "cache")]


def test_replacement():
    class Replace(nn.Mutator):
        def visit_param(self, name, node):
            return nn.Parameter(node.shape, "float16")

        def visit_effect(self, name, node):
            return nn.IOEffect()

        def visit_module(self, name, node):
            return nn.SiLU() if isinstance(node, nn.ReLU) else self.visit(name, node)

    tree = Replace().visit("", Tree())
    assert isinstance(tree.leaves[1][0], nn.SiLU)
    for item in (tree.leaf, tree.leaves[0], tree.named["a"]):
        assert item.weight.dtype == "float16"
        assert isinstance(item.cache, nn.IOEffect)
        assert item.note == "kept"


def test_a_replaced_layer_computes(call, fill, random):
    class Quieten(nn.Mutator):
        def visit_module(self, name, node):
            return nn.Identity() if isinstance(node, nn.ReLU) else self.visit(name, node)

    model = nn.ModuleList([nn.Linear(2, 2, bias=False), nn.ReLU()])
    weight, x = fill(model)["0.weight"], random(3, 2)
    import numpy as np

    np.testing.assert_allclose(call(Quieten().visit("", model), x), x @ weight.T, rtol=1e-5)
