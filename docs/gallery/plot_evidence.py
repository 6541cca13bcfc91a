"""
A Bayesian network with evidence
================================

Rain, a sprinkler, wet grass and a slippery road. What most probably happened, given what we see?
"""

import matplotlib.pyplot as plt
import numpy as np

import fginfer
from fginfer import FactorGraph

names = ["rain", "sprinkler", "wet grass", "slippery road"]
graph = FactorGraph([2] * 4)


def conditional(variables: list[int], probabilities: object) -> None:
    with np.errstate(divide="ignore"):
        graph.add_factor(variables, np.log(probabilities))  # zero probabilities become hard constraints


conditional([0], [0.8, 0.2])
conditional([0, 1], [[0.6, 0.4], [0.99, 0.01]])
conditional([0, 1, 2], [[[1.0, 0.0], [0.1, 0.9]], [[0.2, 0.8], [0.01, 0.99]]])
conditional([2, 3], [[0.95, 0.05], [0.4, 0.6]])

# %%
# Evidence is a dict from variables to the labels that were seen. p is the probability of all four labels together, what
# was seen included; divided by that of the evidence it would be the probability *given* what was seen.
explanations = {}
for text, evidence in {"nothing": {}, "grass is wet": {2: 1}, "wet, no sprinkler": {2: 1, 1: 0}}.items():
    result = fginfer.solve(graph, evidence=evidence)
    explanations[text] = result.labels, np.exp(result.score)
    labels, probability = explanations[text]
    print(f"seen: {text:18}", dict(zip(names, labels.tolist(), strict=True)), f"p = {probability:.3f}")

# %%
figure, axis = plt.subplots(figsize=(7, 2.4))
axis.imshow(np.array([labels for labels, _ in explanations.values()]), cmap="Blues", vmax=1.5)
axis.set(xticks=range(4), xticklabels=names, yticks=range(3), yticklabels=list(explanations))
axis.set_title("most probable explanation")
figure.tight_layout()
