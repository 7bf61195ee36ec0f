"""Losses for networks equal the losses on NumPy arrays; half precision, one class, memory, state, errors."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings

from helpers.loss_cases import generic_sample, samples
from helpers.network_losses import every_pair, one_of_each
from rocmax.losses import WindowPairs

torch = pytest.importorskip("torch")

from rocmax.torch import AUCLoss, PartialAUCLoss, PrecisionAtKLoss, StratifiedBatchSampler  # noqa: E402

# Most batches of these tests are smaller than anybody would train on; tests of the warnings record them.
pytestmark = [pytest.mark.filterwarnings(f"ignore:.*{text}:UserWarning") for text in ("got .* positives", "gradient")]


def value_and_gradient(loss, scores, y, weight=None, dtype=torch.float64):
    leaf = torch.tensor(np.asarray(scores), dtype=dtype, requires_grad=True)
    value = loss(leaf, torch.tensor(np.asarray(y)), None if weight is None else torch.tensor(np.asarray(weight)))
    value.backward()
    return value.item(), leaf.grad.double().numpy()


# The same numbers as rocmax.losses


def assert_equal_to_twin(pair, y, weight, scores, dtype=torch.float64, tol=1e-9):
    expected, coefficients = pair.twin.bind(y, weight).value_and_gradient(scores)
    value, gradient = value_and_gradient(pair.module(), scores, y, weight, dtype)
    assert value == pytest.approx(expected, rel=tol, abs=tol)
    np.testing.assert_allclose(gradient, coefficients, rtol=tol, atol=tol * (1 + np.abs(coefficients).max()))


@every_pair
def test_values_and_gradients_equal_those_on_numpy_arrays(pair):
    for seed, (m, n) in enumerate([(7, 13), (1, 5), (6, 1), (40, 300), (300, 40)]):
        rng = np.random.default_rng(seed)
        for weighted in (False, True):
            y, weight, scores = generic_sample(rng, m, n, weighted)
            assert_equal_to_twin(pair, y, weight, scores)
        y, weight, scores = generic_sample(rng, m, n)
        weight = rng.integers(0, 3, y.size).astype(float)
        weight[[np.argmax(y), np.argmin(y)]] = 1.0
        assert_equal_to_twin(pair, y, weight, scores)
        assert_equal_to_twin(pair, y, None, 100.0 * scores)
        single = scores.astype(np.float32).astype(float)
        assert_equal_to_twin(pair, y, None, single, dtype=torch.float32, tol=1e-6)


@one_of_each
@given(sample=samples(scales=(0.0, 2.0**-10, 1.0, 1.0, 8.0, 2.0**20)))
@settings(max_examples=40, deadline=None)
def test_ties_and_kinks(pair, sample):
    y, weight, scores = sample
    assert_equal_to_twin(pair, y, weight, scores, tol=1e-6)


@one_of_each
def test_the_order_of_the_rows_changes_nothing(pair):
    rng = np.random.default_rng(3)
    y, weight, scores = generic_sample(rng, 12, 40, weighted=True)
    scores = np.round(4 * scores) / 4
    order = rng.permutation(y.size)
    value, gradient = value_and_gradient(pair.module(), scores, y, weight)
    moved, moved_gradient = value_and_gradient(pair.module(), scores[order], y[order], weight[order])
    assert moved == pytest.approx(value, abs=1e-12)
    np.testing.assert_allclose(moved_gradient, gradient[order], atol=1e-9)


@one_of_each
def test_gradients_by_finite_differences(pair):
    y, weight, scores = generic_sample(np.random.default_rng(5), 9, 25, weighted=True)
    loss, label, weight = pair.module(), torch.tensor(y), torch.tensor(weight)
    leaf = torch.tensor(scores, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s: loss(s, label, weight), (leaf,), eps=1e-7, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "backend"),
    [
        (PartialAUCLoss(max_fpr=0.3, min_tpr=0.5, memory=16), "aot_eager"),
        (AUCLoss(), "aot_eager"),
        # Its bisection is unrolled: what takes time is the tracing, so it is traced only.
        (PrecisionAtKLoss(0.25, memory=16), "eager"),
    ],
    ids=repr,
)
def test_the_whole_graph_is_compiled(loss, backend):
    y, _, scores = generic_sample(np.random.default_rng(0), 9, 25)
    plain = copy.deepcopy(loss).double()
    torch.compiler.reset()  # the limit on recompilations is that of all losses together
    compiled = torch.compile(copy.deepcopy(plain), fullgraph=True, backend=backend)
    for _ in range(2):
        expected, coefficients = value_and_gradient(plain, scores, y)
        value, gradient = value_and_gradient(compiled, scores, y)
        assert value == pytest.approx(expected, abs=1e-12)
        np.testing.assert_allclose(gradient, coefficients, atol=1e-12)


@pytest.mark.slow
@one_of_each
def test_large_batches_need_no_table_of_pairs(pair):
    # 10^10 pairs: a table of them would be 80 GB.
    y, _, scores = generic_sample(np.random.default_rng(0), 100_000, 100_000)
    assert_equal_to_twin(pair, y, None, scores, tol=1e-7)


@one_of_each
@pytest.mark.parametrize("memory", [0, 16])
def test_the_host_never_looks_at_a_value(pair, memory):
    # Tensors on "meta" have shapes and no values: reading one on the host is an error.
    loss = pair.module(memory=memory).to("meta")
    leaf = torch.zeros(20, device="meta", requires_grad=True)
    value = loss(leaf, torch.zeros(20, dtype=torch.int64, device="meta"), torch.ones(20, device="meta"))
    value.backward()
    assert value.shape == ()
    assert leaf.grad.shape == (20,)


# Types and shapes


@one_of_each
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_more(pair, dtype):
    y, _, scores = generic_sample(np.random.default_rng(1), 30, 200)
    leaf = torch.tensor(scores, dtype=dtype, requires_grad=True)
    value = pair.module()(leaf, torch.tensor(y))
    value.backward()
    assert value.dtype == torch.float32
    assert leaf.grad.dtype == dtype
    expected, coefficients = value_and_gradient(pair.module(), leaf.detach().double().numpy(), y)
    assert value.item() == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(leaf.grad.double().numpy(), coefficients, rtol=1e-2, atol=1e-6)


@one_of_each
def test_autocast(pair):
    torch.manual_seed(0)
    net, rows = torch.nn.Linear(5, 1), torch.randn(64, 5)
    label = (torch.arange(64) % 4 == 0)[:, None]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = net(rows)
        value = pair.module()(scores, label)
    assert scores.dtype == torch.bfloat16
    assert value.dtype == torch.float32
    assert value.item() == pair.module()(scores.detach().float(), label).item()
    value.backward()
    assert torch.isfinite(net.weight.grad).all()
    assert net.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("label_type", [torch.bool, torch.int64, torch.uint8, torch.int8, torch.float32, torch.float16])
@pytest.mark.parametrize("columns", [(False, False), (True, False), (False, True), (True, True)])
def test_labels_of_every_type_and_shape(label_type, columns):
    y, _, scores = generic_sample(np.random.default_rng(1))
    score, label = torch.tensor(scores), torch.tensor(y).to(label_type)
    score, label = (t[:, None] if column else t for t, column in zip((score, label), columns, strict=True))
    value = PartialAUCLoss(max_fpr=0.3)(score, label)
    twin = WindowPairs("squared_hinge", max_fpr=0.3, soft_tail=True)
    assert value.item() == pytest.approx(twin.bind(y).value_and_gradient(scores)[0])
    assert value.item() == PartialAUCLoss(max_fpr=0.3)(score, label, torch.ones(y.size, 1)).item()


@one_of_each
@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("size", [0, 1, 2, 7])
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e30])
def test_one_class_gives_zero_and_a_graph(pair, label, size, scale):
    leaf = (scale * torch.randn(size, generator=torch.Generator().manual_seed(0))).requires_grad_()
    value = pair.module()(leaf, torch.full((size,), label))
    value.backward()
    assert value.item() == 0.0
    assert value.dtype == torch.float32
    assert leaf.grad.abs().sum() == 0.0


@one_of_each
def test_rows_without_weight_are_absent(pair):
    leaf = torch.tensor([2.0, np.nan, 1.0, np.inf], requires_grad=True)
    label = torch.tensor([1, 0, 0, 1])
    value = pair.module()(leaf, label, torch.tensor([1.0, 0.0, 1.0, 0.0]))
    assert value.item() == pytest.approx(pair.module()(torch.tensor([2.0, 1.0]), torch.tensor([1, 0])).item())
    value.backward()
    assert torch.isfinite(leaf.grad).all()
    zero = pair.module()(leaf, label, torch.zeros(4))
    zero.backward()
    assert zero.item() == 0.0


@one_of_each
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_give_nan_and_no_gradient_that_looks_valid(pair, bad):
    leaf = torch.tensor([bad, 1.0, 0.5, 0.0], requires_grad=True)
    loss = pair.module(memory=3)
    value = loss(leaf, torch.tensor([0, 1, 0, 1]))
    value.backward()
    assert torch.isnan(value)
    assert torch.isnan(leaf.grad).any()
    assert all(torch.isfinite(buffer).all() for buffer in loss.buffers())


@one_of_each
def test_scores_far_apart_cost_no_digits(pair):
    y, _, scores = generic_sample(np.random.default_rng(2), 20, 60)
    far = scores + np.where(np.arange(y.size) % 3 == 0, 2.0**30, 0.0)
    assert_equal_to_twin(pair, y, None, far, tol=1e-6)


# Memory


def batches(count=4, size=24, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        y = rng.permutation(np.arange(size) % 4 == 0)
        yield y, rng.standard_normal(size) + y


@one_of_each
def test_the_first_batch_has_nothing_to_remember(pair):
    y, scores = next(batches())
    value, gradient = value_and_gradient(pair.module(), scores, y)
    remembered, remembered_gradient = value_and_gradient(pair.module(memory=50).double(), scores, y)
    assert remembered == pytest.approx(value, abs=1e-12)
    np.testing.assert_allclose(remembered_gradient, gradient, atol=1e-12)


@one_of_each
def test_a_memory_of_copies_of_the_batch_changes_nothing(pair):
    y, scores = next(batches())
    loss = pair.module(memory=200).double()
    first = value_and_gradient(loss, scores, y)
    for _ in range(3):
        value, gradient = value_and_gradient(loss, scores, y)
        assert value == pytest.approx(first[0], abs=1e-9)
        np.testing.assert_allclose(gradient, first[1], atol=1e-9)


@one_of_each
def test_the_value_is_that_of_the_batch_and_the_remembered_rows(pair):
    loss, seen = pair.module(memory=1000).double(), ([], [])
    for y, scores in batches():
        seen[0].extend(y)
        seen[1].extend(scores)
        value, _ = value_and_gradient(loss, scores, y)
        expected, _ = pair.twin.bind(np.array(seen[0])).value_and_gradient(np.array(seen[1]))
        assert value == pytest.approx(expected, abs=1e-9)


def test_the_oldest_scores_of_each_class_are_forgotten():
    loss, positives, negatives = PartialAUCLoss(max_fpr=0.5, memory=15).double(), [], []
    for y, scores in batches():
        value_and_gradient(loss, scores, y)
        positives, negatives = [*scores[y], *positives][:15], [*scores[~y], *negatives][:15]
        held = [loss.memory_score[weight > 0].tolist() for weight in (loss.memory_positive, loss.memory_negative)]
        assert held == [positives, negatives]
    loss.clear_memory()
    assert all(buffer.abs().sum() == 0 for buffer in loss.buffers())


def test_scores_are_forgotten_after_their_number_of_steps():
    loss, seen = PartialAUCLoss(max_fpr=0.5, memory=1000, memory_steps=2).double(), []
    for y, scores in batches(5):
        seen = [(y, scores), *seen][:3]
        value, _ = value_and_gradient(loss, scores, y)
        all_y, all_scores = (np.concatenate(column) for column in zip(*seen, strict=True))
        expected, _ = value_and_gradient(PartialAUCLoss(max_fpr=0.5), all_scores, all_y)
        assert value == pytest.approx(expected, abs=1e-9)
    # A batch of one class counts as a step, too.
    for _ in range(2):
        value_and_gradient(loss, scores[~y], y[~y])
    assert loss.memory_positive.sum() == 0


def test_decisions_remember_rows_in_the_proportions_of_the_classes():
    loss = PrecisionAtKLoss(None, memory=40).double()
    for y, scores in batches():
        value_and_gradient(loss, scores, y)
    assert loss.memory_score.numel() == 40
    assert loss.memory_positive.sum() == 10
    assert loss.memory_negative.sum() == 30


def test_weights_are_remembered():
    y, scores = next(batches())
    weight = np.random.default_rng(0).integers(0, 3, y.size).astype(float)
    loss = AUCLoss(memory=100).double()
    value_and_gradient(loss, scores, y, weight)
    assert loss.memory_positive.sum() == weight[y].sum()
    assert loss.memory_negative.sum() == weight[~y].sum()
    assert (loss.memory_score != 0).sum() == (weight > 0).sum()


def test_a_batch_of_one_class_meets_the_other_in_the_memory():
    loss = PartialAUCLoss(max_fpr=0.2, memory=50)
    y, scores = next(batches())
    value_and_gradient(loss, scores, y)
    value, gradient = value_and_gradient(loss, scores[~y], y[~y])
    assert value > 0
    assert gradient.max() > 0
    assert gradient.min() >= 0


def test_evaluation_neither_uses_nor_fills_the_memory():
    loss = PartialAUCLoss(max_fpr=0.2, memory=50)
    (y, scores), (other_y, other) = batches(2)
    value_and_gradient(loss, scores, y)
    before = copy.deepcopy(loss.state_dict())
    loss.eval()
    value, _ = value_and_gradient(loss, other, other_y)
    assert value == value_and_gradient(PartialAUCLoss(max_fpr=0.2), other, other_y)[0]
    assert all(torch.equal(before[name], buffer) for name, buffer in loss.state_dict().items())


def test_remembered_scores_keep_no_graph():
    loss = AUCLoss(memory=10)
    leaf = torch.randn(8, requires_grad=True)
    label = torch.arange(8) % 2
    first = loss(leaf, label)
    second = loss(2 * leaf, label)
    (first + second).backward()  # a buffer that changed under a graph would raise here
    assert not any(buffer.requires_grad for buffer in loss.buffers())


# State


@pytest.mark.parametrize("way", ["deepcopy", "pickle", "torch.save", "state_dict"])
@one_of_each
def test_copies_go_on_with_the_same_numbers(pair, way):
    loss = pair.module(memory=30)
    feed = list(batches())
    for y, scores in feed[:2]:
        value_and_gradient(loss, scores, y)
    if way == "deepcopy":
        other = copy.deepcopy(loss)
    elif way == "pickle":
        other = pickle.loads(pickle.dumps(loss))
    elif way == "torch.save":
        file = io.BytesIO()
        torch.save(loss.state_dict(), file)
        file.seek(0)
        other = pair.module(memory=30)
        other.load_state_dict(torch.load(file, weights_only=True))
    else:
        other = pair.module(memory=30)
        other.load_state_dict(loss.state_dict())
    assert repr(other) == repr(loss)
    for y, scores in feed[2:]:
        value, gradient = value_and_gradient(loss, scores, y)
        again, again_gradient = value_and_gradient(other, scores, y)
        assert again == value
        np.testing.assert_array_equal(again_gradient, gradient)


def test_the_memory_is_changed_in_place():
    # DataParallel's replica on the first device shares its storage with the module; another storage would be lost.
    loss = PartialAUCLoss(memory=8)
    places = [buffer.data_ptr() for buffer in loss.buffers()]
    loss = torch.nn.DataParallel(loss)
    loss(torch.randn(6), torch.arange(6) % 2)
    assert [buffer.data_ptr() for buffer in loss.buffers()] == places
    assert all(name.startswith("module.memory_") for name in loss.state_dict())
    assert PartialAUCLoss().state_dict() == {}
    assert list(loss.parameters()) == []


def test_the_parameters_are_shown():
    assert repr(PartialAUCLoss(0.0, 0.01, memory=8)) == (
        "PartialAUCLoss(min_fpr=0.0, max_fpr=0.01, min_tpr=0.0, soft_tail=None, memory=8, memory_steps=8)"
    )


@pytest.mark.parametrize("loss", [PartialAUCLoss(max_fpr=0.1, memory=64), AUCLoss(), PrecisionAtKLoss(0.05)], ids=repr)
def test_a_network_learns(loss):
    torch.manual_seed(0)
    rows = torch.randn(600, 4)
    label = (rows[:, 0] * rows[:, 1] > 0.8).float()
    net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.Adam([*net.parameters(), *loss.parameters()], lr=0.02)
    judge = copy.deepcopy(loss).eval()
    start = judge(net(rows), label).item()
    for step in range(200):
        part = torch.arange(600) % 4 == step % 4
        optimizer.zero_grad()
        loss(net(rows[part]), label[part]).backward()
        optimizer.step()
    assert judge(net(rows), label).item() < 0.5 * start


# Batches with enough positives


def rare(size=1000, seed=0):
    return torch.rand(size, generator=torch.Generator().manual_seed(seed)) < 0.03


def test_every_batch_has_its_positives_and_every_negative_is_drawn_once():
    y = rare()
    for positives, expected in [(24, 24), (0.25, 32), (1, 1), (0.001, 1), (127, 127)]:
        sampler = StratifiedBatchSampler(y, 128, positives=positives)
        drawn = [torch.tensor(rows) for rows in sampler]
        assert len(drawn) == len(sampler)
        assert {int(y[rows].sum()) for rows in drawn} == {expected}
        assert max(rows.numel() for rows in drawn) - min(rows.numel() for rows in drawn) <= 1
        assert max(rows.numel() for rows in drawn) <= 128
        times = torch.bincount(torch.cat(drawn), minlength=y.numel())
        assert times[~y].unique().tolist() == [1]
        assert times[y].max() - times[y].min() <= 1
        assert sampler.positive_weight * times[y].sum() == pytest.approx(y.sum().item())


def test_a_generator_makes_the_batches_reproducible_and_epochs_differ():
    y = rare()
    first, second = (StratifiedBatchSampler(y, 64, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1))
    epochs = [list(first), list(first)]
    assert epochs == [list(second), list(second)]
    assert epochs[0] != epochs[1]
    without = StratifiedBatchSampler(y, 64)
    torch.manual_seed(0)
    expected = list(without)
    assert list(without) != expected
    torch.manual_seed(0)
    assert list(without) == expected


def test_workers_of_a_loader_get_the_same_batches():
    y = rare(300)
    rows = torch.utils.data.TensorDataset(torch.arange(300), y)
    found = []
    for workers in (0, 2):
        sampler = StratifiedBatchSampler(y.numpy(), 32, generator=torch.Generator().manual_seed(0))
        loader = torch.utils.data.DataLoader(rows, batch_sampler=sampler, num_workers=workers)
        found.append([(index.tolist(), label.sum().item()) for index, label in loader])
    assert found[0] == found[1]
    assert {count for _, count in found[0]} == {8}


def test_stratified_batches_estimate_the_gradient_of_all_rows():
    # A share of positives that is not that of the data: with the whole window, the mean over the batches is the loss of
    # all rows in expectation.
    torch.manual_seed(0)
    y = rare(400)
    scores = (torch.randn(400) / 8 + y).double()
    whole = AUCLoss()(scores, y).item()
    sampler = StratifiedBatchSampler(y, 40, generator=torch.Generator().manual_seed(0))
    values = [AUCLoss()(scores[rows], y[rows]).item() for _ in range(30) for rows in sampler]
    assert np.mean(values) == pytest.approx(whole, abs=4 * np.std(values) / len(values) ** 0.5)


@pytest.mark.parametrize(
    ("arguments", "more", "message"),
    [
        (([0, 1, 2], 2), {}, "labels of a sampler are boolean or 0/1; got values such as 2"),
        (([0, 0], 2), {}, "labels of a sampler need both classes; got 0 positives and 2 negatives"),
        (([[0, 1]], 2), {}, r"labels need shape \(n,\) or \(n, 1\)"),
        (([0, 1], 1), {}, "batch_size must be an integer >= 2"),
        (
            ([0, 1], 4),
            {"positives": 4},
            "positives must leave a batch of 4 rows with .* of each class; got 4",
        ),
        (([0, 1], 4), {"positives": 0.99}, "positives must leave a batch of 4 rows"),
        (
            ([0, 1], 4),
            {"positives": 1.5},
            "positives must be .* or a share above 0 and below 1; got 1.5",
        ),
        (([0, 1], 4), {"positives": True}, "positives must be an integer"),
    ],
)
def test_samplers_that_cannot_be(arguments, more, message):
    with pytest.raises(ValueError, match=message):
        StratifiedBatchSampler(*arguments, **more)


# Warnings


def batch(m, n, far=0.0):
    torch.manual_seed(0)
    y = torch.arange(m + n) < m
    return torch.randn(m + n) - far * y, y


@pytest.mark.parametrize(
    ("loss", "m", "n", "message"),
    [
        (
            PartialAUCLoss(max_fpr=0.01),
            4,
            60,
            "0.6 of a negative .* so at least 100 negatives; got 4 positi",
        ),
        (PartialAUCLoss(0.02, 0.03), 4, 60, "from 0.02 to 0.03 hold 0.6 of a negative"),
        (PartialAUCLoss(max_fpr=0.5, min_tpr=0.9), 4, 60, "0.4 of a positive and need one, so at least 10 positives"),
        (PartialAUCLoss(max_fpr=0.5), 0, 64, "a batch without positives has no loss .* Draw batches with .*Stratified"),
        (AUCLoss(), 9, 0, "a batch without negatives has no loss and no gradient; got 9 positives and 0 negatives"),
        (AUCLoss(memory=4), 9, 0, "got 9 positives and 0 negatives, remembered ones included"),
        (PrecisionAtKLoss(0.01), 3, 40, "k=0.01 holds 0.43 of a row and needs one, so 100 rows"),
        (PrecisionAtKLoss(None), 0, 5, "a batch without positives"),
    ],
    ids=repr,
)
def test_batches_with_too_few_rows_warn_once(loss, m, n, message):
    rows = batch(m, n)
    with pytest.warns(UserWarning, match=message):
        loss(*rows)
    with warnings.catch_warnings(action="error"):
        loss(*rows)


@pytest.mark.parametrize("width", [0.01, 1e-6])
def test_a_bounded_loss_without_a_gradient_warns(width):
    loss = PrecisionAtKLoss(0.2, width=width)
    scores, y = batch(40, 160, far=20.0)
    with pytest.warns(UserWarning, match="the gradient vanishes: at least half of the measure is lost"):
        loss(scores, y)
    with warnings.catch_warnings(action="error"):
        value, gradient = value_and_gradient(loss, scores, y)
    assert value > 0.5
    assert np.abs(gradient).sum() < 0.1 / width


@pytest.mark.filterwarnings("error")
def test_batches_that_are_large_enough_do_not_warn():
    scores, y = batch(40, 160)
    for loss in (PartialAUCLoss(max_fpr=0.01), PartialAUCLoss(max_fpr=0.05, min_tpr=0.7), AUCLoss()):
        loss(scores, y)
    # At their best these losses have no gradient, and no loss either.
    done = 50.0 * y
    for loss in (PrecisionAtKLoss(0.5), PrecisionAtKLoss(None)):
        assert value_and_gradient(loss, done, y)[0] <= 0.6
    # Weights say how much rows count, not how many there are.
    AUCLoss()(scores, y, torch.full((200,), 1e-6))
    PartialAUCLoss(max_fpr=0.1)(scores, y, torch.full((200,), 1e-6))
    # After the training nobody looks at gradients.
    PrecisionAtKLoss(0.2).eval()(*batch(5, 5, far=20.0))


# Errors


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PartialAUCLoss(0.3, 0.2), "0 <= min_fpr < max_fpr <= 1"),
        (lambda: PartialAUCLoss(0.1, 0.2, soft_tail=True), "soft_tail needs min_fpr=0; got min_fpr=0.1"),
        (
            lambda: AUCLoss(memory=9, memory_steps=0),
            "memory_steps must be a number of training steps",
        ),
        (lambda: PartialAUCLoss(memory=-1), "memory must be a number of rows, an integer >= 0; got -1"),
        (lambda: AUCLoss(memory=0.5), "memory must be a number of rows"),
        (lambda: PrecisionAtKLoss(0), "k as a count must be at least 1"),
        (lambda: PrecisionAtKLoss(5, memory=10), "k must be a fraction"),
        (lambda: PrecisionAtKLoss(0.5, width=0.0), "width must be a finite number > 0; got 0.0"),
        (lambda: PrecisionAtKLoss(0.5, width=-1.0), "width must be a finite number > 0"),
    ],
)
def test_parameters_that_cannot_be(make, message):
    with pytest.raises(ValueError, match=message):
        make()


GOOD = torch.tensor([1.0, 0.0, 2.0]), torch.tensor([1, 0, 0])


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (([1.0], GOOD[1]), TypeError, "scores need to be a torch.Tensor; got list"),
        ((GOOD[0], np.array([1, 0, 0])), TypeError, "labels need to be a torch.Tensor; got ndarray"),
        ((GOOD[1], GOOD[1]), TypeError, "scores need a floating-point tensor; got torch.int64"),
        ((torch.zeros(3, 2), GOOD[1]), ValueError, r"scores need shape \(n,\) or \(n, 1\).*got \(3, 2\)"),
        ((torch.tensor(1.0), GOOD[1]), ValueError, r"scores need shape .*got \(\)"),
        ((GOOD[0], torch.tensor([1, 0])), ValueError, "labels need one entry per score, 3; got 2"),
        ((GOOD[0], torch.tensor([1, -1, -1])), ValueError, "labels .* boolean or 0/1; got values such as -1"),
        ((GOOD[0], torch.tensor([1.0, 0.5, 0])), ValueError, "got values such as 0.5"),
        ((GOOD[0], torch.tensor([1.0, np.nan, 0])), ValueError, "got values such as nan"),
        ((GOOD[0], torch.ones(3, dtype=torch.complex64)), TypeError, "labels need to be boolean or 0/1"),
        ((*GOOD, torch.tensor([1.0, -1.0, 1.0])), ValueError, "sample_weight must be finite and >= 0; got -1"),
        ((*GOOD, torch.tensor([1.0, np.inf, 1.0])), ValueError, "sample_weight must be finite and >= 0; got inf"),
        ((GOOD[0], GOOD[1].to("meta")), ValueError, "labels need to be on the device of the scores, cpu; got meta"),
    ],
)
def test_batches_that_cannot_be(arguments, kind, message):
    with pytest.raises(kind, match=message):
        PartialAUCLoss()(*arguments)


def test_more_rows_at_the_top_than_there_are():
    with pytest.raises(ValueError, match="k=4 rows at the top need a batch of at least that weight; got 3"):
        PrecisionAtKLoss(4)(*GOOD)


def test_a_memory_on_another_device():
    with pytest.raises(ValueError, match=r"the memory of the loss is on meta, the scores on cpu; move the loss"):
        PartialAUCLoss(memory=4).to("meta")(*GOOD)


def test_without_torch_the_import_names_the_extra():
    code = """if True:
        import sys
        sys.modules["torch"] = None
        import rocmax.losses
        try:
            import rocmax.torch
        except ImportError as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert "pip install 'rocmax[torch]'" in done.stdout
