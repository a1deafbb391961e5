"""The ONNX set's add: the standard library's, under its name there."""

from ..stdlib.vector.vector_add import vector_add as onnx_add
