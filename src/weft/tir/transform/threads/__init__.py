"""Passes over the threads of GPU kernels: reductions, barriers, and kernels run by a CPU."""
