"""torch.func, forward mode and batched gradients: all equal to what a loop finds.

The functions are linear, so their Jacobian is what they make of the basis vectors,
and needs no derivative to know.
"""

import itertools

import pytest
import torch
import torch.autograd.forward_ad as fwAD
from bits import same_bits
from torch.autograd import gradcheck
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

import torch_sparse_ops as tso
from torch_sparse_ops import SparseTensor

ops = torch.ops.torch_sparse_ops

# Unsorted, with (1, 1) twice in the first.
FIRST = torch.tensor([[1, 1], [0, 2], [1, 1], [0, 0]])
SECOND = torch.tensor([[1, 3], [0, 1]])
# A repeat, and rows 3 and 5 out of bounds.
ROWS = torch.tensor([[1], [0], [1], [4], [1], [-1]])
PLACES = torch.tensor([[1, 1], [0, 0], [1, 1], [1, 2], [0, 1], [2, -1]])


def concat_raw(first, second):
    return ops.sparse_concat([FIRST, SECOND], [first, second], [2, 3, 2, 4], 1)[0]


def concat_triples(first, second):
    a = SparseTensor(FIRST, first, (2, 3))
    b = SparseTensor(SECOND, second, (2, 4))
    return tso.sparse_concat([a, b], 1).values


def reshape_triple(values):
    flat = tso.sparse_reshape(SparseTensor(FIRST, values, (2, 3)), (-1,))
    return flat.to_dense()


def scatter_raw(tensor, updates):
    return ops.tensor_scatter_update(tensor, ROWS, updates, "IGNORE")


def scatter(tensor, updates):
    return tso.tensor_scatter_update(
        tensor, PLACES, updates, bad_indices_policy="IGNORE"
    )


def scatter_in_place(tensor, updates):
    copy = tensor * 1
    return tso.tensor_scatter_update_(copy, ROWS, updates, bad_indices_policy="IGNORE")


def concat_grad(grad_values):
    parts = ops._sparse_concat_grad_values(
        grad_values, [FIRST, SECOND], [2, 3, 2, 4], 1, False, False
    )
    return torch.cat(parts[::-1])


def scatter_grad_tensor(grad_tensor):
    return ops._tensor_scatter_update_grad_tensor(grad_tensor, PLACES)


def scatter_grad_updates(grad_tensor):
    return ops._tensor_scatter_update_grad_updates(grad_tensor, PLACES)


FUNCTIONS = {
    concat_raw: ((4,), (2,)),
    concat_triples: ((4,), (2,)),
    reshape_triple: ((4,),),
    scatter_raw: ((3, 2), (6, 2)),
    scatter: ((3, 2), (6,)),
    scatter_in_place: ((3, 2), (6, 2)),
    concat_grad: ((6,),),
    scatter_grad_tensor: ((3, 2),),
    scatter_grad_updates: ((3, 2),),
}
functions = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)


def arguments(function, dtype=torch.float64):
    return tuple(torch.randn(*shape, dtype=dtype) for shape in FUNCTIONS[function])


def flat(function):
    """The function of one vector, which holds all its arguments."""
    shapes = FUNCTIONS[function]
    counts = [torch.Size(shape).numel() for shape in shapes]

    def call(x):
        parts = zip(x.split(counts), shapes, strict=True)
        return function(*(part.reshape(shape) for part, shape in parts)).flatten()

    return call, torch.randn(sum(counts), dtype=torch.float64)


def matrix(function):
    """The Jacobian of a linear function of a vector."""
    call, x = flat(function)
    return torch.stack([call(e) for e in torch.eye(len(x)).double()], dim=1)


# ------------------------------------------------------------ derivatives


@functions
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_gradcheck_of_every_mode(function, dtype):
    leaves = [x.requires_grad_() for x in arguments(function, dtype)]
    modes = {
        "check_forward_ad": True,
        "check_batched_grad": True,
        "check_batched_forward_grad": True,
    }
    assert gradcheck(function, leaves, **modes)
    for k, leaf in enumerate(leaves):
        # Each alone, with no gradient or tangent for the others.
        rest = [x.detach() for x in leaves]

        def alone(x, k=k, rest=rest):
            return function(*rest[:k], x, *rest[k + 1 :])

        assert gradcheck(alone, (leaf,), **modes)


@functions
def test_jacobians(function):
    call, x = flat(function)
    want = matrix(function)
    assert torch.equal(jacrev(call)(x), want)
    assert torch.equal(jacrev(call, chunk_size=2)(x), want)
    assert torch.equal(jacfwd(call)(x), want)
    old = torch.autograd.functional.jacobian
    assert torch.equal(old(call, x), want)
    assert torch.equal(old(call, x, vectorize=True), want)
    forward = {"vectorize": True, "strategy": "forward-mode"}
    assert torch.equal(old(call, x, **forward), want)


@functions
def test_products_with_vectors(function):
    call, x = flat(function)
    want = matrix(function)
    tangent = torch.randn_like(x)
    out, pushed = jvp(call, (x,), (tangent,))
    assert same_bits(out, call(x))
    assert torch.equal(pushed, call(tangent))
    out, pull = vjp(call, x)
    cotangent = torch.randn_like(out)
    assert torch.allclose(pull(cotangent)[0], want.T @ cotangent)
    with fwAD.dual_level():
        dual = fwAD.unpack_dual(call(fwAD.make_dual(x, tangent)))
        assert same_bits(dual.tangent, call(tangent))


@functions
def test_second_derivatives(function):
    """Of a loss that is not linear, by every nesting of the two modes."""
    call, x = flat(function)
    j = matrix(function)
    want = j.T @ torch.diag(6 * call(x)) @ j

    def loss(x):
        return (call(x) ** 3).sum()

    modes = (jacrev, jacfwd)
    for outer, inner in itertools.product(modes, modes):
        if function is scatter_in_place and outer is inner is jacfwd:
            continue  # torch refuses to write to the zero tangents it makes there
        assert torch.allclose(outer(inner(loss))(x), want)
    assert torch.allclose(hessian(loss)(x), want)
    assert torch.allclose(torch.autograd.functional.hessian(loss, x), want)
    old = {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}
    assert torch.allclose(torch.autograd.functional.hessian(loss, x, **old), want)
    v = torch.randn_like(x)
    for product in (
        jvp(grad(loss), (x,), (v,))[1],
        vjp(grad(loss), x)[1](v)[0],
        grad(lambda x: (grad(loss)(x) * v).sum())(x),
        grad(lambda x: jvp(loss, (x,), (v,))[1])(x),
    ):
        assert torch.allclose(product, want @ v)


@functions
def test_vmap_and_grad_in_each_other(function):
    call, _ = flat(function)
    xs = torch.stack([flat(function)[1] for _ in range(3)])

    def loss(x):
        return (call(x) ** 3).sum()

    each = torch.stack([grad(loss)(x) for x in xs])
    assert torch.allclose(vmap(grad(loss))(xs), each)
    assert torch.allclose(grad(lambda xs: vmap(loss)(xs).sum())(xs), each)
    deep = xs.reshape(3, 1, -1).expand(3, 2, -1)
    want = each.reshape(3, 1, -1).expand(3, 2, -1)
    assert torch.allclose(vmap(vmap(grad(loss)))(deep), want)
    assert torch.allclose(vmap(jacrev(call))(xs), matrix(function).expand(3, -1, -1))
    assert torch.allclose(vmap(jacfwd(call))(xs), matrix(function).expand(3, -1, -1))
    _, pushed = jvp(vmap(call), (xs,), (xs,))
    assert torch.allclose(pushed, vmap(call)(xs))


@functions
def test_ordinary_leaves_seen_from_inside_a_transform(function):
    call, x = flat(function)
    x.requires_grad_()
    out = vmap(lambda scale: call(x) * scale)(torch.arange(3.0).double())
    out.sum().backward()
    assert torch.allclose(x.grad, 3 * matrix(function).sum(0))


@functions
def test_functionalize_raises(function):
    """torch implements it for no autograd.Function."""
    call, x = flat(function)
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.func.functionalize(call)(x)


def test_raw_in_place_is_refused_under_transforms():
    def write(tensor, updates):
        ops.tensor_scatter_update_(tensor, ROWS[:3], updates)
        return tensor

    tensor, updates = torch.zeros(3), torch.ones(3)
    for call in (
        lambda: grad(lambda u: write(tensor, u).sum())(updates),
        lambda: jvp(lambda u: write(tensor, u), (updates,), (updates,)),
        lambda: vmap(lambda u: write(tensor, u))(updates.expand(2, 3)),
    ):
        with pytest.raises(NotImplementedError, match="has no gradient"):
            call()
    with fwAD.dual_level():
        dual = fwAD.make_dual(updates, updates)
        with pytest.raises(NotImplementedError, match="has no gradient"):
            write(tensor, dual)
        write(tensor, updates)  # nothing here has a tangent
    assert tensor.tolist() == [1, 1, 0]


# ------------------------------------------------------------ faults inside


def under_vmap(tensor, indices, updates):
    batch = [x.expand(2, *x.shape) for x in (tensor, indices, updates)]
    return vmap(ops.tensor_scatter_update)(*batch)


def under_grad(tensor, indices, updates):
    def loss(u):
        return ops.tensor_scatter_update(tensor, indices, u).sum()

    return grad(loss)(updates)


def under_jvp(tensor, indices, updates):
    def call(u):
        return ops.tensor_scatter_update(tensor, indices, u)

    return jvp(call, (updates,), (updates,))


@pytest.mark.parametrize("call", [under_vmap, under_grad, under_jvp])
def test_faults_are_those_of_one_example(call):
    """A batching rule folds the arguments; the checks come first."""
    for args in [
        (torch.zeros(3), ROWS[:, :0], torch.zeros(6, 3)),  # no coordinate at all
        (torch.zeros(3), ROWS, torch.zeros(5)),
        (torch.zeros(3), PLACES, torch.zeros(6)),
    ]:
        with pytest.raises(ValueError) as want:
            ops.tensor_scatter_update(*args)
        with pytest.raises(ValueError) as got:
            call(*args)
        assert str(got.value) == str(want.value)


def test_batched_gradients_of_batched_indices_raise():
    """The vmap of is_grads_batched takes no batch of indices; it does not guess."""
    from torch._vmap_internals import _vmap

    batch = FIRST.expand(2, -1, -1)
    with pytest.raises(NotImplementedError, match="only values can be batched"):
        _vmap(lambda i: ops.sparse_concat([i], [torch.ones(4)], [2, 3], 0))(batch)


# ---------------------------------------------------------------- compiled


def pushed_by_dual_level(function, x, tangent):
    with fwAD.dual_level():
        return fwAD.unpack_dual(function(fwAD.make_dual(x, tangent))).tangent


COMPILED = {
    "dual-level": pushed_by_dual_level,
    "jvp": lambda f, x, v: jvp(f, (x,), (v,)),
    "grad": lambda f, x, v: grad(lambda x: (f(x) ** 3).sum())(x),
    "vmap": lambda f, x, v: vmap(f)(torch.stack([x, v])),
    "vmap-of-grad": lambda f, x, v: vmap(grad(lambda x: (f(x) ** 3).sum()))(
        torch.stack([x, v])
    ),
    "jacfwd": lambda f, x, v: jacfwd(f)(x),
}


@pytest.mark.usefixtures("fresh_compile")
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("transform", COMPILED)
@pytest.mark.parametrize(
    "function", [concat_raw, concat_triples, scatter_raw, scatter_in_place]
)
def test_transforms_inside_compiled_code(function, transform, backend):
    call, x = flat(function)
    tangent = torch.randn_like(x)

    def program(x, tangent):
        return COMPILED[transform](call, x, tangent)

    got = torch.compile(program, fullgraph=True, backend=backend)(x, tangent)
    torch.testing.assert_close(got, program(x, tangent), rtol=0, atol=0)
