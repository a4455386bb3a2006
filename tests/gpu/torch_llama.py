"""The same training step in plain PyTorch, to compare with: a Llama like HuggingFace's, compiled, bf16 by autocast over fp32
parameters, fused AdamW. torch_llama.py CONFIG.json LENGTH prints a JSON object."""

import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

TOKENS = 16384  # at once, as gpu_engine


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        hidden, inner = c["hidden_size"], c["intermediate_size"]
        self.heads, self.kv, self.dim = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
        self.norm1 = nn.RMSNorm(hidden, eps=c["rms_norm_eps"])
        self.norm2 = nn.RMSNorm(hidden, eps=c["rms_norm_eps"])
        self.qkv = nn.Linear(hidden, (self.heads + 2 * self.kv) * self.dim, bias=False)
        self.out = nn.Linear(self.heads * self.dim, hidden, bias=False)
        self.gate_up = nn.Linear(hidden, 2 * inner, bias=False)
        self.down = nn.Linear(inner, hidden, bias=False)

    def forward(self, x, cos, sin):
        b, s, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).split([self.heads * self.dim, self.kv * self.dim, self.kv * self.dim], -1)
        q, k, v = (t.view(b, s, -1, self.dim).transpose(1, 2) for t in (q, k, v))
        q, k = turned(q, cos, sin), turned(k, cos, sin)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(attended.transpose(1, 2).reshape(b, s, -1))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


def turned(x, cos, sin):
    first, second = x.chunk(2, -1)
    return (x * cos + torch.cat((-second, first), -1) * sin).to(x.dtype)


class Llama(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.blocks = nn.ModuleList(Block(c) for _ in range(c["num_hidden_layers"]))
        self.norm = nn.RMSNorm(c["hidden_size"], eps=c["rms_norm_eps"])
        self.head = nn.Linear(c["hidden_size"], c["vocab_size"], bias=False)
        if c["tie_word_embeddings"]:
            self.head.weight = self.embed.weight
        self.dim, self.theta = c["head_dim"], c["rope_theta"]
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=c["initializer_range"])

    def forward(self, tokens, labels):
        positions = torch.arange(tokens.shape[1], device=tokens.device, dtype=torch.float32)
        steps = torch.arange(0, self.dim, 2, device=tokens.device, dtype=torch.float32) / self.dim
        angles = torch.outer(positions, self.theta**-steps).repeat(1, 2)
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, angles.cos(), angles.sin())
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


def step_seconds(config, sequences, length):
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    torch.cuda.reset_peak_memory_stats()
    with torch.device("cuda"):
        model = Llama(config)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), fused=True)
    compiled = torch.compile(model)
    tokens = torch.randint(config["vocab_size"], (sequences, length + 1), device="cuda")

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = compiled(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        return loss

    for _ in range(3):
        step()
    best = float("inf")
    for _ in range(5):
        torch.cuda.synchronize()
        began = time.perf_counter()
        loss = step()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - began)
    return best, torch.cuda.max_memory_allocated(), loss.item()


def main(file, length):
    with open(file, encoding="utf-8") as opened:
        config = json.load(opened)
    sequences = max(1, TOKENS // length)
    while True:
        try:
            seconds, memory, loss = step_seconds(config, sequences, length)
            break
        except torch.OutOfMemoryError:
            if sequences == 1:
                raise
            sequences //= 2
        torch._dynamo.reset()  # what was compiled for more sequences holds their memory
        torch.cuda.empty_cache()
    tokens = sequences * length
    print(json.dumps({
        "length": length, "sequences": sequences, "seconds": seconds, "tokens_per_second": tokens / seconds,
        "memory_bytes": memory, "loss": loss, "torch": torch.__version__,
    }, indent=1))  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
