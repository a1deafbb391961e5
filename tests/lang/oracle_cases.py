"""Runs kernels under CPython and writes what they were given and what they gave.

    oracle_cases.py FOLDER KERNELS FIRST:PROGRAMS PART/PARTS

FOLDER gets seen.json (what of the language the programs use), cases.json and data.bin: for every case the source's file, the kernel, the launch and
for every argument its bytes before and after. oracle_test.cpp runs the same, compiled.
"""

import json
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bindings", "python"))
sys.path.insert(0, HERE)

import coverage  # noqa: E402
import library_cases  # noqa: E402
import random_programs  # noqa: E402
from hologram_lang import Kernels  # noqa: E402
from hologram_lang.functions import ArrayType  # noqa: E402


class Writer:
    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.folder = folder
        self.data = open(os.path.join(folder, "data.bin"), "wb")
        self.cases = []
        self.seen = set()  # of the language, by the programs

    def bytes(self, array):
        at = self.data.tell()
        self.data.write(np.ascontiguousarray(array).tobytes())
        return at

    def case(self, file, kernels, name, given, launch=None, tolerance=None, label=""):
        arguments = []
        for parameter, kind in kernels.types(name):
            value = given[parameter]
            if isinstance(kind, ArrayType):
                arguments.append({"name": parameter, "type": kind.element.name,
                                  "shape": list(value.shape), "before": self.bytes(value)})
            else:
                scalar = kind(value)
                raw = np.array(scalar if isinstance(scalar, bool) else scalar.v)
                if kind.name == "bf16":
                    raise ValueError("bf16 scalars are not drawn")
                arguments.append({"name": parameter, "type": kind.name,
                                  "before": self.bytes(raw.astype(kind.dtype))})
        grid, block = launch or (None, None)
        kernels.run(name, grid=grid, block=block, **given)
        for argument in arguments:
            if "shape" in argument:
                argument["after"] = self.bytes(given[argument["name"]])
        self.cases.append({"file": file, "kernel": name, "label": label, "arguments": arguments,
                           "launch": launch, "tolerance": tolerance or 1e-5})

    def close(self):
        self.data.close()
        with open(os.path.join(self.folder, "cases.json"), "w", encoding="utf-8") as file:
            json.dump(self.cases, file)
        with open(os.path.join(self.folder, "seen.json"), "w", encoding="utf-8") as file:
            json.dump(sorted(self.seen), file)


def to_bf16(values):
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16).view("V2")


def draw(generator, kind, n):
    """Values worth trying of an element type."""
    if kind in ("f16", "bf16", "f32", "f64"):
        values = generator.choice([0.0, -0.0, 1.0, -1.0, 0.5, 2.75, 1e3, -7.25], n)
        values = np.where(generator.random(n) < 0.6, generator.normal(0, 4, n), values)
        if kind == "bf16":
            return to_bf16(values)
        return values.astype({"f16": "f2", "f32": "f4", "f64": "f8"}[kind])
    if kind == "bool":
        return generator.random(n) < 0.5
    dtype = np.dtype(("i" if kind[0] == "i" else "u") + str(int(kind[1:]) // 8))
    info = np.iinfo(dtype)
    small = generator.integers(max(-9, info.min), 10, n).astype(dtype)
    wide = generator.integers(info.min, info.max, n, dtype, endpoint=True)
    return np.where(generator.random(n) < 0.6, small, wide).astype(dtype)


def program_cases(writer, first, count, part, parts):
    for seed in range(first + part, first + count, parts):
        generator = np.random.default_rng(seed)
        path = os.path.join(writer.folder, f"program_{seed}.py")
        n = [1, 7, 33, 0, 70][seed % 5]
        if seed % 10 == 9:
            source, a, b = random_programs.maps(seed)
            given = {"p": draw(generator, a, n), "q": draw(generator, b, n),
                     "r": draw(generator, b, n), "t": draw(generator, a, 1), "n": n}
        elif seed % 10 == 8:
            source, t, w = random_programs.planes(seed)
            rows, columns = [(3, 5), (1, 1), (0, 4), (9, 33)][seed // 10 % 4]
            given = {"m": draw(generator, t, rows * columns).reshape(rows, columns),
                     "c": draw(generator, t, 3 * rows * columns).reshape(3, rows, columns),
                     "counts": np.zeros(7, draw(generator, w, 1).dtype),
                     "bytes": np.zeros(rows * columns, np.uint8),
                     "mask": np.zeros(rows * columns, np.bool_),
                     "near": np.zeros(max(rows * columns, 1), np.float32),
                     "x": 1.25, "flag": bool(seed & 16), "whole": 5, "real": 2.5}
        else:
            program = random_programs.Program(seed)
            source = program.source()
            given = {f"in_{t}": draw(generator, t, n) for t in program.types}
            given.update({f"out_{t}": draw(generator, t, n) for t in program.types})
            given.update(near=np.zeros(n, np.float32), n=n, s=0.5, k=int(generator.integers(-5, 6)),
                         hits=generator.integers(0, 9, 4).astype(np.uint32))
        with open(path, "w", encoding="utf-8") as file:
            file.write(source)
        writer.seen |= coverage.names(source)
        try:
            writer.case(path, Kernels(source, path), "kernel", given, label=f"seed {seed}")
        except Exception as error:
            raise RuntimeError(f"seed {seed} fails under CPython: {error}\n{source}") from error


def main():
    folder, kernels, programs, share = sys.argv[1:]
    first, count = map(int, programs.split(":"))
    part, parts = map(int, share.split("/"))
    writer = Writer(folder)
    library_cases.write(writer, kernels, part, parts)
    program_cases(writer, first, count, part, parts)
    writer.close()


if __name__ == "__main__":
    main()
