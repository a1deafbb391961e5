"""The ONNX set's sub: the standard library's, under its name there."""

from ..stdlib.vector.vector_sub import vector_sub as onnx_sub
