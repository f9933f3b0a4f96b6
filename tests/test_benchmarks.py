"""The benchmarks run, check what they time, and docs/performance.md is made of them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import torch_sparse_ops as tso

pytest.importorskip("numpy")

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
OPS = {
    "concat",
    "reshape",
    "scatter",
    "scatter_",
    "backward-concat",
    "backward-reshape",
    "backward-scatter",
}
OURS = "torch_sparse_ops"


def python(*args):
    """Runs a program that finds the package under test, and its own neighbours."""
    path = [str(Path(tso.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}
    env.pop("PYTHONSAFEPATH", None)
    return subprocess.run(
        [sys.executable, *map(str, args)],
        env=env,
        cwd=BENCHMARKS,
        capture_output=True,
        text=True,
    )


def run(out, *words):
    done = python("run.py", "--smoke", "--no-plots", "--out", out, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((out / "smoke.json").read_text()), done.stdout


def check_workloads(results):
    if any(map(shutil.which, ("cc", "gcc", "clang"))):
        assert results["run"]["copies"] == "C"
    for name, found in results["workloads"].items():
        peers = found["peers"]
        assert peers[OURS]["result"] == "right", name
        assert all(ms > 0 for ms in peers[OURS]["ms"]), name
        assert "torch" in peers, name
        if found["bytes_moved"]:
            assert found["floor"]["new"] > 0, name


def test_one_workload_of_each_op(tmp_path):
    words = ["concat/axis1-x2", "reshape/general", "scatter/scalars/"]
    results, output = run(tmp_path, *words, "scatter_/rows64")
    check_workloads(results)
    assert {found["op"] for found in results["workloads"].values()} == OPS
    for name, found in results["workloads"].items():
        assert f"\n{name}" in output
        for peer, status in found["peers"].items():
            assert status.get("result") == "right" or "failed" in status, (name, peer)


def test_ratios_are_medians_over_runs():
    """The machine is twice as slow in the second run, the peer half as fast in the
    third, where the floor was cheap."""
    program = """
import json
import results

def run(ours, peer, floor):
    peers = {"torch_sparse_ops": {"ms": ours}, "peer": {"ms": peer}, "none": {}}
    return {"workloads": {"w": {"floor": {"new": floor}, "peers": peers}}}

runs = run([1, 2, 9], [6], 1), run([4], [12], 2), run([2], [12], 0.2)
work = results.timed({**results.over_runs(runs), "peers": {}})["w"]
ours, peer = work.median("torch_sparse_ops"), work.median("peer")
print(json.dumps([ours, peer, work.median("none"), work.found["floor"]["new"]]))
"""
    done = python("-c", program)
    assert json.loads(done.stdout) == [2, 6, None, 1], done.stderr


def test_several_runs(tmp_path):
    results, _ = run(tmp_path, "reshape/general", "--runs", "2")
    assert results["run"]["runs"] == 2
    check_workloads(results)
    ours, *others = results["workloads"]["reshape/general/1e3"]["peers"].values()
    assert len(ours["ms"]) == 2
    assert others


def test_layers(tmp_path):
    rows = run(tmp_path, "layers")[0]["layers"]
    for op in ("sparse_concat", "sparse_reshape", "tensor_scatter_update"):
        layers = {row["layer"].split(",")[0] for row in rows if row["op"] == op}
        assert {"raw operator", "function"} <= layers
        assert any(layer.startswith("aten::") for layer in layers)
    assert all(row["us"] >= row["least_us"] > 0 for row in rows)


def test_a_wrong_result_is_noticed():
    program = """
import torch_sparse_ops
from results import ours_went_wrong
from worker import Worker

true = torch_sparse_ops.sparse_concat
torch_sparse_ops.sparse_concat = lambda inputs, axis: true(inputs[::-1], axis)
worker = Worker("smoke")
peers = ["torch_sparse_ops", "torch_sparse_ops (raw)"]
for case in "axis1-x2", "axis0-x2":
    name = f"concat/{case}/1e3"
    found = {"workloads": {name: worker.load(name, peers)}}
    print(ours_went_wrong({**found, "peers": {peer: {"ours": True} for peer in peers}}))
"""
    done = python("-c", program)
    assert done.stdout.splitlines() == [
        f"['concat/{case}/1e3: {OURS}: wrong']" for case in ("axis1-x2", "axis0-x2")
    ], done.stderr


def test_page_is_made_of_the_kept_results():
    done = python("page.py", "--check")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_every_workload(tmp_path):
    results, _ = run(tmp_path)
    check_workloads(results)
    assert len(results["workloads"]) > 40
    assert {row["peer"] for row in results["memory"]} == {OURS}
