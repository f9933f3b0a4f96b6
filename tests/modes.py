"""The ways in which torch can run a function, and whether ours are right in them.

`python tests/modes.py` prints the table of docs/transforms.md.
"""

import torch
import torch.autograd.forward_ad as fwAD
from torch._subclasses import FakeTensorMode
from torch.autograd import functional
from torch.func import functionalize, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from torch.utils.checkpoint import checkpoint

import torch_sparse_ops as tso
from torch_sparse_ops import SparseTensor

ops = torch.ops.torch_sparse_ops

# ----------------------------------------------------------------- functions
# Each is a linear function of a vector of six numbers.

ROWS = torch.tensor([[1, 2], [0, 1], [1, 0]])
OTHER = torch.tensor([[0, 0], [1, 1], [0, 2]])
PLACES = torch.tensor([[1], [0], [1], [7]])


def sparse_concat(x):
    a = SparseTensor(ROWS, x[:3], (2, 3))
    b = SparseTensor(OTHER, x[3:], (2, 3))
    return tso.sparse_concat([a, b], 1).values


def sparse_reshape(x):
    a = SparseTensor(torch.cat([ROWS, OTHER]), x, (2, 3))
    return tso.sparse_reshape(a, (3, 2)).to_dense()


def coo_tensors(x):
    a = SparseTensor(ROWS, x[:3], (2, 3)).to_torch()
    b = SparseTensor(OTHER, x[3:], (2, 3)).to_torch()
    joined = tso.sparse_concat([a, b], 1)
    return SparseTensor.from_torch(tso.sparse_reshape(joined, (3, 4))).to_dense()


def tensor_scatter_update(x):
    return tso.tensor_scatter_update(x[:2], PLACES, x[2:], bad_indices_policy="IGNORE")


def tensor_scatter_update_(x):
    copy = x[:2] * 1
    return tso.tensor_scatter_update_(copy, PLACES, x[2:], bad_indices_policy="IGNORE")


def raw_in_place(x):
    copy = x[:2] * 1
    ops.tensor_scatter_update_(copy, PLACES, x[2:], "IGNORE")
    return copy


FUNCTIONS = {
    "`sparse_concat`": sparse_concat,
    "`sparse_reshape`": sparse_reshape,
    "`tensor_scatter_update`": tensor_scatter_update,
    "`tensor_scatter_update_`": tensor_scatter_update_,
    "`ops.tensor_scatter_update_`": raw_in_place,
    "COO tensors": coo_tensors,
}


def vector():
    return torch.arange(1.0, 7.0, dtype=torch.float64)


def matrix(f):
    """The Jacobian of f, from what it makes of the basis vectors."""
    return torch.stack([f(e) for e in torch.eye(6).double()], dim=-1)


def cubed(f):
    return lambda x: (f(x) ** 3).sum()


def gradient_of_cubed(f, x):
    return torch.einsum("...,...k->k", 3 * f(x) ** 2, matrix(f))


def hessian_of_cubed(f, x):
    j = matrix(f).reshape(-1, 6)
    return j.T @ torch.diag(6 * f(x).flatten()) @ j


# --------------------------------------------------------------------- modes
# Each returns pairs of what the mode gives and what is right.


def backward(f):
    x = vector().requires_grad_()
    cubed(f)(x).backward()
    yield x.grad, gradient_of_cubed(f, vector())


def double_backward(f):
    x = vector().requires_grad_()
    (first,) = torch.autograd.grad(cubed(f)(x), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    yield second, hessian_of_cubed(f, vector()).sum(0)


def forward_mode(f):
    with fwAD.dual_level():
        out = f(fwAD.make_dual(vector(), vector().flip(0)))
        yield fwAD.unpack_dual(out).tangent, f(vector().flip(0))


def func_jvp(f):
    yield jvp(f, (vector(),), (vector().flip(0),))[1], f(vector().flip(0))


def func_vjp(f):
    out, pull = vjp(cubed(f), vector())
    yield pull(torch.ones_like(out))[0], gradient_of_cubed(f, vector())


def func_grad(f):
    yield grad(cubed(f))(vector()), gradient_of_cubed(f, vector())


def func_jacrev(f):
    yield jacrev(f)(vector()), matrix(f)


def func_jacfwd(f):
    yield jacfwd(f)(vector()), matrix(f)


def func_hessian(f):
    yield hessian(cubed(f))(vector()), hessian_of_cubed(f, vector())


def func_vmap(f):
    batch = torch.stack([vector(), vector().flip(0)])
    yield vmap(f)(batch), torch.stack([f(x) for x in batch])


def nested_vmap(f):
    batch = torch.stack([vector(), vector().flip(0)])[None].expand(3, 2, 6)
    yield (
        vmap(vmap(f))(batch),
        torch.stack([f(x) for x in batch[0]]).expand(3, 2, *f(vector()).shape),
    )


def vmap_of_grad(f):
    batch = torch.stack([vector(), vector().flip(0)])
    want = torch.stack([gradient_of_cubed(f, x) for x in batch])
    yield vmap(grad(cubed(f)))(batch), want


def batched_gradients(f):
    x = vector().requires_grad_()
    out = f(x)
    basis = torch.eye(out.numel()).double().reshape(-1, *out.shape)
    (got,) = torch.autograd.grad(out, x, basis, is_grads_batched=True)
    yield got, matrix(f).reshape(-1, 6)


def vectorized_jacobian(f):
    yield functional.jacobian(f, vector(), vectorize=True), matrix(f)


def func_functionalize(f):
    yield functionalize(f)(vector()), f(vector())


def compiled(f):
    torch._dynamo.reset()
    run = torch.compile(f, fullgraph=True, backend="aot_eager")
    yield run(vector()), f(vector())


def compiled_backward(f):
    torch._dynamo.reset()
    x = vector().requires_grad_()
    torch.compile(cubed(f), fullgraph=True, backend="aot_eager")(x).backward()
    yield x.grad, gradient_of_cubed(f, vector())


def exported(f):
    module = torch.nn.Module()
    module.forward = f
    program = torch.export.export(module, (vector(),))
    yield program.module()(vector()), f(vector())


def fake_tensors(f):
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        out = f(mode.from_tensor(vector()))
    yield torch.tensor(out.shape), torch.tensor(f(vector()).shape)


def autocast(f):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = f(vector().float())
    assert out.dtype == torch.float32
    yield out.double(), f(vector())


def deterministic(f):
    torch.use_deterministic_algorithms(True)
    try:
        yield from backward(f)
    finally:
        torch.use_deterministic_algorithms(False)


def no_grad(f):
    with torch.no_grad():
        out = f(vector().requires_grad_())
    assert not out.requires_grad
    yield out, f(vector())


def inference(f):
    with torch.inference_mode():
        yield f(vector()), f(vector())


def checkpointed(f):
    x = vector().requires_grad_()
    checkpoint(cubed(f), x, use_reentrant=False).backward()
    yield x.grad, gradient_of_cubed(f, vector())


def saved_tensors(f):
    saved = []
    hooks = torch.autograd.graph.saved_tensors_hooks(
        lambda t: saved.append(t) or len(saved) - 1, lambda k: saved[k]
    )
    x = vector().requires_grad_()
    with hooks:
        loss = cubed(f)(x)
    assert saved
    loss.backward()
    yield x.grad, gradient_of_cubed(f, vector())


MODES = {
    "`backward()`": backward,
    "double backward": double_backward,
    "`torch.autograd.forward_ad`": forward_mode,
    "`torch.func.jvp`": func_jvp,
    "`torch.func.vjp`": func_vjp,
    "`torch.func.grad`": func_grad,
    "`torch.func.jacrev`": func_jacrev,
    "`torch.func.jacfwd`": func_jacfwd,
    "`torch.func.hessian`": func_hessian,
    "`torch.func.vmap`": func_vmap,
    "`vmap` of `vmap`": nested_vmap,
    "`vmap` of `grad`": vmap_of_grad,
    "`grad(is_grads_batched=True)`": batched_gradients,
    "`functional.jacobian(vectorize=True)`": vectorized_jacobian,
    "`torch.func.functionalize`": func_functionalize,
    "`torch.compile(fullgraph=True)`": compiled,
    "the same with `backward()`": compiled_backward,
    "`torch.export`": exported,
    "`FakeTensorMode`": fake_tensors,
    "`torch.autocast`": autocast,
    "`use_deterministic_algorithms`": deterministic,
    "`torch.no_grad`": no_grad,
    "`torch.inference_mode`": inference,
    "activation checkpointing": checkpointed,
    "saved-tensor hooks": saved_tensors,
}


def outcome(mode, f):
    """ "yes" or "raises"; a wrong number is an AssertionError."""
    try:
        pairs = list(mode(f))
    except AssertionError:
        raise
    except Exception:
        return "raises"
    for got, want in pairs:
        assert got is not None, "no derivative"
        assert torch.equal(got, want), f"{got} is not {want}"
    return "yes"


def table():
    lines = [
        "| | " + " | ".join(FUNCTIONS) + " |",
        "| --- " * (len(FUNCTIONS) + 1) + "|",
    ]
    for title, mode in MODES.items():
        cells = [outcome(mode, f) for f in FUNCTIONS.values()]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
