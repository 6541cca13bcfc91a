"""Layers on tensors: gradients, precision, vmap, torch.compile, autocast, errors."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from fginfer import ModelError, Potts, SettingsError, nn

torch = pytest.importorskip("torch")

LOSSES = ["hinge", "perceptron", "perturbed_loss", "sparse_loss", "crf_loss"]


@pytest.fixture(scope="module")
def given():
    torch.manual_seed(0)
    layer = nn.Layer(nn.Structure.grid((2, 3), 3))
    unaries = torch.randn(3, 6, 3, dtype=torch.float64, requires_grad=True)
    table = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    return layer, unaries, table, torch.randint(0, 3, (3, 6))


def call(layer, name: str, truth, *scores, **more):
    more |= {"seed": 3} if name == "perturbed_loss" else {}
    return getattr(layer, name)(truth, *scores, **more)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_pass_gradcheck_and_agree_with_numpy(given, name: str):
    layer, unaries, table, truth = given
    assert torch.autograd.gradcheck(lambda u, t: call(layer, name, truth, u, t), (unaries, table), fast_mode=True)
    arrays = call(layer, name, truth.numpy(), unaries.detach().numpy(), table.detach().numpy())
    np.testing.assert_allclose(call(layer, name, truth, unaries, table).detach(), arrays.values)


@pytest.mark.parametrize("name", ["sparsemap", "marginals", "log_partition"])
def test_maps_pass_gradcheck(given, name: str):
    layer, unaries, table, _ = given
    assert torch.autograd.gradcheck(getattr(layer, name), (unaries, table), fast_mode=True)


def test_log_partition_has_second_derivatives(given):
    layer, unaries, table, _ = given
    assert torch.autograd.gradgradcheck(layer.log_partition, (unaries, table), fast_mode=True)


@pytest.mark.parametrize("name", ["hinge", "perturbed_loss", "sparse_loss"])
def test_second_derivatives_that_would_be_wrong_are_refused(given, name: str):
    layer, unaries, table, truth = given
    loss = call(layer, name, truth, unaries, table).sum()
    (first,) = torch.autograd.grad(loss, unaries, create_graph=True)
    with pytest.raises(SettingsError, match="no second derivatives"):
        torch.autograd.grad((first**2).sum(), unaries)


@pytest.mark.parametrize("name", ["hinge", "sparse_loss", "crf_loss"])
def test_weights_pass_gradcheck(name: str):
    torch.manual_seed(1)
    layer = nn.Layer(nn.Structure.grid((2, 3), 3, tables=[Potts(0, -1)]))
    unaries = torch.randn(2, 6, 3, dtype=torch.float64, requires_grad=True)
    weights, truth = torch.rand(2, 7, dtype=torch.float64, requires_grad=True), torch.randint(0, 3, (2, 6))
    f = lambda u, w: call(layer, name, truth, u, weights=w)  # noqa: E731
    assert torch.autograd.gradcheck(f, (unaries, weights), fast_mode=True)


def test_interpolated_gradients_are_those_of_numpy(given):
    layer, unaries, table, _ = given
    own = unaries.detach().clone().requires_grad_()
    more = {"samples": 5, "seed": 1, "strength": 3.0}
    answer = layer.perturbed(own, table, **more)
    g = torch.randn_like(answer)
    (answer * g).sum().backward()
    arrays = layer.perturbed(unaries.detach().numpy(), table.detach().numpy(), **more)
    np.testing.assert_allclose(answer.detach(), arrays.marginals)
    np.testing.assert_allclose(own.grad, arrays.backward(g.numpy()).unaries)
    assert set(layer.blackbox(own, table).unique().tolist()) == {0.0, 1.0}


def test_labels_are_whole_numbers_without_a_gradient(given):
    layer, unaries, table, _ = given
    found = layer.labels(unaries, table)
    assert (found.dtype, found.requires_grad) == (torch.int64, False)
    np.testing.assert_array_equal(found, layer.labels(unaries.detach().numpy(), table.detach().numpy()))


def test_vmap_is_a_batch(given):
    layer, unaries, table, truth = given
    mapped = torch.vmap(lambda u, y: layer.hinge(y, u, table))(unaries, truth)
    torch.testing.assert_close(mapped, layer.hinge(truth, unaries, table))
    each = table.detach() + torch.randn(3, 3, 3, dtype=torch.float64)
    mapped = torch.vmap(layer.sparsemap)(unaries, each)
    torch.testing.assert_close(mapped, torch.stack([layer.sparsemap(u, t) for u, t in zip(unaries, each, strict=True)]))


def test_sums_can_be_mapped_and_differentiated_as_functions(given):
    layer, unaries, table, truth = given
    torch.testing.assert_close(
        torch.vmap(lambda u, y: layer.crf_loss(y, u, table))(unaries, truth), layer.crf_loss(truth, unaries, table)
    )
    for of in (layer.marginals, layer.log_partition):
        torch.testing.assert_close(torch.vmap(lambda u, of=of: of(u, table))(unaries), of(unaries, table))
    each = torch.vmap(torch.func.grad(lambda u, y: layer.crf_loss(y, u, table)))(unaries, truth)
    torch.testing.assert_close(each, torch.autograd.grad(layer.crf_loss(truth, unaries, table).sum(), unaries)[0])
    with pytest.raises(ModelError, match="labels"):
        torch.vmap(lambda u, y: layer.crf_loss(y, u, table))(unaries, truth + 9)


@pytest.mark.parametrize("name", ["hinge", "sparse_loss", "crf_loss", "sparsemap"])
def test_functions_are_differentiated_backwards_and_not_forwards(given, name: str):
    layer, unaries, table, truth = given

    def of(u, t, y):
        return layer.sparsemap(u, t).square().sum() if name == "sparsemap" else getattr(layer, name)(y, u, t)

    loss = sum(of(u, table, y) for u, y in zip(unaries, truth, strict=True))
    own, shared = torch.autograd.grad(loss, (unaries, table))
    u, t = unaries.detach(), table.detach()
    each, both = torch.vmap(torch.func.grad(of, (0, 1)), (0, None, 0))(u, t, truth)
    torch.testing.assert_close(each, own)
    torch.testing.assert_close(both.sum(0), shared)
    mapped = torch.func.grad(lambda t: torch.vmap(lambda u, y: of(u, t, y))(u, truth).sum())(t)
    torch.testing.assert_close(mapped, shared)
    if name != "crf_loss":  # torch differentiates that one itself
        with pytest.raises(SettingsError, match="forwards"):
            torch.func.jacfwd(lambda u: of(u, t, truth[0]))(u[0])


def test_compiled_code_has_the_operators_in_it(given):
    layer, unaries, table, truth = given

    def model(u, t):
        return layer.hinge(truth, 2 * u, t).sum() + layer.sparsemap(u, t).square().sum()

    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    a, b = unaries.detach().clone().requires_grad_(), unaries.detach().clone().requires_grad_()
    compiled(a, table).backward()
    model(b, table).backward()
    torch.testing.assert_close(a.grad, b.grad)


def test_single_precision_and_autocast(given):
    layer, unaries, table, truth = given
    linear = torch.nn.Linear(4, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = linear(torch.randn(3, 6, 4))
        loss = layer.hinge(truth, scores, table.float()) + layer.crf_loss(truth, scores, table.float())
        assert scores.dtype == torch.bfloat16
        assert loss.dtype == torch.float32
        loss.sum().backward()
    assert linear.weight.grad.isfinite().all()
    single = layer.sparsemap(unaries.detach().float(), table.detach().float())
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), layer.sparsemap(unaries, table).detach(), atol=1e-5, rtol=0)


def test_a_module_with_a_layer_can_be_copied_and_learns(given):
    _, unaries, _, truth = given

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.table = torch.nn.Parameter(torch.zeros(3)), torch.nn.Parameter(torch.zeros(3, 3))
            self.layer = nn.Layer(nn.Structure.grid((2, 3), 3))

        def forward(self, x, y):
            return self.layer.crf_loss(y, x + self.scale, self.table).mean()

    net = copy.deepcopy(Net())
    optimiser = torch.optim.SGD(net.parameters(), 0.2)
    first = net(unaries.detach().float(), truth)
    for _ in range(20):
        optimiser.zero_grad()
        net(unaries.detach().float(), truth).backward()
        optimiser.step()
    assert net(unaries.detach().float(), truth) < first - 0.1


def test_bad_tensors_say_what_is_wrong_and_the_layer_goes_on(given):
    layer, unaries, table, truth = given
    before = layer.hinge(truth, unaries, table)
    with pytest.raises(ModelError, match="another structure"):
        layer.hinge(truth, unaries[:, :4], table)
    with pytest.raises(ModelError, match="nan"):
        layer.hinge(truth, unaries * float("nan"), table)
    with pytest.raises(ModelError, match="NaN"):
        layer.crf_loss(truth, unaries * float("nan"), table)
    with pytest.raises(ModelError, match="labels must be whole numbers"):
        layer.hinge(truth[:, :2], unaries, table)
    with pytest.raises(ModelError, match="variable 0 has 3 labels"):
        layer.crf_loss(truth + 3, unaries, table)
    with pytest.raises(ModelError, match="no labeling"):
        layer.log_partition(unaries, torch.full((3, 3), -torch.inf, dtype=torch.float64))
    torch.testing.assert_close(layer.hinge(truth, unaries, table), before)
