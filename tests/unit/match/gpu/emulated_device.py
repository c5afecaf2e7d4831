"""The kernels of `kernels.cu` on the processor: compiled as C++, with a fiber for each thread."""

from __future__ import annotations

import ctypes
import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tamis.match.gpu.device import Device
from tamis.match.gpu.kernel_device import SOURCE, KernelDevice, KernelVariant
from tamis.match.gpu.matcher import TamisGpu

_HEADER = Path(__file__).with_name("emulated_cuda.h")
_KERNEL = re.compile(r'extern "C" __global__ void (?:__launch_bounds__\(.*\) )?(\w+)\(([^)]*)\)')
_WARPS = 2


class EmulatedDevice(KernelDevice):
    """Launches kernels as on a GPU with two small multiprocessors."""

    xp = np
    warps = _WARPS
    places = 3
    shared_bytes = 227 * 1024

    def launch(
        self, kernel: str, variant: KernelVariant, grid: tuple[int, ...], threads: int, shared: int,
        arguments: tuple[Any, ...],
    ) -> None:  # fmt: skip
        assert shared <= self.shared_bytes
        held = [_argument(each) for each in arguments]
        pointers = (ctypes.c_void_p * len(held))(*(ctypes.addressof(each) for each in held))
        width, height = (*grid, 1)[:2]
        code = getattr(_library(variant), f"start_{kernel}")(
            pointers, len(held), width, height, threads, shared
        )
        assert code == 0, f"{kernel}: {'a lane waits for others' if code == 1 else 'arguments'}"


class EmulatedGpu(TamisGpu):
    """The matcher with an emulated GPU."""

    def _device(self) -> Device:
        if self._opened is None:
            self._opened = EmulatedDevice()
        return self._opened


def _argument(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        assert value.flags.c_contiguous
        return ctypes.c_void_p(value.ctypes.data)
    kind = {np.int32: ctypes.c_int32, np.uint64: ctypes.c_uint64}[type(value)]
    return kind(int(value))


@cache
def _library(variant: KernelVariant) -> ctypes.CDLL:
    source = SOURCE.read_text(encoding="utf-8")
    starts = [_start(*found) for found in _KERNEL.findall(source)]
    source = source.replace("extern __shared__ uint4 shared[];", "")
    folder = Path(tempfile.mkdtemp(prefix="tamis-emulated-"))
    text = "\n".join([f'#include "{_HEADER}"', source, *starts])
    (folder / "kernels.cpp").write_text(text, encoding="utf-8")
    options = [
        f"-DCOLUMNS={variant.columns}",
        f"-DSHARED_LINES={int(variant.shared_lines)}",
        f"-DSHARED_BOUNDS={int(variant.shared_bounds)}",
        f"-DWARPS={_WARPS}",
    ]
    library = folder / "kernels.so"
    subprocess.run(
        ["g++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", *options,
         str(folder / "kernels.cpp"), "-o", str(library)],
        check=True,
    )  # fmt: skip
    return ctypes.CDLL(str(library))


def _start(name: str, parameters: str) -> str:
    """A C function that starts a kernel with the addresses of its arguments."""
    kinds = [re.sub(r"\s*\w+$", "", each.strip()) for each in parameters.split(",")]
    kinds = [kind.replace("__restrict__", "") for kind in kinds]
    given = ", ".join(f"*({kind}*)a[{at}]" for at, kind in enumerate(kinds))
    return (
        f"static void body_{name}(void** a) {{ {name}({given}); }}\n"
        f'extern "C" int start_{name}(void** a, int many, int x, int y, int threads, int shared) {{'
        f" return many == {len(kinds)} ? launch(body_{name}, a, "
        "{(unsigned)x, (unsigned)y, 1}, threads, shared) : 2; }"
    )
