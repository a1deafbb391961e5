"""The ONNX set's tanh: the standard library's, under its name there."""

from ..stdlib.activation.activation_tanh import tanh_activation as onnx_tanh
