"""Compiler flags, the same for every C file and for every C++ file of the tree."""

_O3 = select({"//tools:opt": ["-O3"], "//conditions:default": []})

# Contraction is an explicit fma op: interpreter and generated code must agree in every bit.
_C = ["-std=c11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]

WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wconversion",
    "-Wshadow",
    "-Wstrict-prototypes",
    "-Wmissing-prototypes",
    "-Wvla",
    "-Wundef",
    "-Wdouble-promotion",
    "-Werror",
]

C_FLAGS = _C + WARNINGS + _O3

# Programs of examples/ and benchmarks/ are written as a user's would be.
PROGRAM_FLAGS = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"] + _O3

# The hand-written versions get what a careful author would give them.
BENCHMARK_FLAGS = PROGRAM_FLAGS + [
    "-O3",
    "-march=native",
    "-fopenmp",
    "-fno-math-errno",
    "-fno-trapping-math",
]

# A test compares bits: no contraction here either.
TEST_FLAGS = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers"] + [
    "-ffp-contract=off",
]
