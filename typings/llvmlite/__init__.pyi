"""The part of llvmlite that tamis uses."""

from llvmlite import ir as ir
