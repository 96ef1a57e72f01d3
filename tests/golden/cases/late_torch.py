"""PyTorch, imported when it is first used: most topics need JAX alone."""


class Late:
    def __getattr__(self, name):
        import torch
        return getattr(torch, name)


class LateFunctional:
    def __getattr__(self, name):
        import torch
        return getattr(torch.nn.functional, name)


torch = Late()
F = LateFunctional()
