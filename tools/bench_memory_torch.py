"""The nets of bench/memory/models.c in PyTorch: one measurement, as a line of JSON.

    bench_memory_torch.py --model deep|cnn|gpt [--checkpoint] [--seconds S] [--threads N]

The peak is that of the process in the steps, above what it had after importing PyTorch.
Checkpoints (torch.utils.checkpoint) are around every 8 dense layers, 4 convolutions or 1 block."""
import argparse
import json
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


def status(key):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def forget_peak():
    with open("/proc/self/clear_refs", "w") as to:
        to.write("5")


class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1024, 1024, bias=False)

    def forward(self, x):
        return torch.tanh(self.layer(x))


class Convolution(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.layer = nn.Conv2d(channels, 32, 3, padding=1)

    def forward(self, x):
        return F.relu(self.layer(x))


class Block(nn.Module):
    def __init__(self, width=256, heads=4):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.ln1(x)).split(width, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.proj(F.gelu(self.fc(self.ln2(x))))


class Deep:
    every = 8

    def __init__(self):
        self.layers = [Dense() for _ in range(64)]
        self.x = torch.rand(512, 1024) * 2 - 1

    def begin(self):
        return self.x

    def loss(self, y):
        return F.mse_loss(y, self.x)


class Convolutions:
    every = 4

    def __init__(self):
        self.layers = [Convolution(3 if k == 0 else 32) for k in range(16)]
        self.head = nn.Linear(32, 10)
        self.x = torch.rand(32, 3, 32, 32) * 2 - 1
        self.labels = torch.arange(32) * 7919 % 10

    def begin(self):
        return self.x

    def loss(self, y):
        return F.cross_entropy(self.head(y.mean((2, 3))), self.labels)


class Gpt:
    every = 1

    def __init__(self):
        self.layers = [Block() for _ in range(12)]
        self.embed, self.norm, self.head = nn.Embedding(256, 256), nn.LayerNorm(256), nn.Linear(256, 256, bias=False)
        self.tokens = (torch.arange(8 * 128) * 7919 % 256).view(8, 128)

    def begin(self):
        return self.embed(self.tokens)

    def loss(self, y):
        return F.cross_entropy(self.head(self.norm(y)).flatten(0, 1), self.tokens.flatten())


def run(layers, x):
    for layer in layers:
        x = layer(x)
    return x


def step(net, parameters, segments):
    for p in parameters:
        p.grad = None
    x = net.begin()
    if segments:
        for k in range(0, len(net.layers), net.every):
            x = checkpoint(run, net.layers[k:k + net.every], x, use_reentrant=False)
    else:
        x = run(net.layers, x)
    loss = net.loss(x)
    loss.backward()
    return loss.item()


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--model", choices=["deep", "cnn", "gpt"], required=True)
    arguments.add_argument("--checkpoint", action="store_true")
    arguments.add_argument("--seconds", type=float, default=3)
    arguments.add_argument("--threads", type=int, default=2)
    a = arguments.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    at_first = status("VmRSS:")
    net = {"deep": Deep, "cnn": Convolutions, "gpt": Gpt}[a.model]()
    modules = net.layers + [m for m in vars(net).values() if isinstance(m, nn.Module)]
    parameters = [p for m in modules for p in m.parameters()]
    forget_peak()
    loss, times, end = step(net, parameters, a.checkpoint), [], time.perf_counter() + a.seconds
    while len(times) < 2 or time.perf_counter() < end:
        start = time.perf_counter()
        step(net, parameters, a.checkpoint)
        times.append(time.perf_counter() - start)
    print(json.dumps({"model": a.model, "system": "torch-" + torch.__version__, "checkpoint": a.checkpoint,
                      "min_s": min(times), "runs": len(times), "peak_bytes": status("VmHWM:") - at_first,
                      "loss": loss}))


main()
