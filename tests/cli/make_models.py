"""Small models, good and bad, for the tests of the command. usage: make_models.py FOLDER"""
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

folder = sys.argv[1]
random = np.random.default_rng(1)


def weight(name, *shape):
    return numpy_helper.from_array(random.standard_normal(shape).astype(np.float32), name)


def value(name, shape, dtype=T.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def save(name, nodes, inputs, outputs, weights=(), opset=17):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    onnx.save(model, f"{folder}/{name}.onnx")


node = helper.make_node
# A picture to ten scores.
save("image",
     [node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), node("Relu", ["c"], ["r"]),
      node("GlobalAveragePool", ["r"], ["p"]), node("Flatten", ["p"], ["f"]),
      node("MatMul", ["f", "fc"], ["y"])],
     [value("x", [1, 3, 8, 8])], [value("y", [1, 10])], [weight("w", 4, 3, 3, 3), weight("fc", 4, 10)])
# Two inputs of an open length.
save("open", [node("Add", ["a", "b"], ["s"]), node("Mul", ["a", "b"], ["p"])],
     [value("a", ["n", 2]), value("b", ["n", 2])], [value("s", ["n", 2]), value("p", ["n", 2])])
# A branch either way, with a constant in each.
branch = lambda name, op: helper.make_graph([node(op, ["x", name + "_k"], [name])], name, [],
                                            [value(name, [2])], [weight(name + "_k", 2)])
save("branch", [node("If", ["c"], ["y"], then_branch=branch("t", "Add"), else_branch=branch("e", "Mul"))],
     [value("x", [2]), value("c", [], T.BOOL)], [value("y", [2])])
# Weights large enough to be stored as fragments.
save("wide", [node("MatMul", ["x", "w"], ["y"])], [value("x", [1, 64])], [value("y", [1, 96])],
     [numpy_helper.from_array(np.random.default_rng(5).standard_normal((64, 96)).astype(np.float32), "w")])
# What is refused.
save("unknown", [node("Frobnicate", ["x"], ["y"], name="bad")], [value("x", [2])], [value("y", [2])])
save("newer", [node("Relu", ["x"], ["y"])], [value("x", [2])], [value("y", [2])], opset=99)
save("cycle", [node("Add", ["x", "z"], ["y"], name="one"), node("Relu", ["y"], ["z"], name="two")],
     [value("x", [2])], [value("y", [2])])
save("missing", [node("Add", ["x", "nowhere"], ["y"], name="sum")], [value("x", [2])], [value("y", [2])])
save("types", [node("Add", ["x", "i"], ["y"], name="sum")], [value("x", [2]), value("i", [2], T.INT64)],
     [value("y", [2])])
save("shapes", [node("MatMul", ["x", "i"], ["y"], name="product")], [value("x", [2, 3]), value("i", [4, 5])],
     [value("y", [2, 5])])

x = random.standard_normal((1, 3, 8, 8)).astype(np.float32)
np.save(f"{folder}/x.npy", x)
np.savez(f"{folder}/x.npz", x=x)
np.savez(f"{folder}/other.npz", q=x)
np.save(f"{folder}/double.npy", x.astype(np.float64))
np.save(f"{folder}/rank3.npy", x[0])
np.save(f"{folder}/large.npy", np.zeros((1, 3, 9, 9), np.float32))
x.tofile(f"{folder}/x.raw")
with open(f"{folder}/x.pb", "wb") as file:
    file.write(numpy_helper.from_array(x, "x").SerializeToString())
with open(f"{folder}/cut.onnx", "wb") as file:
    file.write(open(f"{folder}/image.onnx", "rb").read()[:300])
open(f"{folder}/text.onnx", "w").write("hello\n")
