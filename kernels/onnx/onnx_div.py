"""The ONNX set's div: the standard library's, under its name there."""

from ..stdlib.vector.vector_div import vector_div as onnx_div
