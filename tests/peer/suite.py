"""Cases of one node each, in the layout of the ONNX suites, with ONNX Runtime's results as what is expected.

  suite.py make FOLDER    writes models and inputs
  run_onnxruntime.js      runs them
  suite.py finish FOLDER  stores the results beside the inputs

A case that ONNX Runtime itself refuses is reported and left out.
"""
import json
import os
import shutil
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TYPES = {
    "float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "float16": TensorProto.FLOAT16,
    "int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "int16": TensorProto.INT16, "uint16": TensorProto.UINT16,
    "int32": TensorProto.INT32, "int64": TensorProto.INT64, "bool": TensorProto.BOOL, "object": TensorProto.STRING,
}


def element_type(array):
    return TensorProto.STRING if array.dtype.kind in "UO" else TYPES[array.dtype.name]


class Suite:
    def __init__(self, folder):
        self.folder, self.names = folder, []

    def add(self, name, op, inputs, outputs=("f32",), domain="com.microsoft", constants=(), tolerance=(1e-3, 1e-4),
            slack=False, opset=17, ml=3, attribute_opset=None, symbols=None, **attributes):
        """`inputs`: arrays, or None for one left out; `constants`: which of them are weights; `outputs`: their types,
        None for one left out; `symbols`: names of sizes, for a second case whose inputs have them on axes 0 and 1; `slack`: integer results may differ by rounding, so compare them as numbers."""
        kinds = {"f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE, "f16": TensorProto.FLOAT16, "i8": TensorProto.INT8,
                 "u8": TensorProto.UINT8, "i32": TensorProto.INT32, "i64": TensorProto.INT64, "str": TensorProto.STRING}
        assert name not in self.names, name
        if symbols and not name.endswith("_symbolic"):
            self.add(name + "_symbolic", op, inputs, outputs, domain, constants, tolerance, slack, opset, ml, attribute_opset, symbols,
                     **attributes)
            symbols = None
        self.names.append(name)
        if attribute_opset:
            attributes["opset"] = attribute_opset
        in_names = [f"x{i}" if a is not None else "" for i, a in enumerate(inputs)]
        out_names = [f"y{i}" if k else "" for i, k in enumerate(outputs)]
        nodes = [helper.make_node(op, in_names, out_names, name="node", domain=domain, **attributes)]
        graph_outputs = []
        for i, kind in enumerate(outputs):
            if not kind:
                continue
            if slack and kind in ("i8", "u8"):
                nodes.append(helper.make_node("Cast", [out_names[i]], [f"z{i}"], to=TensorProto.FLOAT))
                graph_outputs.append(helper.make_tensor_value_info(f"z{i}", TensorProto.FLOAT, None))
            else:
                graph_outputs.append(helper.make_tensor_value_info(out_names[i], kinds[kind], None))
        given = {n: np.asarray(a) for n, a in zip(in_names, inputs) if n}
        weights = {f"x{i}" for i in constants}

        def shape_of(a):
            return [symbols.get(d, d) if symbols and i < 2 else d for i, d in enumerate(a.shape)]

        graph = helper.make_graph(
            nodes, name,
            [helper.make_tensor_value_info(n, element_type(a), shape_of(a)) for n, a in given.items() if n not in weights],
            graph_outputs, [numpy_helper.from_array(a, n) for n, a in given.items() if n in weights])
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("ai.onnx.ml", ml)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        path = os.path.join(self.folder, name)
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(os.path.join(path, "test_data_set_0"))
        onnx.save(model, os.path.join(path, "model.onnx"))
        feeds = [(n, a) for n, a in given.items() if n not in weights]
        for i, (n, a) in enumerate(feeds):
            with open(os.path.join(path, "test_data_set_0", f"input_{i}.pb"), "wb") as f:
                f.write(numpy_helper.from_array(a.astype(object) if a.dtype.kind == "U" else a, n).SerializeToString())
        with open(os.path.join(path, "tolerance"), "w") as f:
            f.write(f"{tolerance[0]} {tolerance[1]}\n")
        dump = [{"name": n, "type": "string" if a.dtype.kind in "UO" else a.dtype.name, "dims": a.shape,
                 "data": a.ravel().tolist() if a.dtype.kind in "UO" else a.tobytes().hex()} for n, a in feeds]
        with open(os.path.join(path, "inputs.json"), "w") as f:
            json.dump(dump, f)

    def finish(self):
        refused = 0
        for name in sorted(os.listdir(self.folder)):
            path = os.path.join(self.folder, name)
            results = json.load(open(os.path.join(path, "outputs.json")))
            if "error" in results:
                print(f"ONNX Runtime refuses {name}: {results['error']}")
                shutil.rmtree(path)
                refused += 1
                continue
            for i, r in enumerate(results["outputs"]):
                if r["type"] == "string":
                    array = np.array(r["data"], dtype=object).reshape(r["dims"])
                else:
                    array = np.frombuffer(bytes.fromhex(r["data"]), dtype=r["type"]).reshape(r["dims"])
                with open(os.path.join(path, "test_data_set_0", f"output_{i}.pb"), "wb") as f:
                    f.write(numpy_helper.from_array(array, r["name"]).SerializeToString())
            os.remove(os.path.join(path, "inputs.json"))
            os.remove(os.path.join(path, "outputs.json"))
        return refused


def main():
    action, folder = sys.argv[1:3]
    suite = Suite(folder)
    if action == "finish":
        sys.exit(1 if suite.finish() else 0)
    os.makedirs(folder, exist_ok=True)
    import machine_learning_cases
    import microsoft_cases
    microsoft_cases.add(suite)
    machine_learning_cases.add(suite)
    print(f"{len(suite.names)} cases")


if __name__ == "__main__":
    main()
