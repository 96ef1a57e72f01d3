"""Convolution and pooling, from PyTorch."""

from .from_torch import from_torch, with_double_backward
from .late_torch import torch
from .writing import open_file


def convolution():
    open_file("convolution")
    F = torch.nn.functional
    for name, op, kw, shapes in (
            ("plain", "conv1d", {}, [(2, 3, 7), (4, 3, 3)]),
            ("stride_padding", "conv1d", dict(stride=[2], padding=[2]), [(1, 2, 8), (3, 2, 3)]),
            ("dilated_groups", "conv1d", dict(dilation=[2], padding=[1], groups=2), [(2, 4, 9), (4, 2, 3)]),
            ("plain", "conv2d", {}, [(1, 2, 5, 4), (3, 2, 3, 2)]),
            ("all", "conv2d", dict(stride=[2, 1], padding=[1, 2], dilation=[1, 2], groups=2),
            [(2, 4, 6, 5), (2, 2, 3, 2)]),
            ("depthwise", "conv2d", dict(padding=[1, 1], groups=3), [(1, 3, 4, 4), (6, 1, 3, 3)]),
            ("pointwise", "conv2d", dict(stride=[2, 2]), [(1, 3, 4, 5), (2, 3, 1, 1)]),
            ("plain", "conv3d", dict(padding=[1, 0, 1]), [(1, 2, 3, 3, 3), (2, 2, 2, 2, 3)]),
            ("stride", "conv3d", dict(stride=[1, 2, 2], padding=[0, 1, 1]), [(1, 1, 2, 4, 5), (2, 1, 2, 3, 3)]),
            ("plain", "conv_transpose1d", {}, [(2, 3, 4), (3, 2, 3)]),
            ("output_padding", "conv_transpose1d", dict(stride=[3], padding=[1], output=[2]), [(1, 2, 4), (2, 3, 4)]),
            ("all", "conv_transpose2d", dict(stride=[2, 1], padding=[1, 0], dilation=[1, 2], groups=2, output=[1, 0]),
            [(1, 4, 3, 3), (4, 1, 3, 2)]),
            ("stride_beyond_kernel", "conv_transpose2d", dict(stride=[3, 2]), [(1, 1, 2, 3), (1, 2, 2, 1)]),
            ("plain", "conv_transpose3d", dict(stride=[1, 2, 1], padding=[0, 1, 1]),
            [(1, 2, 2, 3, 2), (2, 1, 2, 3, 3)])):
        call = {("output_padding" if k == "output" else k): (v if k == "groups" else tuple(v)) for k, v in kw.items()}
        with_double_backward(f"{op}_{name}", op, lambda x, w: getattr(F, op)(x, w, **call), shapes, kw)
        if name == "all":
            for d in ("f32", "bf16", "f16"):
                with_double_backward(f"{op}_{d}", op, lambda x, w: getattr(F, op)(x, w, **call), shapes, kw, dtype=d)
    causal = lambda x, w: F.conv1d(F.pad(x, (2, 0)), w)
    with_double_backward("conv1d_causal", "conv1d", causal, [(1, 2, 6), (2, 2, 3)], dict(before=[2]))
    uneven = lambda x, w: F.conv2d(F.pad(x, (1, 2, 1, 3)), w, stride=2)
    with_double_backward("conv2d_uneven", "conv2d", uneven, [(1, 1, 4, 4), (2, 1, 3, 3)],
        dict(stride=[2, 2], padding=[1, 1], after=[2, 1]))
    for name, op, kw, s in (
            ("plain", "max_pool1d", dict(window=[2]), (2, 3, 7)),
            ("ceil", "max_pool1d", dict(window=[3], stride=[2], padding=[1], ceil=1), (1, 2, 8)),
            ("2x2", "max_pool2d", dict(window=[2, 2]), (2, 2, 4, 6)),
            ("overlapping", "max_pool2d", dict(window=[3, 2], stride=[1, 2], padding=[1, 0]), (1, 2, 5, 5)),
            ("ceil", "max_pool2d", dict(window=[2, 3], stride=[2, 2], ceil=1), (1, 2, 5, 6)),
            ("plain", "max_pool3d", dict(window=[2, 2, 2], stride=[1, 2, 1]), (1, 1, 3, 4, 4)),
            ("plain", "avg_pool1d", dict(window=[3], stride=[2]), (2, 2, 8)),
            ("ceil", "avg_pool1d", dict(window=[3], stride=[2], padding=[1], ceil=1), (1, 2, 8)),
            ("2x2", "avg_pool2d", dict(window=[2, 2]), (2, 2, 4, 6)),
            ("include", "avg_pool2d", dict(window=[3, 2], stride=[2, 1], padding=[1, 1]), (1, 2, 5, 4)),
            ("exclude", "avg_pool2d", dict(window=[3, 2], stride=[2, 1], padding=[1, 1], exclude=1), (1, 2, 5, 4)),
            ("ceil", "avg_pool2d", dict(window=[3, 3], stride=[2, 2], padding=[1, 0], ceil=1), (1, 2, 6, 6)),
            ("ceil_exclude", "avg_pool2d", dict(window=[3, 3], stride=[2, 2], padding=[1, 0], ceil=1, exclude=1),
            (1, 2, 6, 6)),
            ("plain", "avg_pool3d", dict(window=[2, 2, 2], stride=[1, 2, 1], padding=[1, 0, 1]), (1, 1, 3, 4, 3))):
        call = dict(kernel_size=tuple(kw["window"]), stride=tuple(kw["stride"]) if "stride" in kw else None,
                    padding=tuple(kw.get("padding", [0] * len(kw["window"]))), ceil_mode="ceil" in kw)
        if op.startswith("avg"):
            call["count_include_pad"] = "exclude" not in kw
        with_double_backward(f"{op}_{name}", op, lambda x: getattr(F, op)(x, **call), [s], kw)
    tied = [[[1.0, 2.0, 2.0, 0.0, 3.0, 3.0]]]
    from_torch("max_pool1d_ties", "max_pool1d", lambda x: F.max_pool1d(x, 3, 1), [tied],
        attrs=dict(window=[3], stride=[1]))
    from_torch("max_pool2d_ties", "max_pool2d", lambda x: F.max_pool2d(x, 2),
        [[[[1.0, 2.0, 0.0, 0.0], [2.0, 2.0, 0.0, 0.0]]]], attrs=dict(window=[2, 2]))
