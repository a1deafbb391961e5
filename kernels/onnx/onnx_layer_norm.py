"""The ONNX set's layer normalization: the standard library's, under its name there."""

from ..stdlib.normalization.normalization_layer_norm import layer_norm as onnx_layer_norm
