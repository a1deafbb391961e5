"""Random kernels of the language, seeded: every statement, operator and type.

Floats that decide something (a comparison, a cast to an integer) are made of operations that are
exact to the last bit everywhere; functions with an error of some units in the last place are only
stored, into arrays that are compared with a tolerance.
"""

import random

INTEGERS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
BITS = {t: int(t.lstrip("biuf")) for t in INTEGERS + FLOATS}
# Every math function of one number, by turns, so that the seeds cover all of them.
FUNCTIONS = ["exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "sin", "cos",
             "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
             "sigmoid", "erf"]


def signed(t):
    return t[0] == "i"


def promote(a, b):
    if a == b:
        return a
    fa, fb = a in FLOATS, b in FLOATS
    if fa and fb:
        return "f32" if BITS[a] == BITS[b] else max(a, b, key=BITS.get)
    if fa or fb:
        return a if fa else b
    if signed(a) == signed(b):
        return max(a, b, key=BITS.get)
    s, u = (a, b) if signed(a) else (b, a)
    if BITS[s] > BITS[u]:
        return s
    return {8: "i16", 16: "i32", 32: "i64", 64: None}[BITS[u]]


class Program:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.seed = seed
        self.lines = []
        self.count = 0
        r = self.random
        ints = r.sample(INTEGERS, 2)
        self.types = ints + [r.choice(["f32", "f32", "f64", "f16", "bf16"])]
        if "u32" not in self.types and r.random() < 0.5:
            self.types.append("u32")
        self.helpers = {}

    # ---- text

    def put(self, text, depth):
        self.lines.append("    " * depth + text)

    def fresh(self, prefix="v"):
        self.count += 1
        return f"{prefix}{self.count}"

    def pick(self, options):
        return self.random.choice(options)()

    # ---- expressions. A strong one has the type by itself; others may be a literal.

    def literal(self, t):
        r = self.random
        if t in FLOATS:
            return r.choice(["0.5", "1.25", "2.0", "3", "0.125", "1e2", "7.75", "-1.5", "-2"])
        if t == "bool":
            return r.choice(["True", "False"])
        top = (1 << BITS[t]) - 1 if t[0] == "u" else (1 << (BITS[t] - 1)) - 1
        value = r.choice([0, 1, 2, 3, 5, 7, 10, 100, top, top // 3])
        text = r.choice([str, hex, lambda v: f"{v:_}"])(value)
        return f"-{value}" if signed(t) and r.random() < 0.3 else text

    def weak(self, t, scope):
        a = self.literal(t)
        if t not in FLOATS and self.random.random() < 0.15:
            return f"({a} if {self.boolean(scope, 1)} else {self.literal(t)})"
        return a

    def variable(self, t, scope):
        names = [n for n, k in scope.items() if k == t]
        return self.random.choice(names) if names else None

    def leaf(self, t, scope):
        name = self.variable(t, scope)
        if name and self.random.random() < 0.7:
            return name
        if t == "bool":
            return f"bool({self.leaf(self.random.choice(self.types), scope)})"
        if t in self.types and self.random.random() < 0.6:
            return f"in_{t}[i]"
        return f"{t}({self.literal(t)})"

    def strong(self, t, scope, depth):
        if depth <= 0:
            return self.leaf(t, scope)
        if t == "bool":
            return self.boolean(scope, depth)
        return self.floating(t, scope, depth) if t in FLOATS else self.integer(t, scope, depth)

    def any(self, t, scope, depth):
        if self.random.random() < 0.2:
            return self.weak(t, scope)
        narrower = [u for u in self.types if promote(t, u) == t]
        return self.strong(self.random.choice(narrower or [t]), scope, depth)

    def pair(self, t, scope, depth, op):
        mixed = [(u, v) for u in self.types for v in self.types if t not in (u, v) and promote(u, v) == t]
        if mixed and self.random.random() < 0.5:
            u, v = self.random.choice(mixed)
            return f"({self.strong(u, scope, depth - 1)} {op} {self.strong(v, scope, depth - 1)})"
        a, b = self.strong(t, scope, depth - 1), self.any(t, scope, depth - 1)
        if self.random.random() < 0.4:
            a, b = b, a
        return f"({a} {op} {b})"

    def common(self, t, scope, depth):
        r = self.random
        d = depth - 1
        other = r.choice(self.types)
        kind = r.choice(["cast", "cond", "minmax", "abs", "helper", "neg", "pos"])
        if kind == "cast":
            return f"{t}({self.any(other, scope, d)})"
        if kind == "cond":
            a, b = self.strong(t, scope, d), self.strong(t, scope, d)
            if r.random() < 0.3:
                b = self.literal(t) if t not in FLOATS else "0"
            return f"({a} if {self.boolean(scope, d)} else {b})"
        if kind == "minmax":
            more = f", {self.any(t, scope, d)}" if r.random() < 0.3 else ""
            return f"{r.choice(['min', 'max'])}({self.strong(t, scope, d)}, {self.any(t, scope, d)}{more})"
        if kind == "abs":
            return f"abs({self.strong(t, scope, d)})"
        if kind == "helper" and t in self.helpers:
            return f"{self.helpers[t]}({self.strong(t, scope, d)}, {self.any(t, scope, d)})"
        if kind == "neg" and t[0] != "u":
            return f"-{self.strong(t, scope, d)}" if d > 0 else f"-{self.leaf(t, scope)}"
        return f"+{self.leaf(t, scope)}"

    def integer(self, t, scope, depth):
        r, d = self.random, depth - 1
        kind = r.randrange(10)
        if kind < 3:
            return self.pair(t, scope, depth, r.choice(["+", "-", "*"]))
        if kind == 3:
            return self.pair(t, scope, depth, r.choice(["&", "|", "^"]))
        if kind == 4:  # the divisor is odd, so not zero
            divisor = f"({self.strong(t, scope, d)} | 1)"
            if r.random() < 0.4:
                divisor = r.choice(["3", "8", "7", "-3" if signed(t) else "5", "16"])
            return f"({self.strong(t, scope, d)} {r.choice(['//', '%'])} {divisor})"
        if kind == 5:
            by = r.choice(["1", "3", str(BITS[t] - 1), str(BITS[t]), f"({self.strong('u32', scope, 0)} % 70)"])
            return f"({self.strong(t, scope, d)} {r.choice(['<<', '>>'])} {by})"
        if kind == 6:
            by = r.choice(["0", "1", "2", "3", "5", f"(u32({self.strong(t, scope, 0)}) % 4)"])
            return f"({self.strong(t, scope, d)} ** {by})"
        if kind == 7:
            return f"~{self.leaf(t, scope)}"
        return self.common(t, scope, depth)

    def floating(self, t, scope, depth):
        r, d = self.random, depth - 1
        kind = r.randrange(9)
        if kind < 4:
            return self.pair(t, scope, depth, r.choice(["+", "-", "*", "/"]))
        if kind == 4:
            return f"({self.strong(t, scope, d)} {r.choice(['//', '%'])} {r.choice(['0.75', '-1.5', '3'])})"
        if kind == 5:
            suffix = "f" if t == "f32" and r.random() < 0.4 else ""
            return f"{r.choice(['floor', 'ceil', 'trunc', 'round'])}{suffix}({self.strong(t, scope, d)})"
        if kind == 6:
            return f"sqrt(abs({self.strong(t, scope, d)}))"
        if kind == 7 and t in ("f32", "f64"):
            whole = [u for u in self.types if u in INTEGERS and (BITS[u] == 64) == (t == "f64")]
            if whole:
                return f"({self.strong(whole[0], scope, d)} / {self.strong(whole[0], scope, d)})"
            return f"({self.strong(t, scope, d)} ** 2)"
        return self.common(t, scope, depth)

    def boolean(self, scope, depth):
        r, d = self.random, depth - 1
        if depth <= 0:
            name = self.variable("bool", scope)
            if name and r.random() < 0.5:
                return name
        kind = r.randrange(8) if depth > 0 else 0
        t = r.choice(self.types)
        compare = ["<", "<=", ">", ">=", "==", "!="]
        if kind < 4:
            other = r.choice([u for u in self.types if promote(t, u)])
            a, b = self.strong(t, scope, min(d, 1)), self.any(t, scope, min(d, 1))
            if other != t:
                b = self.strong(other, scope, min(d, 1))
            return f"({a} {r.choice(compare)} {b})"
        if kind == 4:
            a, b, c = self.strong(t, scope, 0), self.any(t, scope, 0), self.strong(t, scope, 0)
            return f"({a} {r.choice(compare)} {b} {r.choice(compare)} {c})"
        if kind == 5:
            return f"({self.boolean(scope, d)} {r.choice(['and', 'or'])} {self.boolean(scope, d)})"
        if kind == 6:
            return f"(not {self.boolean(scope, d)})"
        return f"({self.boolean(scope, d)} {r.choice(['&', '|', '^', '==', '!='])} {self.boolean(scope, d)})"

    # ---- statements

    def block(self, scope, depth, budget, loop):
        """Statements at an indentation; returns what is left of the budget."""
        here = dict(scope)
        before = len(self.lines)
        for _ in range(self.random.randint(1, 4)):
            if budget <= 0:
                break
            budget = self.statement(here, depth, budget - 1, loop)
        if len(self.lines) == before or self.random.random() < 0.1:
            self.put("pass", depth)
        return budget

    def statement(self, scope, depth, budget, loop):
        r = self.random
        kinds = ["new", "new", "annotated", "set", "augmented", "augmented", "store", "augstore"]
        if depth < 4:
            kinds += ["if", "if", "for", "while"]
        if loop:
            kinds += ["leave"]
        kind = r.choice(kinds)
        t = r.choice(self.types + ["bool"])
        number = r.choice(self.types)
        if kind == "new":
            name = self.fresh()
            self.put(f"{name} = {self.strong(t, scope, 3)}", depth)
            scope[name] = t
        elif kind == "annotated":
            name = self.fresh()
            value = self.literal(t) if r.random() < 0.4 else self.any(t, scope, 2) if t != "bool" else self.boolean(scope, 2)
            self.put(f"{name}: {t} = {value}", depth)
            scope[name] = t
        elif kind in ("set", "augmented"):
            names = [n for n, k in scope.items() if n[0] == "v"]
            if not names:
                return budget
            name = r.choice(names)
            t = scope[name]
            if kind == "set":
                value = self.any(t, scope, 3) if t != "bool" else self.boolean(scope, 2)
                self.put(f"{name} = {value}", depth)
            else:
                self.augmented(name, t, scope, depth)
        elif kind == "store":
            self.put(f"out_{number}[i] = {self.any(number, scope, 3)}", depth)
        elif kind == "augstore":
            self.augmented(f"out_{number}[i]", number, scope, depth)
        elif kind == "if":
            self.put(f"if {self.boolean(scope, 2)}:", depth)
            budget = self.block(scope, depth + 1, budget, loop)
            if r.random() < 0.4:
                self.put(f"elif {self.boolean(scope, 2)}:", depth)
                budget = self.block(scope, depth + 1, budget, loop)
            if r.random() < 0.5:
                self.put("else:", depth)
                budget = self.block(scope, depth + 1, budget, loop)
        elif kind == "for":
            name = self.fresh("k")
            bounds, t = self.bounds()
            self.put(f"for {name} in range({bounds}):", depth)
            budget = self.block({**scope, name: t}, depth + 1, budget, True)
        elif kind == "while":
            name = self.fresh("w")
            self.put(f"{name} = {r.randint(1, 4)}", depth)
            forever = r.random() < 0.3
            self.put("while True:" if forever else f"while {name} > 0 and {self.boolean(scope, 1)}:", depth)
            self.put(f"{name} -= 1", depth + 1)
            if forever:
                self.put(f"if {name} < 0:", depth + 1)
                self.put("break", depth + 2)
            budget = self.block({**scope, name: "i32"}, depth + 1, budget, True)
        elif kind == "leave":
            self.put(f"if {self.boolean(scope, 1)}:", depth)
            self.put(r.choice(["break", "continue"]), depth + 1)
        return budget

    def augmented(self, target, t, scope, depth):
        r = self.random
        if t == "bool":
            self.put(f"{target} {r.choice(['&=', '|=', '^='])} {self.boolean(scope, 1)}", depth)
        elif t in FLOATS:
            op = r.choice(["+=", "-=", "*=", "/=", "+=", "*=", "//=", "%="])
            value = {"//=": "0.75", "%=": "1.5"}.get(op)
            self.put(f"{target} {op} {value or self.any(t, scope, 2)}", depth)
        else:
            op = r.choice(["+=", "-=", "*=", "&=", "|=", "^=", "//=", "%=", "<<=", ">>=", "**="])
            value = {"//=": "3", "%=": "7", "<<=": "2", ">>=": "1", "**=": "2"}.get(op)
            self.put(f"{target} {op} {value or self.any(t, scope, 2)}", depth)

    def bounds(self):
        r = self.random
        n = r.randint(0, 4)
        t = r.choice([u for u in self.types if u in INTEGERS])
        form = r.randrange(6)
        if form == 0:
            return str(n), "i32"
        if form == 1:
            return f"{t}({n})", t
        if form == 2:
            return f"1, {t}({n + 1})", t
        if form == 3:
            return f"{t}({n}), {n + 9}, {r.choice([2, 3, 100])}", t
        if form == 4 and t[0] == "i":
            return f"{t}({n}), -2, -{r.choice([1, 2])}", t
        return f"10, {n}, -3", "i32"

    # ---- whole programs

    def helper(self, t):
        name = f"helper_{t}"
        body = self.lines
        self.lines = []
        scope = {"a": t, "b": t}
        self.put("@inline", 0)
        self.put(f"def {name}(a: {t}, b: {t}) -> {t}:", 0)
        saved, self.types = self.types, [t]
        reads = self.leaf
        self.leaf = lambda k, s: self.variable(k, s) or f"{k}({self.literal(k)})"
        style = self.random.randrange(3)
        if style == 0:
            self.put(f"return {self.strong(t, scope, 2)}", 1)
        elif style == 1:
            self.put(f"if {self.boolean(scope, 1)}:", 1)
            self.put(f"return {self.any(t, scope, 1)}", 2)
            self.put(f"c = {self.strong(t, scope, 2)}", 1)
            scope["c"] = t
            self.put(f"return {self.strong(t, scope, 2)}", 1)
        else:
            self.put("for q in range(5):", 1)
            self.put(f"if {self.boolean(scope, 1)} and q > 1:", 2)
            self.put(f"return {self.strong(t, scope, 1)}", 3)
            self.put(f"b = {self.strong(t, scope, 1)}", 2)
            self.put(f"return {self.strong(t, scope, 2)}", 1)
        self.leaf, self.types = reads, saved
        self.lines, made = body, self.lines
        self.helpers[t] = name
        return made

    def parameters(self):
        arrays = [f"in_{t}: DeviceArray[{t}]" for t in self.types]
        arrays += [f"out_{t}: DeviceArray[{t}]" for t in self.types]
        return ", ".join(arrays + ["near: DeviceArray[f32]", "hits: DeviceArray[u32]",
                                   "n: u32", "s: f32", "k: i32"])

    def source(self):
        r = self.random
        head = ['"""A random kernel."""', "from hologram_lang import *", "", "LIMIT = 3 * 5 - 2",
                "RATE: f32 = 0.1 + 0.2", ""]
        for t in self.types:
            if r.random() < 0.6:
                head += self.helper(t) + [""]
        together = r.random() < 0.25
        self.put(f"def kernel({self.parameters()}):", 0)
        self.put('"""Drawn by a seed."""', 1)
        if together:
            self.together()
        else:
            self.put("launch(n)", 1)
            self.put(f"block({r.choice([1, 4, 32, 64])})", 1)
            self.put("i = get_global_id()", 1)
            scope = {"i": "u32", "n": "u32", "k": "i32", "s": "f32"}
            if r.random() < 0.5:
                self.put("if i >= n:", 1)
                self.put("return", 2)
                self.body(scope, 1)
            else:
                self.put("if i < n:", 1)
                self.body(scope, 2)
        return "\n".join(head + self.lines) + "\n"

    def body(self, scope, depth):
        r = self.random
        budget = 14
        while budget > 0:
            budget = self.statement(scope, depth, budget - 1, False)
        for t in self.types:
            self.put(f"out_{t}[i] = {self.any(t, scope, 3)}", depth)
        self.put(f"atomic_{r.choice(['add', 'max', 'min'])}(hits, i % 4, {self.strong('u32', scope, 1)})", depth)
        self.put(f"x = f32(in_{self.types[0]}[i] % 5) * 0.25 + RATE", depth)
        f, g = FUNCTIONS[self.seed % len(FUNCTIONS)], r.choice(FUNCTIONS)
        suffix = "f" if self.seed // len(FUNCTIONS) % 2 else ""
        self.put(f"near[i] = {f}{suffix}(x) + {g}(s) + pow(x + 1, 1.5) + fma(x, s, 2.0) + x ** 3 + LIMIT", depth)

    def together(self):
        """Threads of a block that meet: shared memory, barriers, group reductions."""
        r = self.random
        size = r.choice([1, 4, 7, 16])
        t = r.choice(self.types)
        word = r.choice(["i32", "u32", "i64", "u64"])
        self.put(f"block({size})", 1)
        self.put("launch(n)", 1)
        self.put(f"tile = shared({t}, {size})", 1)
        self.put(f"grid = shared({word}, 2, {size})", 1)
        self.put("i = get_global_id()", 1)
        self.put("own = get_local_id()", 1)
        self.put(f"x = in_{t}[i] if i < n else {t}(1)", 1)
        self.put("tile[own] = x", 1)
        self.put(f"grid[own % 2, own] = {word}(own)", 1)
        self.put(f"grid[1 - own % 2, own] = {word}(get_group_id() + get_num_groups() * get_global_size())", 1)
        self.put("barrier()", 1)
        self.put(f"for step in range({r.randint(1, 3)}):", 1)
        self.put(f"y = tile[(own + 3) % {size}]", 2)
        self.put("barrier()", 2)
        scope = {"x": t, "y": t, "own": "u32", "n": "u32", "s": "f32", "k": "i32", "step": "i32"}
        reads = self.leaf
        self.leaf = lambda kind, s: self.variable(kind, s) or f"{kind}({self.literal(kind)})"
        self.put(f"tile[own] = {self.strong(t, scope, 2)}", 2)
        self.put(f"atomic_add(grid, 0, own // 2, {word}(own))", 2)
        self.put("fence()", 2)
        self.put("barrier()", 2)
        op = r.choice(["add", "mul", "min", "max"])
        self.put(f"all = group_{op}(tile[own])", 1)
        self.put("barrier()", 1)
        scope = {"x": t, "all": t, "own": "u32", "n": "u32", "s": "f32", "k": "i32"}
        self.put("if i < n:", 1)
        for kind in self.types:
            self.put(f"out_{kind}[i] = {self.strong(kind, scope, 2)}", 2)
        self.put(f"hits[i % 4] = u32(7)", 2)
        self.put(f"near[i] = f32(grid[0, own]) + f32(grid[1, own])", 2)
        self.leaf = reads


MAPS = """from hologram_lang import *


@inline
def step(x: {a}) -> {b}:
    y = x * 3
    if x > 2:
        return {b}(y)
    return {b}(x)


@inline
def both(x: {a}, y: {b}) -> {b}:
    return {b}(x) + y


def kernel(p: DeviceArray[{a}], q: DeviceArray[{b}], r: DeviceArray[{b}], t: DeviceArray[{a}], n: u32):
    parallel_map(step, p, q, n)
    parallel_map(both, p, q, r, {count})
    parallel_reduce({op}, p, t, n)
"""


def maps(seed):
    r = random.Random(seed)
    a, b = r.sample(["i32", "u8", "f32", "i64", "u16", "f64"], 2)
    op = r.choice(["add", "mul", "min", "max"])
    return MAPS.format(a=a, b=b, op=op, count=r.choice(["n", "len(p)"])), a, b


PLANES = """from hologram_lang import *


SIDE = 3


@inline
def first(m: DeviceArray[{t}, 2], row: {u}) -> {t}:
    return m[row, 0]


def kernel(m: DeviceArray[{t}, 2], c: DeviceArray[{t}, 3], counts: DeviceArray[{w}], bytes: DeviceArray[u8], mask: DeviceArray[bool], near: DeviceArray[f32], x: f32, flag: bool, whole: int, real: float):
    launch(m.shape[1], m.shape[0])
    block({bx}, {by})
    column = get_global_id(0)
    row = get_global_id(1)
    left: {w}; side = SIDE
    if row < m.shape[0] and column < m.shape[1]:
        for k in range(side):
            c[k, row, column] = m[row, column] * {t}(k) + first(m, {u}(row))
        near[row * u32(m.shape[1]) + column] = {f}f(x{more}) + fminf(x, fmaxf(real, fabsf(x))) + fabs(fmin(x, 2)) - fmax(x, 1)
        mask[row * u32(m.shape[1]) + column] = bool(column % 3) != flag
        at = u8(column * 7 + row)
        bytes[row * u32(m.shape[1]) + column] = class_of(at) + class_mirror(class_of(at)) // 2 + class_neighbour(class_of(at), u8(row % 6))
        left = {w}(column) + {w}(get_local_size(0)) * {w}(get_local_size(1))
        left **= 2
        atomic_{op}(counts, row % 4, left)
        if row == 0 and column == 0:
            old = atomic_exchange(counts, 4, {w}(7))
            old = atomic_cas(counts, 5, {w}({expected}), {w}(9)) + old
            counts[6] = old if flag else {w}(whole) + {w}(int(real)) + {w}(float(whole))
        near[0] = fmod(x * 4, 1.5) + fmodf(real, 0.7) + powf(abs(x), real) + pow(real, 2) + fmaf(x, real, 0.5) + atanhf(x * 0.1) + sigmoidf(x)
"""


def planes(seed):
    """Two and three dimensions, shapes, atomics of every kind, and functions of several numbers."""
    r = random.Random(seed)
    f = ["fma", "pow", "fmod"][seed // 10 % 3]
    more = {"fma": ", real, 1.0", "pow": ", 2.0", "fmod": ", 3.0"}[f]
    bx, by = r.choice([(1, 1), (4, 2), (16, 1), (3, 5)])
    t, w = r.choice(["f32", "i32", "f64", "u16", "i64"]), r.choice(["i32", "u32", "i64", "u64"])
    source = PLANES.format(t=t, w=w, u=r.choice(["u32", "u64"]), f=f, more=more, bx=bx, by=by,
                           op=r.choice(["add", "min", "max"]), expected=r.choice([0, 3]))
    return source, t, w
