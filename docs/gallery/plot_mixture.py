"""
Four curves in one cloud of points
==================================

Every point lies on one of four polynomials, and nobody says on which. MixLasso finds the curves by a convex
estimator over all assignments of the points, whose oracle is a binary MAP problem.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from fginfer.latent import MixedRegression
from fginfer.latent.em import restarts

rng = np.random.default_rng(3)
x = rng.uniform(-1, 1, (240, 1))
curves = rng.uniform(-4, 4, (4, 4))
y = (curves[rng.integers(0, 4, len(x))] * x ** np.arange(1, 5)).sum(1)

# %%
# The kernel is that of polynomials of degree four. EM, as everybody starts it, needs luck: the best of twenty
# random starts stands beside.
model = MixedRegression(4, kernel="poly", degree=4, gamma=2.0, coef0=2.0, ridge=1e-8, random_state=0).fit(x, y)
features = x ** np.arange(1, 5)
_, _, squared = restarts(features, y, 4, n_init=20, seed=0).best()
print(f"root mean squared error: MixLasso {model.error_:.2g}, EM {np.sqrt(squared / len(y)):.2g}")

# %%
grid = np.linspace(-1, 1, 200)[:, None]
figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True)
axes[0].scatter(x[:, 0], y, s=6, color="gray")
axes[0].set(title="what is given", xlabel="x", ylabel="y")
for k, curve in enumerate(model.predict_components(grid).T):
    own = model.assignments_[:, k] == 1
    axes[1].scatter(x[own, 0], y[own], color=f"C{k}", s=6)
    axes[1].plot(grid[:, 0], curve, color=f"C{k}", linewidth=1)
axes[1].set(title="what is found", xlabel="x", ylim=axes[0].get_ylim())
figure.tight_layout()

# %%
# Prices of four companies, a week each, in one list: whose is which? Polynomials of degree eight tell most of them
# apart; where two series cross nobody can.
weeks = np.linspace(0, 1, 80)
start, growth = np.array([20, 40, 70, 100]), np.array([0.3, 1.3, -0.9, 0.5])
walks = 0.1 * np.cumsum(rng.standard_normal((4, 80)), axis=1) / np.sqrt(80)
prices = start[:, None] * np.exp(growth[:, None] * weeks + walks)
when, price, company = np.tile(weeks, 4)[:, None], prices.ravel() / 100, np.repeat(np.arange(4), 80)
series = MixedRegression(4, kernel="poly", degree=8, gamma=2.0, coef0=2.0, ridge=1e-8, random_state=0).fit(when, price)
found = series.assignments_.argmax(1)
table = np.array([[(found[company == a] == b).sum() for b in range(4)] for a in range(4)])
rows, columns = linear_sum_assignment(-table)
print(f"{table[rows, columns].sum() / len(company):.0%} of the prices are given to the right company")

# %%
figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True)
for a, b in zip(rows, columns, strict=True):
    axes[0].scatter(when[company == a, 0], price[company == a], color=f"C{a}", s=6)
    axes[1].scatter(when[found == b, 0], price[found == b], color=f"C{a}", s=6)
    axes[1].plot(weeks, series.predict_components(weeks[:, None])[:, b], color=f"C{a}", linewidth=1)
for axis, title in zip(axes, ("who made them", "what is found"), strict=True):
    axis.set(title=title, xlabel="time")
axes[0].set_ylabel("price")
figure.tight_layout()
