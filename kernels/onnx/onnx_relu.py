"""The ONNX set's relu: the standard library's, under its name there."""

from ..stdlib.activation.activation_relu import relu as onnx_relu
