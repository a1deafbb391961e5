"""What of the language a source uses: its statements, operators, calls and types, by name.

Read by Python's own parser, so that it knows nothing of ours.
"""

import ast


def names(source):
    seen = set()
    module = ast.parse(source)
    for statement in module.body:
        if isinstance(statement, ast.Assign):
            seen.add("constant")
        elif isinstance(statement, ast.AnnAssign):
            seen.add("annotated constant")
    for node in ast.walk(module):
        kind = type(node).__name__
        if isinstance(node, (ast.operator, ast.unaryop, ast.cmpop, ast.boolop)):
            seen.add(kind)
        elif isinstance(node, ast.AugAssign):
            seen.add(f"{type(node.op).__name__}=")
        elif isinstance(node, ast.Assign):
            seen.add("element =" if isinstance(node.targets[0], ast.Subscript) else "=")
        elif isinstance(node, ast.AnnAssign):
            seen.add("x: T = v" if node.value else "x: T")
        elif isinstance(node, ast.If):
            seen.add("if")
            if node.orelse:
                nested = len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If)
                seen.add("elif" if nested else "else")
        elif isinstance(node, ast.For):
            seen.add(f"range of {len(node.iter.args)}")
            if len(node.iter.args) == 3 and isinstance(node.iter.args[2], ast.UnaryOp):
                seen.add("range down")
        elif isinstance(node, ast.Compare) and len(node.ops) > 1:
            seen.add("comparison chain")
        elif isinstance(node, ast.Return):
            seen.add("return v" if node.value else "return")
        elif isinstance(node, ast.Call):
            seen.add(f"{node.func.id}()")
            if node.func.id in ("min", "max") and len(node.args) > 2:
                seen.add(f"{node.func.id} of three")
            if node.func.id == "parallel_map":
                seen.add(f"parallel_map of {len(node.args) - 3}")
            if node.func.id == "parallel_reduce":
                seen.add(f"parallel_reduce {node.args[0].id}")
        elif isinstance(node, ast.Subscript):
            if isinstance(node.value, ast.Attribute):
                seen.add(".shape")
            elif isinstance(node.slice, ast.Tuple) and node.value.id != "DeviceArray":
                seen.add("a[i, j]")
        elif isinstance(node, ast.FunctionDef):
            seen.add("@inline" if node.decorator_list else "kernel")
            if ast.get_docstring(node):
                seen.add("doc string")
            for parameter in node.args.args:
                a = parameter.annotation
                array = isinstance(a, ast.Subscript)
                of = a.slice if array else a
                if isinstance(of, ast.Tuple):
                    seen.add(f"DeviceArray of rank {of.elts[1].value}")
                    of = of.elts[0]
                seen.add(f"DeviceArray[{of.id}]" if array else of.id)
        elif kind in ("While", "Break", "Continue", "Pass", "IfExp"):
            seen.add(kind.lower())
    return seen
