"""Kernels: Gram matrices, feature maps and the solvers of the kernel machines."""

from rocmax._public import set_public_module
from rocmax.kernels.exact_map import ExactKernelMap
from rocmax.kernels.gram import Kernel
from rocmax.kernels.nystroem import KMeansNystroem

__all__ = ["ExactKernelMap", "KMeansNystroem", "Kernel"]

# The transformers are exported by the package rocmax.
set_public_module("rocmax", globals(), ("ExactKernelMap", "KMeansNystroem"))
set_public_module("rocmax.kernels", globals(), ("Kernel",))
