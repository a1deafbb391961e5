"""Loading kernel files and running their kernels thread by thread."""

import ast
import builtins
import copy
import itertools
import os

import numpy as np

from . import functions as _functions
from . import scalars as _scalars
from .functions import GROUP, ArrayType, DeviceArray, Thread, reduce_own, shared_array, tree
from .rewrite import Rewriter, launch_source, waiting
from .scalars import (Probe, Scalar, TYPES, bool_, coerce, convert, is_weak, strong, type_of)


def _set(old, value):
    """What a variable makes of a value: the type it has, or the value's own."""
    return strong(value) if old is None else coerce(type_of(old), value)


def _choose(condition, then, other):
    if type(condition) is not builtins.bool:
        raise TypeError("a conditional expression takes a bool")
    value, left = (then(), other) if condition else (other(), then)
    if not is_weak(value):
        return value
    Probe.depth += 1  # a literal takes the other branch's type
    try:
        left = left()
    finally:
        Probe.depth -= 1
    return coerce(type_of(left), value) if isinstance(left, Scalar) else value


def _store_first(output, value):
    if Thread.local[0] == 0 and Thread.group[0] == 0:
        output[0] = value


def _namespace():
    names = {n: getattr(_functions, n) for n in _functions.__all__}
    names.update({n: t for n, t in TYPES.items()})
    names.update(int=_scalars.i32, float=_scalars.f32, bool=bool_, _coerce=coerce, _set=_set,
                 _choose=_choose, _shared=shared_array, _reduce_own=reduce_own,
                 _store_first=_store_first, True_=True)
    return names


class Kernels:
    """The kernels of one source. `run` launches one of them on NumPy arrays, in place."""

    def __init__(self, source, file="<source>"):
        module = ast.parse(source, file)
        # Kernels of other files, under a name here: (the file's kernels, the name there).
        self._imported = {}
        for s in module.body:
            if isinstance(s, ast.ImportFrom) and s.level > 0:
                path = os.path.join(os.path.dirname(file), *[".."] * (s.level - 1),
                                    *s.module.split(".")) + ".py"
                self._imported.update({n.asname or n.name: (load(path), n.name) for n in s.names})
        module.body = [s for s in module.body if not isinstance(s, ast.ImportFrom)]
        waits = waiting(module)
        functions = [f for f in module.body if isinstance(f, ast.FunctionDef)]
        kernels = [f for f in functions if not f.decorator_list]
        self.parameters = {n: kernels.parameters[name]
                           for n, (kernels, name) in self._imported.items()}
        self.parameters.update(
            {f.name: [(a.arg, a.annotation) for a in f.args.args] for f in kernels})
        # Copies: the rewriter changes nodes in place.
        launches = [l for l in (launch_source(copy.deepcopy(f)) for f in kernels) if l]
        self._names = _namespace()
        tree_ = ast.fix_missing_locations(Rewriter(waits).visit(module))
        exec(compile(tree_, file, "exec"), self._names)
        launches = ast.fix_missing_locations(ast.Module(launches, []))
        exec(compile(launches, file, "exec"), self._names)
        self._waits = waits

    def names(self):
        return list(self.parameters)

    def types(self, kernel):
        """[(name, ArrayType or scalar type)]"""
        if kernel in self._imported:
            other, name = self._imported[kernel]
            return other.types(name)
        return [(n, eval(compile(ast.fix_missing_locations(ast.Expression(a)), "", "eval"),
                         self._names)) for n, a in self.parameters[kernel]]

    def arguments(self, kernel, given):
        values = []
        for name, kind in self.types(kernel):
            value = given[name]
            if isinstance(kind, ArrayType):
                if value.dtype != kind.element.dtype or value.ndim != kind.rank:
                    raise TypeError(f"argument '{name}' is {value.dtype} of {value.ndim} "
                                    f"dimensions, expected {kind.element.name} of {kind.rank}")
                values.append(DeviceArray(value, kind.element))
            else:
                values.append(convert(kind, value))
        if extra := set(given) - {n for n, _ in self.parameters[kernel]}:
            raise TypeError(f"there is no parameter {sorted(extra)}")
        return values

    def default_launch(self, kernel, values):
        """(grid, block) as the kernel's launch() says."""
        sizes = self._names.get(f"__launch_{kernel}")
        if sizes is None:
            return (1, 1, 1), (1, 1, 1)
        threads, block = sizes(*values)
        threads = [t.v if isinstance(t, Scalar) else t for t in threads] + [1, 1]
        block = [b.v if isinstance(b, Scalar) else b for b in block] + [1, 1]
        return (tuple(-(-max(t, 0) // b) for t, b in zip(threads[:3], block)), tuple(block[:3]))

    def run(self, kernel, grid=None, block=None, **given):
        if kernel in self._imported:
            other, name = self._imported[kernel]
            return other.run(name, grid, block, **given)
        values = self.arguments(kernel, given)
        if grid is None:
            grid, block = self.default_launch(kernel, values)
        grid, block = (tuple(s) + (1,) * (3 - len(s)) for s in (grid, block))
        Thread.grid, Thread.block = grid, block
        function = self._names[kernel]
        threads = [(x, y, z) for z, y, x in itertools.product(*map(range, reversed(block)))]
        for z, y, x in itertools.product(*map(range, reversed(grid))):
            Thread.group, Thread.shared = (x, y, z), {}
            if kernel in self._waits:
                self._run_block(function, values, threads)
                continue
            for Thread.local in threads:
                function(*values)

    @staticmethod
    def _run_block(function, values, threads):
        running = [(local, function(*values)) for local in threads]
        results = [None] * len(running)
        while running:
            met, finished = [], 0
            for (Thread.local, steps), result in zip(running, results):
                try:
                    met.append(steps.send(result))
                except StopIteration:
                    finished += 1
            if not met:
                return
            kinds = {m[0] if m else "barrier" for m in met}
            if finished or len(kinds) > 1:
                raise RuntimeError("not all threads of a block meet at the same place")
            kind = kinds.pop()
            results = [None] * len(met)
            if kind != "barrier":
                results = [tree(GROUP[kind], (strong(m[1]) for m in met))] * len(met)


def load(path):
    """The kernels of a file."""
    with open(path, encoding="utf-8") as file:
        return Kernels(file.read(), str(path))
