"""The ONNX set's sigmoid: the standard library's, under its name there."""

from ..stdlib.activation.activation_sigmoid import sigmoid as onnx_sigmoid
