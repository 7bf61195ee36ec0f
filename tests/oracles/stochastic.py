"""The update rules of the stochastic methods in plain Python, to be read next to the papers."""

import math

import numpy as np


def pair_rule(X, pairs, gamma, t0, rskip, askip, proximal, average_from=0):
    """Algorithm 1 of Khalid, Chitsaz and Ray (PSAM), or the gradient of their section III.A (ASAM).

    Returns every iterate and every average, after each step.
    """
    w, average, q = np.zeros(X.shape[1]), np.zeros(X.shape[1]), 0
    rcount, acount = rskip, askip
    trace = []
    for t, (i, j) in enumerate(pairs, start=1):
        x = X[i] - X[j]
        step = 1 / (gamma * (t + t0))
        if proximal:
            if x @ x > 0:
                zeta = (1 - w @ x) / (step * (x @ x))
                g = 0 if zeta <= 0 else -1 if zeta >= 1 else -zeta
                w = w - step * g * x
        else:
            z = w @ x
            slope = -1 if 1 - z >= 1 else 0 if 1 - z <= 0 else z - 1
            w = w - step * slope * x
        rcount -= 1
        if rcount <= 0:
            w = w - rskip / (t + t0) * w
            rcount = rskip
        acount -= 1
        if acount <= 0:
            acount = askip
            if t > average_from:
                average = (q * average + w) / (q + 1)
                q += 1
        trace.append((w.copy(), average.copy() if q else w.copy()))
    return trace


def saddle_rule(X, positive, rows, zeta, radius):
    """SOLAM of Ying, Wen and Lyu: returns every iterate and every weighted mean, after each step."""
    w, a, b, alpha, p = np.zeros(X.shape[1]), 0.0, 0.0, 0.0, 0.0
    mean, total, kappa = np.zeros(X.shape[1]), 0.0, 0.0
    trace = []
    for t, i in enumerate(rows, start=1):
        x, is_positive = X[i], bool(positive[i])
        p = ((t - 1) * p + is_positive) / t
        kappa = max(kappa, np.linalg.norm(x))
        step = zeta / math.sqrt(t)
        mean, total = (total * mean + step * w) / (total + step), total + step
        if is_positive:
            gradient = 2 * (1 - p) * (w @ x - a) * x - 2 * (1 + alpha) * (1 - p) * x
            for_a, for_b = -2 * (1 - p) * (w @ x - a), 0.0
            for_alpha = -2 * (1 - p) * (w @ x) - 2 * p * (1 - p) * alpha
        else:
            gradient = 2 * p * (w @ x - b) * x + 2 * (1 + alpha) * p * x
            for_a, for_b = 0.0, -2 * p * (w @ x - b)
            for_alpha = 2 * p * (w @ x) - 2 * p * (1 - p) * alpha
        w = w - step * gradient
        if np.linalg.norm(w) > radius:
            w = w * (radius / np.linalg.norm(w))
        a = float(np.clip(a - step * for_a, -radius * kappa, radius * kappa))
        b = float(np.clip(b - step * for_b, -radius * kappa, radius * kappa))
        alpha = float(np.clip(alpha + step * for_alpha, -2 * radius * kappa, 2 * radius * kappa))
        trace.append((w.copy(), mean.copy()))
    return trace


def reservoir_rule(X, positive, rows, draws, C, capacity, sequential):
    """OAM of Zhao, Jin, Yang and Hoi: returns the weights after each row, and the buffers at the end."""
    w = np.zeros(X.shape[1])
    buffers, seen = {False: [], True: []}, {False: 0, True: 0}
    trace = []
    for i, draw in zip(rows, draws, strict=True):
        own = bool(positive[i])
        y = 1 if own else -1
        largest = C * max(1, seen[not own] / capacity) / 2
        if sequential:
            for j in buffers[not own]:
                z = y * (X[i] - X[j])
                if z @ z > 0:
                    w = w + min(largest, max(0, 1 - w @ z) / (z @ z)) * z
        else:
            late = [y * (X[i] - X[j]) for j in buffers[not own] if y * (w @ (X[i] - X[j])) < 1]
            w = w + largest * sum(late, start=np.zeros(X.shape[1]))
        seen[own] += 1
        if len(buffers[own]) < capacity:
            buffers[own].append(i)
        elif int(draw * seen[own]) < capacity:
            buffers[own][int(draw * seen[own])] = i
        trace.append(w.copy())
    return trace, buffers


def confidence_rule(X, positive, rows, C, phi, capacity, full):
    """CBR of Khalid, Ray and Chitsaz with the SCW-I step of Wang, Zhao and Hoi: mean and covariance after each row."""
    d = X.shape[1]
    mean, covariance = np.zeros(d), np.eye(d)
    buffers, seen = {False: [None] * capacity, True: [None] * capacity}, {False: 0, True: 0}
    psi, xi = 1 + phi**2 / 2, 1 + phi**2
    trace = []
    for i in rows:
        own = bool(positive[i])
        y = 1 if own else -1
        for j in [j for j in buffers[not own] if j is not None]:
            z = y * (X[i] - X[j])
            m, v = mean @ z, z @ covariance @ z
            if v <= 0 or phi * math.sqrt(v) - m <= 0:
                continue
            alpha = min(C, max(0, (-m * psi + math.sqrt(m**2 * phi**4 / 4 + v * phi**2 * xi)) / (v * xi)))
            u = (-alpha * v * phi + math.sqrt(alpha**2 * v**2 * phi**2 + 4 * v)) ** 2 / 4
            beta = alpha * phi / (math.sqrt(u) + v * alpha * phi)
            product = covariance @ z
            mean = mean + alpha * product
            covariance = covariance - beta * np.outer(product, product)
            if not full:
                covariance = np.diag(np.diag(covariance))
        buffers[own][seen[own] % capacity] = i
        seen[own] += 1
        trace.append((mean.copy(), covariance.copy()))
    return trace
