"""Kernels: Gram matrices, feature maps, and the quadratic programs of the kernel machines."""
