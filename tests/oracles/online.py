"""Plain versions of the online methods of Kar, Narasimhan and Jain (2014), for tiny samples."""

import numpy as np


def pairs(X, y):
    """Return the differences of every positive and every negative."""
    return np.array([p - n for p in X[y == 1] for n in X[y == 0]]).reshape(-1, X.shape[1])


def sum_of_hinges(w, X, y):
    """Return the sum over all pairs; zero without one of the classes."""
    return sum(max(0.0, 1.0 - d @ w) for d in pairs(X, y))


def smallest(f, low, high):
    """Return the minimizer of a convex function on an interval, by golden sections."""
    ratio = (np.sqrt(5.0) - 1.0) / 2.0
    a, b = low, high
    c, d = b - ratio * (b - a), a + ratio * (b - a)
    at_c, at_d = f(c), f(d)
    for _ in range(60):
        if at_c <= at_d:
            b, d, at_d = d, c, at_c
            c = b - ratio * (b - a)
            at_c = f(c)
        else:
            a, c, at_c = c, d, at_d
            d = a + ratio * (b - a)
            at_d = f(d)
    return (a + b) / 2.0


def best_in_ball(X, y, eta, radius):
    """Return the minimizer of ``sum_of_hinges + eta / 2 |w|^2`` in the ball, for two features, by nested searches."""
    D = pairs(X, y)

    def objective(u, v):
        return np.maximum(0.0, 1.0 - D[:, 0] * u - D[:, 1] * v).sum() + 0.5 * eta * (u * u + v * v)

    def second(u):
        reach = np.sqrt(max(radius**2 - u * u, 0.0))
        return smallest(lambda v: objective(u, v), -reach, reach)

    u = smallest(lambda u: objective(u, second(u)), -radius, radius)
    return np.array([u, second(u)])


def follow_the_leader(batches, eta, radius):
    """Return the models after each batch and the regret after each batch, for the AUC with the hinge loss."""
    d = batches[0][0].shape[1]
    models, regret, played = [np.zeros(d)], [], 0.0
    X, y = np.empty((0, d)), np.empty(0)
    for new_X, new_y in batches:
        w = models[-1]
        before = sum_of_hinges(w, X, y)
        X, y = np.vstack([X, new_X]), np.concatenate([y, new_y])
        played += sum_of_hinges(w, X, y) - before
        models.append(best_in_ball(X, y, eta, radius))
        best = sum_of_hinges(best_in_ball(X, y, 0.0, radius), X, y)
        regret.append((played - best) / len(pairs(X, y)))
    return models, np.array(regret)


def mini_batches(batches, gradient, eta, radius):
    """Return the iterates and their mean: ``w <- P(w - eta / sqrt(e) g)``, one step per batch, ``e = 1, 2, ...``."""
    w = np.zeros(batches[0][0].shape[1])
    iterates = []
    for e, (X, y) in enumerate(batches, start=1):
        w = w - eta / np.sqrt(e) * gradient(w, X, y)
        norm = np.linalg.norm(w)
        if norm > radius:
            w = w * radius / norm
        iterates.append(w)
    return np.array(iterates), np.mean(iterates, axis=0)
