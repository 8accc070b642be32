"""Weft's threads and PyTorch's in one process: those without work leave the cores to the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.threads.parallel_loops import run_in_fresh_process

BESIDE = """
import os, time
from pathlib import Path
import torch, weft

TASKS = Path("/proc/self/task")

def ticks(task):
    after_name = (TASKS / task / "stat").read_text().rpartition(")")[2].split()
    return int(after_name[11]) + int(after_name[12])  # user and system time in 1/100 s

def sleeps(task):
    return (TASKS / task / "stat").read_text().rpartition(")")[2].split()[0] == "S"

torch.set_num_threads(2)
net = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU()).eval()
x = torch.randn(256, 512)
model = weft.compile(net, (x,), target="llvm -num-cores=2", num_threads=2, cache=False)
expected = net(x)
before = set(os.listdir(TASKS))
model(x)
workers = set(os.listdir(TASKS)) - before
assert workers, "the model has no parallel loop"
for _ in range(50):
    torch.testing.assert_close(model(x), net(x), rtol=1e-4, atol=1e-4)
while not all(map(sleeps, workers)):
    time.sleep(0.01)
start = sum(map(ticks, workers))
for _ in range(200):
    net(x)
spent = sum(map(ticks, workers)) - start
assert spent == 0, f"weft's workers took {spent} hundredths of a second from torch"
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's list of threads")
def test_workers_sleep_while_torch_computes():
    run_in_fresh_process(BESIDE)
