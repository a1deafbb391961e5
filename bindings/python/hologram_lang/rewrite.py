"""Small rewrites that give Python's untyped variables the language's types, and its threads their
meeting points. The rest of a kernel runs as it stands.

    x: f32 = v         x = _coerce(f32, v)
    x = v              x = _set(x, v)             the type it already has, or the value's own
    x += v             x = _set(x, x + v)
    return v           return _coerce(T, v)       in a helper with a result
    a if c else b      _choose(c, lambda: a, lambda: b)
    t = shared(T, n)   t = _shared("t", T, n)
    barrier()          yield
    group_add(v)       (yield ("group_add", v))
    helper(v)          (yield from helper(v))     where the helper has one of these
"""

import ast

_GROUP = ("group_add", "group_mul", "group_min", "group_max")


def _calls(node):
    return {n.func.id for n in ast.walk(node)
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}


def waiting(module):
    """The functions that wait for their block: a barrier or reduction, theirs or a callee's."""
    functions = {f.name: _calls(f) for f in module.body if isinstance(f, ast.FunctionDef)}
    found = {n for n, calls in functions.items()
             if calls & {"barrier", "parallel_reduce", *_GROUP}}
    while True:
        more = {n for n, calls in functions.items() if n not in found and calls & found}
        if not more:
            return found
        found |= more


def _call(name, *args):
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def _thunk(body):
    empty = ast.arguments([], [], None, [], [], None, [])
    return ast.Lambda(empty, body)


class Rewriter(ast.NodeTransformer):
    def __init__(self, waits):
        self.waits = waits
        self.annotations = {}
        self.result = None
        self.in_function = False

    def visit_FunctionDef(self, node):
        self.annotations = {n.target.id: n.annotation for n in ast.walk(node)
                            if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}
        names = [a.arg for a in node.args.args]
        scalars = {a.arg: a.annotation for a in node.args.args
                   if isinstance(a.annotation, ast.Name)}
        variables = sorted({t.id for n in ast.walk(node)
                            if isinstance(n, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For))
                            for t in (n.targets if isinstance(n, ast.Assign) else [n.target])
                            if isinstance(t, ast.Name)} - set(names))
        self.annotations.update(scalars)
        self.result, self.in_function = node.returns, True
        node.body = [s for part in node.body for s in self._several(self.visit(part))]
        self.in_function = False
        head = [ast.Assign([ast.Name(v, ast.Store())], ast.Constant(None)) for v in variables]
        head += [ast.Assign([ast.Name(n, ast.Store())],
                            _call("_coerce", t, ast.Name(n, ast.Load())))
                 for n, t in scalars.items()]
        node.body = head + node.body
        if node.name in self.waits:  # a generator even where its yield is never reached
            node.body.append(ast.If(ast.Constant(False), [ast.Expr(ast.Yield(None))], []))
        node.args.args = [ast.arg(n) for n in names]
        node.returns = None
        return node

    @staticmethod
    def _several(result):
        return result if isinstance(result, list) else [] if result is None else [result]

    def _set(self, name, value):
        store, load = ast.Name(name, ast.Store()), ast.Name(name, ast.Load())
        if name in self.annotations:
            return ast.Assign([store], _call("_coerce", self.annotations[name], value))
        return ast.Assign([store], _call("_set", load, value))

    def visit_Assign(self, node):
        value = node.value
        target = node.targets[0]
        if isinstance(value, ast.Call) and getattr(value.func, "id", "") == "shared":
            name = ast.Constant(target.id)
            return ast.Assign(node.targets, _call("_shared", name, *value.args))
        node.value = self.visit(value)
        if not isinstance(target, ast.Name):
            node.targets = [self.visit(target)]
            return node
        return self._set(target.id, node.value) if self.in_function else node

    def visit_AnnAssign(self, node):
        if node.value is None:
            return ast.Pass()
        value = self.visit(node.value)
        store = ast.Name(node.target.id, ast.Store())
        return ast.Assign([store], _call("_coerce", node.annotation, value))

    def visit_AugAssign(self, node):
        value = self.visit(node.value)
        if isinstance(node.target, ast.Name):
            left = ast.Name(node.target.id, ast.Load())
            return self._set(node.target.id, ast.BinOp(left, node.op, value))
        node.target, node.value = self.visit(node.target), value
        return node

    def visit_Return(self, node):
        if node.value is not None and self.result is not None:
            node.value = _call("_coerce", self.result, self.visit(node.value))
        return node

    def visit_IfExp(self, node):
        self.generic_visit(node)
        return _call("_choose", node.test, _thunk(node.body), _thunk(node.orelse))

    def visit_Expr(self, node):
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            if call.func.id == "barrier":
                return ast.Expr(ast.Yield(None))
            if call.func.id == "parallel_reduce":
                return self._reduce(call)
        return self.generic_visit(node)

    def _reduce(self, call):
        op, array, output, count = call.args
        own = _call("_reduce_own", op, array, count)
        all_ = ast.Yield(ast.Tuple([ast.Constant("group_" + op.id), own], ast.Load()))
        return ast.Expr(_call("_store_first", output, all_))

    def visit_Call(self, node):
        self.generic_visit(node)
        name = getattr(node.func, "id", "")
        if name in _GROUP:
            return ast.Yield(ast.Tuple([ast.Constant(name), node.args[0]], ast.Load()))
        if name in self.waits:
            return ast.YieldFrom(node)
        return node


def launch_source(function):
    """What launch(), block() and the parallel statements of a kernel say about its launch, as a
    function of the kernel's parameters that gives (threads, block); None: nothing."""
    threads, block = None, None
    for s in function.body:
        call = s.value if isinstance(s, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            continue
        name = call.func.id
        if name == "launch":
            threads = ast.Tuple(call.args, ast.Load())
            default = [(256, 1, 1), (16, 16, 1), (8, 8, 4)][len(call.args) - 1]
            block = block or ast.Constant(default)
            break
        if name == "block":
            block = ast.Tuple(call.args, ast.Load())
        elif name == "parallel_map":
            block = block or ast.Constant((256, 1, 1))
            threads = ast.Tuple([call.args[-1]], ast.Load())
        elif name == "parallel_reduce" and threads is None:
            block = block or ast.Constant((256, 1, 1))
            threads = ast.Tuple([ast.Subscript(block, ast.Constant(0), ast.Load())], ast.Load())
    if threads is None:
        return None
    # block() may stand below launch()
    for s in function.body:
        call = s.value if isinstance(s, ast.Expr) else None
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "block":
            block = ast.Tuple(call.args, ast.Load())
    arguments = ast.arguments([], [ast.arg(a.arg) for a in function.args.args], None, [], [], None,
                              [])
    body = [ast.Return(ast.Tuple([threads, block], ast.Load()))]
    return ast.FunctionDef(f"__launch_{function.name}", arguments, body, [])
