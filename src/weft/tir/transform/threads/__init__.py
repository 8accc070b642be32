"""Passes over the threads of GPU kernels: reductions, barriers, and kernels as loops on a CPU."""
