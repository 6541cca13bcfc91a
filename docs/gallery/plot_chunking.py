"""
Tagging words: a chain
======================

A small grammar makes sentences; a structural SVM on chains learns to tag them from the words and their neighbours.
"""

import matplotlib.pyplot as plt
import numpy as np

from fginfer.learn import StructuredSVM

rng = np.random.default_rng(5)
tags = ["DET", "ADJ", "NOUN", "VERB"]
follows = np.array([[0, 0.4, 0.6, 0], [0, 0.2, 0.8, 0], [0.1, 0, 0.2, 0.7], [0.7, 0.1, 0.2, 0]])
words = 40  # a word belongs to one tag mostly, to another sometimes
emits = rng.dirichlet(np.full(words, 0.15), size=4)


def sentence() -> tuple[np.ndarray, np.ndarray]:
    labels = [0]
    while len(labels) < 8:
        labels.append(rng.choice(4, p=follows[labels[-1]]))
    seen = [rng.choice(words, p=emits[tag]) for tag in labels]
    return np.eye(words)[seen], np.array(labels)


train, test = ([sentence() for _ in range(n)] for n in (150, 200))

# %%
# Without transitions each word stands alone; with them the sentence helps.
scores = {}
for name, pairwise in {"words alone": False, "a chain": True}.items():
    model = StructuredSVM(model="chain", C=1.0, pairwise=pairwise, random_state=0)
    model.fit([x for x, _ in train], [y for _, y in train])
    scores[name] = model.score([x for x, _ in test], [y for _, y in test])
    print(f"{name}: {scores[name]:.1%} of the tags right")

# %%
# What it learned about which tag follows which.
learned = model.pairwise_.reshape(4, 4)
figure, axes = plt.subplots(1, 2, figsize=(7, 3))
for axis, title, matrix in ((axes[0], "true transitions", follows), (axes[1], "learned weights", learned)):
    axis.imshow(matrix, cmap="viridis")
    axis.set(title=title, xticks=range(4), xticklabels=tags, yticks=range(4), yticklabels=tags)
figure.tight_layout()
