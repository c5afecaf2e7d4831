"""A CUDA GPU, through CuPy."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.errors import MatcherError
from tamis.match.gpu import GPU_VARIABLE, SIMULATED
from tamis.match.gpu.kernel_device import SOURCE, KernelDevice, KernelVariant
from tamis.match.gpu.layout import WARPS

_PINNED = 1 << 16  # bytes: larger answers are copied to pinned memory, at the speed of the bus
_INSTEAD = f"device='{SIMULATED}' gives the same answers on the processor, slowly"


class CudaDevice(KernelDevice):
    """One GPU."""

    warps = WARPS

    def __init__(self, number: int) -> None:
        super().__init__()
        self.xp = _cupy()
        cuda = self.xp.cuda
        count = cuda.runtime.getDeviceCount()
        if number >= count:
            raise MatcherError(
                f"there is no GPU {number}: this machine has {count}, numbered from 0; set number, "
                f"or the variable {GPU_VARIABLE}"
            )
        self._device = cuda.Device(number)
        facts = self._device.attributes
        self.shared_bytes = facts["MaxSharedMemoryPerBlockOptin"]
        self.places = facts["MultiProcessorCount"]
        self._modules: dict[KernelVariant, Any] = {}
        self._functions: dict[tuple[str, KernelVariant], Any] = {}
        self._shared: dict[tuple[str, KernelVariant], int] = {}  # bytes that a kernel may take

    def current(self) -> AbstractContextManager[Any]:
        device: AbstractContextManager[Any] = self._device
        return device

    def launch(
        self, kernel: str, variant: KernelVariant, grid: tuple[int, ...], threads: int, shared: int,
        arguments: tuple[Any, ...],
    ) -> None:  # fmt: skip
        key = kernel, variant
        function = self._functions.get(key) or self.compiled(kernel, variant)
        if shared > self._shared.get(key, 48 * 1024):
            function.max_dynamic_shared_size_bytes = self._shared[key] = shared
            function.preferred_shared_memory_carveout = 100  # per cent of what there is
        function(grid, (threads,), arguments, shared_mem=shared)

    def compiled(self, kernel: str, variant: KernelVariant) -> Any:
        """A kernel. CuPy keeps compiled code on disk, in `~/.cupy`."""
        if variant not in self._modules:
            self._modules[variant] = self._module(variant)
        found = self._functions[kernel, variant] = self._modules[variant].get_function(kernel)
        return found

    def host(self, array: Any) -> NDArray[Any]:
        if array.nbytes < _PINNED:
            small: NDArray[Any] = array.get()
            return small
        # Rounded, so that the pool finds memory of an earlier answer that nobody reads any more.
        room = self.xp.cuda.alloc_pinned_memory(1 << (int(array.nbytes) - 1).bit_length())
        copied: NDArray[Any] = np.frombuffer(room, array.dtype, array.size)
        array.get(out=copied)
        return copied

    def _module(self, variant: KernelVariant) -> Any:
        options = (
            f"-DCOLUMNS={variant.columns}",
            f"-DSHARED_LINES={int(variant.shared_lines)}",
            f"-DSHARED_BOUNDS={int(variant.shared_bounds)}",
            f"-DWARPS={self.warps}",
            "-std=c++17",
        )
        return self.xp.RawModule(code=SOURCE.read_text(encoding="utf-8"), options=options)


def _cupy() -> Any:
    try:
        cupy = import_module("cupy")
    except ImportError as error:
        raise MatcherError(
            f"tamis-gpu needs CuPy, which cannot be imported ({error}): pip install cupy-cuda13x "
            f"or cupy-cuda12x, for the version of CUDA; {_INSTEAD}"
        ) from None
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise MatcherError(f"tamis-gpu finds no CUDA GPU ({error}); {_INSTEAD}") from None
    return cupy
