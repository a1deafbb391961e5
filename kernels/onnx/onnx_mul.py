"""The ONNX set's mul: the standard library's, under its name there."""

from ..stdlib.vector.vector_mul import vector_mul as onnx_mul
