"""Scalars of a fixed width, with the language's static rules applied as they run.

A Python int or float is a literal: it takes the type of what it meets. bool is Python's own.
"""

import array
import builtins
import math

import numpy as np

_new = object.__new__
_cell32 = array.array("f", [0.0])


def _round32(x):
    _cell32[0] = x  # the C conversion: to nearest even, overflow to infinity
    return _cell32[0]


def _round16(x):
    with np.errstate(all="ignore"):
        return builtins.float(np.float16(x))


def _round_bf16(x):
    if x != x or x in (math.inf, -math.inf) or x == 0:
        return x
    # The spacing of bf16 around x (8 bits of precision, smallest exponent -126).
    step = math.ldexp(1.0, max(math.frexp(x)[1] - 8, -133))
    y = round(x / step) * step  # Python rounds half to even
    return math.copysign(math.inf, x) if abs(y) >= 2.0**128 else y


def _div(x, y):
    if y == 0:
        if x == 0 or x != x:
            return math.nan
        return math.copysign(math.inf, x) * math.copysign(1.0, y)
    return x / y


def _fmod(x, y):
    if x != x or y != y or y == 0 or x in (math.inf, -math.inf):
        return math.nan
    return math.fmod(x, y)


class Probe:
    """While depth is above 0 an expression is evaluated for its type only."""

    depth = 0


class Scalar:
    __slots__ = ("v",)
    is_float = False
    bits = 0
    signed = False
    name = ""
    dtype = None

    def __new__(cls, value=0):
        return convert(cls, value)

    def __repr__(self):
        return f"{self.name}({self.v})"

    def __bool__(self):
        raise TypeError(f"a condition is a bool, this is {self.name}")

    def __index__(self):
        if self.is_float:
            raise TypeError(f"an index is an integer, this is {self.name}")
        return self.v

    __hash__ = None

    # Arithmetic. Each pair is (operator, reflected operator).
    def __add__(self, o):
        if type(o) is type(self):
            return type(self)._fit(self.v + o.v)
        t, x, y = meet(self, o)
        return t._fit(x + y)

    def __radd__(self, o):
        t, x, y = meet(o, self)
        return t._fit(x + y)

    def __sub__(self, o):
        if type(o) is type(self):
            return type(self)._fit(self.v - o.v)
        t, x, y = meet(self, o)
        return t._fit(x - y)

    def __rsub__(self, o):
        t, x, y = meet(o, self)
        return t._fit(x - y)

    def __mul__(self, o):
        if type(o) is type(self):
            return type(self)._fit(self.v * o.v)
        t, x, y = meet(self, o)
        return t._fit(x * y)

    def __rmul__(self, o):
        t, x, y = meet(o, self)
        return t._fit(x * y)

    def __truediv__(self, o):
        return true_div(self, o)

    def __rtruediv__(self, o):
        return true_div(o, self)

    def __floordiv__(self, o):
        return floor_div(*meet(self, o))

    def __rfloordiv__(self, o):
        return floor_div(*meet(o, self))

    def __mod__(self, o):
        return modulo(*meet(self, o))

    def __rmod__(self, o):
        return modulo(*meet(o, self))

    def __pow__(self, o):
        return power(self, o)

    def __rpow__(self, o):
        return power(o, self)

    def __lshift__(self, o):
        return shift_left(self, o)

    def __rlshift__(self, o):
        return shift_left(type(self)._literal(o), self)

    def __rshift__(self, o):
        return shift_right(self, o)

    def __rrshift__(self, o):
        return shift_right(type(self)._literal(o), self)

    def __and__(self, o):
        t, x, y = meet_integers(self, o)
        return t._fit(x & y)

    __rand__ = __and__

    def __or__(self, o):
        t, x, y = meet_integers(self, o)
        return t._fit(x | y)

    __ror__ = __or__

    def __xor__(self, o):
        t, x, y = meet_integers(self, o)
        return t._fit(x ^ y)

    __rxor__ = __xor__

    def __neg__(self):
        if not self.is_float and not self.signed:
            raise TypeError(f"{self.name} has no negative values")
        return type(self)._fit(-self.v)

    def __pos__(self):
        return self

    def __invert__(self):
        if self.is_float:
            raise TypeError(f"~ takes integers, this is {self.name}")
        return type(self)._fit(~self.v)

    def __abs__(self):
        return type(self)._fit(abs(self.v))

    def __eq__(self, o):
        _, x, y = meet(self, o)
        return x == y

    def __ne__(self, o):
        _, x, y = meet(self, o)
        return x != y

    def __lt__(self, o):
        _, x, y = meet(self, o)
        return x < y

    def __le__(self, o):
        _, x, y = meet(self, o)
        return x <= y

    def __gt__(self, o):
        _, x, y = meet(self, o)
        return x > y

    def __ge__(self, o):
        _, x, y = meet(self, o)
        return x >= y

    @classmethod
    def _raw(cls, v):
        s = _new(cls)
        s.v = v
        return s

    @classmethod
    def _literal(cls, v):
        """A literal that takes this type: an integer must fit."""
        if type(v) is builtins.bool:
            raise TypeError(f"{cls.name} and bool do not mix")
        if cls.is_float:
            return cls._fit(builtins.float(v))
        if type(v) is builtins.float:
            raise TypeError(f"a float literal is not {cls.name}")
        if not cls.low <= v <= cls.high:
            raise OverflowError(f"{v} does not fit {cls.name}")
        return cls._raw(v)


def _integer(name, bits, signed):
    span = 1 << bits
    low = -(span >> 1) if signed else 0
    high = low + span - 1

    def fit(cls, v):
        s = _new(cls)
        if not low <= v <= high:
            v = (v - low) % span + low
        s.v = v
        return s

    return type(Scalar)(name, (Scalar,), {
        "__slots__": (), "name": name, "bits": bits, "signed": signed, "low": low, "high": high,
        "dtype": np.dtype(("i" if signed else "u") + str(bits // 8)), "_fit": classmethod(fit)})


def _floating(name, bits, rounding, dtype):
    def fit(cls, v):
        s = _new(cls)
        s.v = rounding(v)
        return s

    return type(Scalar)(name, (Scalar,), {
        "__slots__": (), "name": name, "bits": bits, "is_float": True, "signed": True,
        "dtype": np.dtype(dtype), "_fit": classmethod(fit)})


i8, i16, i32, i64 = (_integer(f"i{n}", n, True) for n in (8, 16, 32, 64))
u8, u16, u32, u64 = (_integer(f"u{n}", n, False) for n in (8, 16, 32, 64))
f16 = _floating("f16", 16, _round16, "f2")
bf16 = _floating("bf16", 16, _round_bf16, "V2")
f32 = _floating("f32", 32, _round32, "f4")
f64 = _floating("f64", 64, builtins.float, "f8")


class _BoolMeta(type):
    def __call__(cls, value=False):
        if isinstance(value, Scalar):
            value = value.v
        return value != 0


class bool_(metaclass=_BoolMeta):
    """The type bool; its values are Python's True and False."""

    name = "bool"
    dtype = np.dtype(builtins.bool)


TYPES = {t.name: t for t in (i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, bool_)}
_promoted = {}


def promote(a, b):
    """The type two operands meet in."""
    t = _promoted.get((a, b))
    if t is None:
        t = _promoted[a, b] = _promote(a, b)
    return t


def _promote(a, b):
    if a is b:
        return a
    if a is bool_ or b is bool_:
        raise TypeError(f"{a.name} and {b.name} do not mix")
    if a.is_float and b.is_float:
        return f32 if a.bits == b.bits else max(a, b, key=lambda t: t.bits)
    if a.is_float or b.is_float:
        return a if a.is_float else b
    if a.signed == b.signed:
        return max(a, b, key=lambda t: t.bits)
    signed, unsigned = (a, b) if a.signed else (b, a)
    if signed.bits > unsigned.bits:
        return signed
    if unsigned.bits < 64:
        return {8: i16, 16: i32, 32: i64}[unsigned.bits]
    raise TypeError(f"{a.name} and {b.name} do not mix: no type holds both")


def float_of(t):
    return f64 if t.bits == 64 else f32


def as_float(x):
    if isinstance(x, Scalar) and not x.is_float:
        return convert(float_of(type(x)), x)
    return x


def is_weak(x):
    return type(x) is builtins.int or type(x) is builtins.float


def meet(a, b):
    """The type of an operation and both operands as Python numbers of that type."""
    if isinstance(a, Scalar) and isinstance(b, Scalar):
        t = promote(type(a), type(b))
        if type(a) is not t:
            a = convert(t, a)
        if type(b) is not t:
            b = convert(t, b)
        return t, a.v, b.v
    strong, weak = (a, b) if isinstance(a, Scalar) else (b, a)
    if not is_weak(weak):
        raise TypeError(f"{strong.name} and {type(weak).__name__} do not mix")
    t = type(strong)
    if type(weak) is builtins.float and not t.is_float:
        t = float_of(t)
        strong = convert(t, strong)
    weak = t._literal(weak)
    return (t, strong.v, weak.v) if isinstance(a, Scalar) else (t, weak.v, strong.v)


def meet_integers(a, b):
    t, x, y = meet(a, b)
    if t.is_float:
        raise TypeError(f"bit operations take integers, these are {t.name}")
    return t, x, y


def convert(t, value):
    """A cast, T(value): integers wrap, floats saturate into integers."""
    if t is bool_:
        return bool_(value)
    v = value.v if isinstance(value, Scalar) else value
    if t.is_float:
        if isinstance(v, builtins.int) and t.bits == 16 and isinstance(value, Scalar):
            v = _round32(v)  # integers reach the 16-bit floats through f32
        return t._fit(builtins.float(v))
    if isinstance(v, builtins.float):
        if v != v:
            v = 0
        elif v in (math.inf, -math.inf):
            v = t.high if v > 0 else t.low
        else:
            v = builtins.min(builtins.max(math.trunc(v), t.low), t.high)
    return t._fit(builtins.int(v))


def coerce(t, value):
    """An implicit conversion: of an assignment, an argument, a store."""
    if t is bool_:
        if type(value) is not builtins.bool:
            raise TypeError(f"expected bool, this is {value!r}")
        return value
    if isinstance(value, Scalar):
        if type(value) is t:
            return value
        if promote(t, type(value)) is not t:
            raise TypeError(f"{type(value).name} does not become {t.name} by itself")
        return convert(t, value)
    if not is_weak(value):
        raise TypeError(f"expected {t.name}, this is {value!r}")
    return t._literal(value)


def strong(value):
    """A literal as what a variable makes of it: i32 or f32."""
    if type(value) is builtins.int:
        return i32._literal(value)
    if type(value) is builtins.float:
        return f32._literal(value)
    return value


def type_of(value):
    return bool_ if type(value) is builtins.bool else type(value)


def true_div(a, b):
    """Integers divide into a float; next to a float an integer takes that float's type."""
    if not any(isinstance(x, Scalar) and x.is_float for x in (a, b)):
        a, b = as_float(a), as_float(b)
    t, x, y = meet(a, b)
    return t._fit(_div(x, y))


def floor_div(t, x, y):
    if not t.is_float:
        if y == 0:
            if Probe.depth:
                return t._fit(0)
            raise ZeroDivisionError("integer division by zero")
        return t._fit(x // y)
    r = t._fit(_fmod(x, y)).v
    q = t._fit(_div(t._fit(x - r).v, y)).v
    if r != 0 and (r < 0) != (y < 0):
        q = t._fit(q - 1.0).v
    if q != q or q in (math.inf, -math.inf):
        return t._fit(q)
    down = builtins.float(math.floor(q))
    return t._fit(down + 1.0 if q - down > 0.5 else down)


def modulo(t, x, y):
    if not t.is_float:
        if y == 0:
            if Probe.depth:
                return t._fit(0)
            raise ZeroDivisionError("integer modulo by zero")
        return t._fit(x % y)
    r = t._fit(_fmod(x, y)).v
    if r == 0:
        return t._fit(-0.0 if y < 0 else 0.0)
    return t._fit(r + y) if (r < 0) != (y < 0) else t._fit(r)


def power(a, b):
    def integral(x):
        return type(x) is builtins.int or (isinstance(x, Scalar) and not x.is_float)

    if integral(a) and integral(b) and not (type(b) is builtins.int and b < 0):
        if isinstance(b, Scalar) and b.signed:
            raise TypeError(f"an integer to a power of {b.name} could need a fraction")
        if not isinstance(a, Scalar):
            a = type(b)._literal(a)
        count = b.v & 0xFFFFFFFF if isinstance(b, Scalar) else b
        return type(a)._fit(pow(a.v, count, 1 << type(a).bits))
    a = as_float(a)
    if isinstance(b, Scalar) and not b.is_float:
        b = convert(type(a) if isinstance(a, Scalar) else float_of(type(b)), b)
    t, x, y = meet(a, b)
    with np.errstate(all="ignore"):
        return t._fit(builtins.float(np.power(np.float64(x), np.float64(y))))


def _count(o):
    """A shift's count; a negative one moves every bit out, as a very large one."""
    if isinstance(o, Scalar):
        if o.is_float:
            raise TypeError("shifts take integers")
        return o.v if o.v >= 0 else 1 << 20
    if type(o) is not builtins.int or o < 0:
        raise TypeError("a shift's count is an integer that is not negative")
    return o


def shift_left(a, o):
    if a.is_float:
        raise TypeError("shifts take integers")
    return type(a)._fit(a.v << builtins.min(_count(o), 64))


def shift_right(a, o):
    if a.is_float:
        raise TypeError("shifts take integers")
    return type(a)._fit(a.v >> builtins.min(_count(o), 64))
