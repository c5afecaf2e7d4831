"""The matcher for CUDA GPUs: bitmaps in shared memory, and the same kernels in NumPy."""

GPU_VARIABLE = "TAMIS_GPU"
"""The environment variable with the number of the GPU, or SIMULATED."""
SIMULATED = "simulated"
