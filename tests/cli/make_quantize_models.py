"""A small network and samples for the test of `hologram quantize`. usage: make_quantize_models.py FOLDER"""
import os
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx import TensorProto as T

folder = sys.argv[1]
random = np.random.default_rng(3)
node = helper.make_node


def weight(name, *shape):
    depth = np.prod(shape[1:]) if len(shape) > 2 else shape[0]
    # Channels of very different size: what one scale for all would lose.
    size = 10.0 ** random.uniform(-1, 1, shape[0] if len(shape) > 2 else shape[-1])
    size = size.reshape([-1] + [1] * (len(shape) - 1)) if len(shape) > 2 else size
    return numpy_helper.from_array((random.standard_normal(shape) * size / depth ** 0.5).astype(np.float32), name)


def value(name, shape, dtype=T.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def network(opset, listed=False):
    nodes = [node("Conv", ["x", "w1", "b1"], ["c1"], name="first", pads=[1, 1, 1, 1]), node("Relu", ["c1"], ["r1"]),
             node("Conv", ["r1", "w2"], ["c2"], name="depth", pads=[1, 1, 1, 1], group=16),
             node("Conv", ["c2", "w3"], ["c3"], name="point"), node("Add", ["c3", "r1"], ["s"]),
             node("Relu", ["s"], ["r2"]), node("GlobalAveragePool", ["r2"], ["p"]), node("Flatten", ["p"], ["f"]),
             node("Gemm", ["f", "w4", "b4"], ["y"], name="head", transB=1)]
    weights = [weight("w1", 16, 3, 3, 3), weight("w2", 16, 1, 3, 3), weight("w3", 16, 16, 1, 1), weight("w4", 10, 16),
               numpy_helper.from_array(random.standard_normal(16).astype(np.float32), "b1"),
               numpy_helper.from_array(random.standard_normal(10).astype(np.float32), "b4")]
    inputs = [value("x", ["n", 3, 12, 12])] + ([value(w.name, list(w.dims)) for w in weights] if listed else [])
    graph = helper.make_graph(nodes, "network", inputs, [value("y", ["n", 10])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 3 if listed else 8
    return model


onnx.save(network(17), f"{folder}/network.onnx")
onnx.save(network(11, True), f"{folder}/old.onnx")
onnx.save(network(9), f"{folder}/ancient.onnx")
# Weights in a file of their own.
onnx.save(network(17), f"{folder}/external.onnx", save_as_external_data=True, location="external.bin", size_threshold=0)
graph = helper.make_graph([node("Relu", ["x"], ["y"])], "none", [value("x", [2])], [value("y", [2])])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), f"{folder}/nothing.onnx")

# The difference of two products that nearly agree enlarges what they round off.
matrix = random.standard_normal((64, 32)).astype(np.float32)
close = [numpy_helper.from_array(m.astype(np.float32), n) for n, m in (("a", matrix), ("b", matrix * 1.001))]
graph = helper.make_graph([node("MatMul", ["x", "a"], ["p"]), node("MatMul", ["x", "b"], ["q"]), node("Sub", ["p", "q"], ["y"])],
                          "close", [value("x", [8, 64])], [value("y", [8, 32])], close)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), f"{folder}/close.onnx")

for name in ("samples", "npy", "pb/0", "empty", "wrong", "rows"):
    os.makedirs(f"{folder}/{name}")
for i in range(6):
    x = random.standard_normal((2, 3, 12, 12)).astype(np.float32)
    np.savez(f"{folder}/samples/{i}.npz", x=x)
    np.save(f"{folder}/npy/{i}.npy", x)
np.savez(f"{folder}/wrong/0.npz", z=x)
np.savez(f"{folder}/rows/0.npz", x=random.standard_normal((8, 64)).astype(np.float32))
with open(f"{folder}/pb/0/input_0.pb", "wb") as f:
    f.write(numpy_helper.from_array(x, "x").SerializeToString())
np.save(f"{folder}/x.npy", x)

# A convolution whose large terms cancel: sums of f32 lose what is left. The other one is harmless.
half = random.standard_normal((32, 64, 1, 1)) * 300
rough = np.concatenate([half, random.standard_normal(half.shape) - half], 1)
delicate = [numpy_helper.from_array(w.astype(np.float32), n) for n, w in
            (("rough", rough), ("bias", random.standard_normal(32)), ("plain", random.standard_normal((16, 32, 3, 3)) / 17))]
graph = helper.make_graph([node("Conv", ["x", "rough", "bias"], ["a"]), node("Relu", ["a"], ["b"]),
                           node("Conv", ["b", "plain"], ["y"], strides=[2, 2])],
                          "delicate", [value("x", [1, 128, 9, 9])], [value("y", [1, 16, 4, 4])], delicate)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), f"{folder}/delicate.onnx")
os.makedirs(f"{folder}/pairs")
for i in range(3):
    x = random.standard_normal((1, 64, 9, 9)).astype(np.float32)
    x = np.concatenate([x, x], 1)
    np.savez(f"{folder}/pairs/{i}.npz", x=x)
    a, b, c = (numpy_helper.to_array(w).astype(np.float64) for w in delicate)
    image = np.maximum(np.einsum("oc,nchw->nohw", a[:, :, 0, 0], x.astype(np.float64)) + b[:, None, None], 0)
    y = sum(np.einsum("oc,nchw->nohw", c[:, :, i, j], image[:, :, i:i + 7:2, j:j + 7:2]) for i in range(3) for j in range(3))
np.save(f"{folder}/pair.npy", x)
np.save(f"{folder}/pair_y.npy", y.astype(np.float32))
