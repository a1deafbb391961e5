"""Draws the weights that an exported architecture leaves out.

usage: fill_weights.py MODEL.onnx WEIGHTS.bin

The model says for every tensor its mean and deviation (metadata "weight_stats"), and where in the
.bin it belongs. A tensor that is all zero when training starts (biases, ViT's head) is drawn too:
zeros would hide whatever is computed with them.
"""
import json
import sys

import numpy as np
import onnx

# ONNX 1.13 has a function for this, and newer ones no table.
dtype_of = getattr(onnx.helper, "tensor_dtype_to_np_dtype", None) or onnx.mapping.TENSOR_TYPE_TO_NP_TYPE.get
model_path, weights_path = sys.argv[1:]
model = onnx.load(model_path, load_external_data=False)
stats = json.loads(next(p.value for p in model.metadata_props if p.key == "weight_stats"))
random = np.random.default_rng(7)
with open(weights_path, "wb") as file:
    for tensor in model.graph.initializer:
        place = {entry.key: entry.value for entry in tensor.external_data}
        if not place:
            continue
        mean, deviation = stats[tensor.name]
        count = int(np.prod(tensor.dims))
        if deviation > 1e6:  # an attention mask: nothing above the diagonal is seen
            mask = np.triu(np.full(tensor.dims[-2:], -1e9, np.float32), 1)
            values = np.broadcast_to(mask, tensor.dims).ravel()
        else:
            if mean == 0 and deviation == 0:
                deviation = 0.02
            values = random.standard_normal(count, dtype=np.float32) * np.float32(deviation)
            values += np.float32(mean)
        file.seek(int(place["offset"]))
        file.write(values.astype(dtype_of(tensor.data_type)).tobytes())
