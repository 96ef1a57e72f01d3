"""GPT-2 in PyTorch and ours: a state in Hugging Face's layout gives the same losses, token by
token; and from the same state, on the same batches, training ends at the same loss.

    peer_gpt.py BUILD        needs: numpy safetensors torch
"""
import ctypes
import json
import math
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import save_file
from torch.nn import functional as F

LAYERS, HEADS, WIDTH, CONTEXT, BATCH, STEPS, RATE, SEED = 2, 4, 32, 32, 8, 100, 3e-3, 5


def random_state(vocabulary, deviation, generator):
    """Names and layout of Hugging Face's GPT2LMHeadModel: weights are (in, out)."""
    state = {"transformer.wte.weight": (vocabulary, WIDTH), "transformer.wpe.weight": (CONTEXT, WIDTH)}
    for k in range(LAYERS):
        block = f"transformer.h.{k}."
        for name, shape in {"ln_1": (WIDTH,), "attn.c_attn": (WIDTH, 3 * WIDTH), "attn.c_proj": (WIDTH, WIDTH),
                            "ln_2": (WIDTH,), "mlp.c_fc": (WIDTH, 4 * WIDTH), "mlp.c_proj": (4 * WIDTH, WIDTH)}.items():
            state[block + name + ".weight"] = shape
            state[block + name + ".bias"] = shape[-1:]
    state["transformer.ln_f.weight"] = state["transformer.ln_f.bias"] = (WIDTH,)
    made = {name: deviation * torch.randn(shape, generator=generator) for name, shape in state.items()}
    for name in made:
        if ".ln_" in name and name.endswith("weight"):
            made[name] += 1
    return made


def logits(state, tokens):
    """tokens (B, T) -> (B, T, vocabulary)"""
    def get(name):
        return state["transformer." + name]

    def norm(name, x):
        return F.layer_norm(x, (WIDTH,), get(name + ".weight"), get(name + ".bias"), 1e-5)

    def dense(name, x):
        return x @ get(name + ".weight") + get(name + ".bias")

    b, t = tokens.shape
    x = get("wte.weight")[tokens] + get("wpe.weight")[:t]
    for k in range(LAYERS):
        q, key, v = (part.view(b, t, HEADS, WIDTH // HEADS).transpose(1, 2)
                     for part in dense(f"h.{k}.attn.c_attn", norm(f"h.{k}.ln_1", x)).split(WIDTH, 2))
        seen = F.scaled_dot_product_attention(q, key, v, is_causal=True)
        x = x + dense(f"h.{k}.attn.c_proj", seen.transpose(1, 2).reshape(b, t, WIDTH))
        x = x + dense(f"h.{k}.mlp.c_proj", F.gelu(dense(f"h.{k}.mlp.c_fc", norm(f"h.{k}.ln_2", x)), approximate="tanh"))
    return norm("ln_f", x) @ get("wte.weight").T


def loss_of(state, windows):
    out = logits(state, windows[:, :-1])
    return F.cross_entropy(out.reshape(-1, out.shape[-1]), windows[:, 1:].reshape(-1))


def command(build, *words):
    done = subprocess.run([f"{build}/cotangent", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def compare_losses(build, folder, text, characters, tokens):
    state = random_state(len(characters), 0.2, torch.Generator().manual_seed(1))
    save_file(state, f"{folder}/model.safetensors", {"heads": str(HEADS), "characters": characters})
    ours = torch.tensor(command(build, "predict", folder, text, "--json")["losses"], dtype=torch.float64)
    theirs = []
    exact = {name: x.double() for name, x in state.items()}
    for k in range(0, len(tokens) - 1, CONTEXT):
        window = tokens[k:k + CONTEXT + 1][None]
        out = logits(exact, window[:, :-1])
        theirs.append(F.cross_entropy(out[0], window[0, 1:], reduction="none"))
    theirs = torch.cat(theirs)
    worst = ((ours - theirs).abs() / theirs.abs().clamp(min=1)).max().item()
    assert len(ours) == len(tokens) - 1 and worst < 1e-5, worst
    print(f"losses of {len(ours)} tokens differ from PyTorch's in f64 by {worst:.1e} at most")


class Key(ctypes.Structure):
    _fields_ = [("word", ctypes.c_uint32 * 2), ("tape", ctypes.c_void_p), ("id", ctypes.c_uint64)]


def starts_of(build, step, count):
    """Where the windows of a step begin, by the library's own keys."""
    library = ctypes.CDLL(f"{build}/libcotangent.so")
    library.cot_key_of.restype = library.cot_key_fold.restype = Key
    library.cot_key_of.argtypes = [ctypes.c_uint64]
    library.cot_key_fold.argtypes = [Key, ctypes.c_uint64]
    key = library.cot_key_fold(library.cot_key_fold(library.cot_key_of(SEED), 1), step)
    rows = [library.cot_key_fold(key, b).word for b in range(BATCH)]
    return [(word[1] << 32 | word[0]) % count for word in rows]


def rate_of(step):
    warmup = min(STEPS // 10, 100)
    if step < warmup:
        return RATE * (0.01 + 0.99 * step / warmup)
    return RATE / 10 + (RATE - RATE / 10) * (1 + math.cos(math.pi * (step - warmup) / (STEPS - warmup))) / 2


def train(build, state, tokens):
    trained = len(tokens) - len(tokens) // 10
    for x in state.values():
        x.requires_grad_(True)
    groups = [{"params": [x for x in state.values() if x.ndim > 1], "weight_decay": 0.1},
              {"params": [x for x in state.values() if x.ndim == 1], "weight_decay": 0}]
    optimiser = torch.optim.AdamW(groups, betas=(0.9, 0.99), eps=1e-8)
    losses = []
    for step in range(STEPS):
        windows = torch.stack([tokens[s:s + CONTEXT + 1] for s in starts_of(build, step, trained - CONTEXT)])
        for group in optimiser.param_groups:
            group["lr"] = rate_of(step)
        loss = loss_of(state, windows)
        losses.append(loss.item())
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(state.values(), 1.0)
        optimiser.step()
    with torch.no_grad():
        windows = (len(tokens) - trained - 1) // CONTEXT
        n = min(windows, 64)
        chosen = torch.stack([tokens[s:s + CONTEXT + 1]
                              for s in (trained + k * windows // n * CONTEXT for k in range(n))])
        return losses, loss_of(state, chosen).item()


def compare_training(build, folder, text, characters, tokens):
    state = random_state(len(characters), 0.05, torch.Generator().manual_seed(2))
    save_file(state, f"{folder}/initial.safetensors")
    sizes = {"layers": LAYERS, "heads": HEADS, "width": WIDTH, "context": CONTEXT, "batch": BATCH, "steps": STEPS,
             "rate": RATE, "seed": SEED}
    given = [word for k, v in sizes.items() for word in (f"--{k}", str(v))]
    ours = command(build, "train", "gpt", "--data", text, "--initial", f"{folder}/initial.safetensors", "--json",
                   "--quiet", "--log", f"{folder}/run.jsonl", *given)
    losses, final = train(build, state, tokens)
    with open(f"{folder}/run.jsonl") as file:
        logged = [row["loss"] for row in map(json.loads, file) if "loss" in row]
    # the first losses are those of the same arithmetic, before roundings have grown
    assert len(logged) == STEPS, len(logged)
    assert all(abs(a - b) < 1e-4 * b for a, b in zip(logged[:10], losses[:10])), (logged[:10], losses[:10])
    apart = abs(ours["test_loss"] - final) / final
    assert final < 0.8 * losses[0] and apart < 0.02, (ours, final)
    print(f"after {STEPS} steps: loss {ours['test_loss']:.4f}, PyTorch's {final:.4f}, {100 * apart:.3f} % apart")


def main(build):
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        text, content = f"{folder}/text.txt", ""
        for k in range(400):
            content += f"{k} times {k % 7} makes {k * (k % 7)}; é\n"
        with open(text, "w") as file:
            file.write(content)
        characters = "".join(sorted(set(content)))
        tokens = torch.tensor([characters.index(c) for c in content])
        compare_losses(build, folder, text, characters, tokens)
        compare_training(build, folder, text, characters, tokens)


main(sys.argv[1])
