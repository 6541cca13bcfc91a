"""
Pinyin: characters from syllables
=================================

Whoever types Chinese types syllables; each stands for many characters, and the neighbours decide which one is meant.
Every syllable brings its own **candidate list**, transitions between characters are learned. The language here is made
up: its characters follow each other as words do, so that a syllable alone says little.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

from fginfer.learn import Example, StructuredSVM

rng = np.random.default_rng(0)
CHARACTERS, SYLLABLES = 120, 20
sound = np.arange(CHARACTERS) % SYLLABLES  # six characters share a syllable
habit = rng.dirichlet(np.full(CHARACTERS, 0.02), size=CHARACTERS)  # who follows whom


def sentence(length: int) -> np.ndarray:
    text = [int(rng.integers(CHARACTERS))]
    while len(text) < length:
        text.append(int(rng.choice(CHARACTERS, p=habit[text[-1]])))
    return np.array(text)


texts = [sentence(12) for _ in range(330)]


# %%
# An example is what was typed: an indicator of the syllable for every position, and the characters it allows.
def typed(text: np.ndarray) -> Example:
    features = sparse.csr_matrix((np.ones(len(text)), (np.arange(len(text)), sound[text])), (len(text), SYLLABLES))
    return Example(features, candidates=[np.flatnonzero(sound == s) for s in sound[text]])


X = [typed(text) for text in texts]
train, test = slice(0, 300), slice(300, None)

# %%
# With and without transitions. gdmm asks each transition table for its best pair under sparse messages: it never
# decodes a whole sentence while it learns.
accuracy = {}
for name, pairwise in (("syllable alone", False), ("with neighbours", True)):
    model = StructuredSVM(solver="gdmm", C=1.0, max_iter=10, pairwise=pairwise, random_state=0)
    model.fit(X[train], texts[train])
    accuracy[name] = model.score(X[test], texts[test])
    print(f"{name}: {100 * accuracy[name]:.1f} % of the characters")

# %%
wrong = model.predict(X[test])[0] != texts[test][0]
print("typed   ", sound[texts[test][0]])
print("meant   ", texts[test][0])
print("wrong at", np.flatnonzero(wrong))

# %%
figure, axis = plt.subplots(figsize=(4, 3))
axis.bar(list(accuracy), list(accuracy.values()), color=["0.7", "tab:blue"])
axis.axhline(SYLLABLES / CHARACTERS, color="k", lw=0.8, ls="--", label="guessing among the candidates")
axis.set(ylim=(0, 1), ylabel="characters right")
axis.legend()
figure.tight_layout()
