"""The functions of the language, as Python functions."""

import builtins
import math

import numpy as np

from .scalars import (Probe, Scalar, _fmod, as_float, bool_, coerce, convert, f32, is_weak, meet,
                      promote, strong, type_of, u8, u32, u64)


class Thread:
    """Where the running thread is; the runner sets it before every step."""

    local = (0, 0, 0)
    group = (0, 0, 0)
    block = (1, 1, 1)
    grid = (1, 1, 1)
    shared = {}


class DeviceArray:
    """A NumPy array as a kernel sees it: typed elements, no negative indices, no slices.

    In an annotation: DeviceArray[f32], DeviceArray[f32, 2].
    """

    def __class_getitem__(cls, item):
        element, rank = item if isinstance(item, tuple) else (item, 1)
        return ArrayType(element, rank)

    def __init__(self, data, element):
        self.element = element
        self.extents = data.shape
        # bf16 has no NumPy type: its bits are kept as 16-bit integers.
        self.data = data.view(np.uint16) if element.name == "bf16" else data

    @property
    def shape(self):
        return [u64._raw(n) for n in self.extents]

    def _place(self, index):
        if not isinstance(index, tuple):
            index = (index,)
        if len_(index) != len_(self.extents):
            raise IndexError(f"{len_(self.extents)} indices are needed, not {len_(index)}")
        place = []
        for i, n in zip(index, self.extents):
            if type(i) is builtins.bool or not (isinstance(i, Scalar) or type(i) is builtins.int):
                raise TypeError(f"an index is an integer, not {i!r}")
            i = i.__index__()
            if not 0 <= i < n:
                if Probe.depth:
                    return None
                raise IndexError(f"index {i} is outside 0..{n - 1}")
            place.append(i)
        return tuple(place)

    def __getitem__(self, index):
        place = self._place(index)
        if place is None:
            return convert(self.element, 0)
        value = self.data.item(place)
        if self.element is bool_:
            return value
        if self.element.name == "bf16":
            value = builtins.float(np.array(value << 16, np.uint32).view(np.float32))
        return self.element._raw(value)

    def __setitem__(self, index, value):
        value = coerce(self.element, value)
        if Probe.depth:
            return
        if self.element is bool_:
            self.data[self._place(index)] = value
        elif self.element.name == "bf16":
            self.data[self._place(index)] = np.array(value.v, np.float32).view(np.uint32) >> 16
        else:
            self.data[self._place(index)] = value.v


class ArrayType:
    def __init__(self, element, rank):
        self.element, self.rank = element, rank


len_ = builtins.len


def inline(function):
    return function


def len(array):
    return u64._raw(array.extents[0])


def range(*bounds):
    """Like Python's, in the type its bounds meet in."""
    kind = None
    for b in bounds:
        if isinstance(b, Scalar):
            if b.is_float:
                raise TypeError("range() takes integers")
            kind = type(b) if kind is None else promote(kind, type(b))
        elif type(b) is not builtins.int:
            raise TypeError("range() takes integers")
    if kind is None:
        kind = type(strong(0))
    for i in builtins.range(*(coerce(kind, b).v for b in bounds)):
        yield kind._raw(i)


def get_global_id(axis=0):
    return u32._fit(Thread.group[axis] * Thread.block[axis] + Thread.local[axis])


def get_local_id(axis=0):
    return u32._raw(Thread.local[axis])


def get_group_id(axis=0):
    return u32._raw(Thread.group[axis])


def get_local_size(axis=0):
    return u32._raw(Thread.block[axis])


def get_num_groups(axis=0):
    return u32._raw(Thread.grid[axis])


def get_global_size(axis=0):
    return u32._fit(Thread.grid[axis] * Thread.block[axis])


# ---- mathematics


def _precise(name):
    ufunc = getattr(np, name)

    def compute(x):
        with np.errstate(all="ignore"):
            return builtins.float(ufunc(np.float64(x)))

    return compute


def _sigmoid(x):
    with np.errstate(all="ignore"):
        return builtins.float(1.0 / (1.0 + np.exp(np.float64(-x))))


def _rsqrt(x):
    with np.errstate(all="ignore"):
        return builtins.float(1.0 / np.sqrt(np.float64(x)))


def _whole(fn):
    return lambda x: x if x != x or x in (math.inf, -math.inf) else math.copysign(fn(x), x)


_UNARY = {n: _precise(n) for n in (
    "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sqrt", "sin", "cos", "tan", "sinh",
    "cosh", "tanh")}
_UNARY.update({
    "asin": _precise("arcsin"), "acos": _precise("arccos"), "atan": _precise("arctan"),
    "asinh": _precise("arcsinh"), "acosh": _precise("arccosh"), "atanh": _precise("arctanh"),
    "sigmoid": _sigmoid, "rsqrt": _rsqrt, "erf": math.erf, "floor": _whole(math.floor),
    "ceil": _whole(math.ceil), "trunc": _whole(math.trunc), "round": _whole(builtins.round)})
_ROUNDING = ("floor", "ceil", "trunc", "round")


def _pow(x, y):
    with np.errstate(all="ignore"):
        return builtins.float(np.power(np.float64(x), np.float64(y)))


_MULTI = {"pow": (2, _pow), "fmod": (2, _fmod), "fma": (3, lambda x, y, z: x * y + z)}


def _math(name, compute, count, f32_only):
    def call(*args):
        if len_(args) != count:
            raise TypeError(f"{name}() takes {count} arguments")
        if f32_only:
            args = [coerce(f32, a) for a in args]
        elif name in _ROUNDING and (type(args[0]) is builtins.int or
                                    isinstance(args[0], Scalar) and not args[0].is_float):
            return args[0]
        floats = builtins.any(isinstance(a, Scalar) and a.is_float for a in args)
        kind = None
        for a in args:
            if isinstance(a, Scalar) and (a.is_float or not floats):
                own = type(as_float(a))
                kind = own if kind is None else promote(kind, own)
        kind = kind or f32
        values = [coerce(kind, a).v for a in args]
        return kind._fit(compute(*values))

    call.__name__ = name
    return call


_names = []
for _name, _compute in _UNARY.items():
    globals()[_name] = _math(_name, _compute, 1, False)
    globals()[_name + "f"] = _math(_name + "f", _compute, 1, True)
    _names += [_name, _name + "f"]
for _name, (_n, _compute) in _MULTI.items():
    globals()[_name] = _math(_name, _compute, _n, False)
    globals()[_name + "f"] = _math(_name + "f", _compute, _n, True)
    _names += [_name, _name + "f"]


def abs(x):
    return x.__abs__()


def _lower(x, y):
    if x != x or y != y:
        return math.nan
    if x == y:
        return x if math.copysign(1.0, x) < 0 else y
    return x if x < y else y


def _pick(a, b, least):
    if is_weak(a) and is_weak(b):
        return (b if b < a else a) if least else (b if b > a else a)
    t, x, y = meet(a, b)
    if t.is_float:
        return t._fit(_lower(x, y) if least else -_lower(-x, -y))
    return t._raw(builtins.min(x, y) if least else builtins.max(x, y))


def min(first, *rest):
    for value in rest:
        first = _pick(first, value, True)
    return first


def max(first, *rest):
    for value in rest:
        first = _pick(first, value, False)
    return first


def add(a, b):
    return a + b


def mul(a, b):
    return a * b


fabs, fmin, fmax = abs, min, max


def fabsf(x):
    return abs(coerce(f32, x))


def fminf(a, b):
    return min(coerce(f32, a), coerce(f32, b))


def fmaxf(a, b):
    return max(coerce(f32, a), coerce(f32, b))


# ---- class algebra (the R96 map)


def _class_of(byte):
    e1, e2, e3, e6, e7 = (byte >> k & 1 for k in builtins.range(5))
    d = ((byte >> 5) & 3) % 3
    return 48 * e1 + 24 * e2 + 12 * e3 + 6 * e6 + 3 * e7 + d


def _neighbours(c):
    found = [c - 1] if c % 3 > 0 else []
    if c % 3 < 2:
        found.append(c + 1)
    for weight in (6, 12, 24, 48):
        found.append(c - weight if c // weight % 2 else c + weight)
    return sorted(found)


def class_of(x):
    return u8._raw(_class_of(coerce(u8, x).v))


def class_mirror(x):
    c = coerce(u8, x).v
    return u8._raw(255 if c >= 96 else c - 3 if c // 3 % 2 else c + 3)


def class_neighbour(x, number):
    c, k = coerce(u8, x).v, coerce(u8, number).v
    found = _neighbours(c) if c < 96 else []
    return u8._raw(found[k] if k < len_(found) else 255)


# ---- memory shared by threads


def shared_array(name, element, *extents):
    """`name = shared(element, ...)`, once a block; holds garbage at first, as on a device."""
    if name not in Thread.shared:
        count = math.prod(extents) * element.dtype.itemsize
        data = np.frombuffer(bytearray(b"\x5a" * count), element.dtype).reshape(extents)
        if element is bool_:
            data = np.zeros(extents, builtins.bool)
        Thread.shared[name] = DeviceArray(data, element)
    return Thread.shared[name]


def _atomic(update):
    def call(array, *args):
        index, value = args[:-1], coerce(array.element, args[-1])
        old = array[index]
        array[index] = update(old, value)
        return old

    return call


atomic_add = _atomic(lambda old, value: old + value)
atomic_min = _atomic(lambda old, value: min(old, value))
atomic_max = _atomic(lambda old, value: max(old, value))
atomic_exchange = _atomic(lambda old, value: value)


def atomic_cas(array, *args):
    index = args[:-2]
    expected, desired = (coerce(array.element, a) for a in args[-2:])
    old = array[index]
    if old == expected:
        array[index] = desired
    return old


def fence():
    pass


def launch(*threads):
    pass


def block(*sizes):
    pass


def parallel_map(function, *args):
    *inputs, output, count = args
    i = Thread.group[0] * Thread.block[0] + Thread.local[0]
    while i < strong(count).v:
        output[i] = function(*(a[i] for a in inputs))
        i += Thread.grid[0] * Thread.block[0]


def reduce_own(op, array, count):
    """A thread's share of parallel_reduce()."""
    kind = array.element
    if op in (add, mul):
        total = kind._literal(builtins.int(op is mul))
    elif kind.is_float:
        total = kind._fit(math.inf if op is min else -math.inf)
    else:
        total = kind._raw(kind.high if op is min else kind.low)
    for i in builtins.range(Thread.local[0], strong(count).v, Thread.block[0]):
        total = op(total, array[i])
    return total


def tree(op, values):
    """The fixed tree of a group reduction."""
    values = list(values)
    half = 1
    while half < len_(values):
        half *= 2
    half //= 2
    while half > 0:
        for i in builtins.range(half):
            if i + half < len_(values):
                values[i] = op(values[i], values[i + half])
        half //= 2
    return values[0]


GROUP = {"group_add": add, "group_mul": mul, "group_min": min, "group_max": max}


def _only_compiled(name):
    def call(*_):
        raise RuntimeError(f"{name}() works in a kernel that is run by Kernels.run()")

    return call


# These need all threads of a block: load() rewrites their calls.
barrier, shared, parallel_reduce = (_only_compiled(n) for n in
                                    ("barrier", "shared", "parallel_reduce"))
group_add, group_mul, group_min, group_max = (_only_compiled(n) for n in GROUP)

__all__ = _names + [
    "DeviceArray", "inline", "len", "range", "abs", "min", "max", "add", "mul", "fabs", "fabsf",
    "fmin", "fminf", "fmax", "fmaxf", "get_global_id", "get_local_id", "get_group_id",
    "get_local_size", "get_num_groups", "get_global_size", "class_of", "class_mirror",
    "class_neighbour", "atomic_add", "atomic_min", "atomic_max", "atomic_exchange", "atomic_cas",
    "barrier", "fence", "shared", "group_add", "group_mul", "group_min", "group_max", "launch",
    "block", "parallel_map", "parallel_reduce"]
