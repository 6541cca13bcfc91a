"""
Why is there no answer?
=======================

Seven talks, three rooms, and wishes that cannot all be met. *Infeasible* is a proof, but no help: ``explain`` finds a
small set of rules that contradict each other, shows that each of them is needed for it, and what is cheapest to drop.
"""

import matplotlib.pyplot as plt
import networkx as nx

import fginfer
from fginfer import FactorGraph

talks = ["opening", "proteins", "stereo", "parsing", "planning", "learning", "closing"]
clashes = [
    *[("proteins", "stereo"), ("stereo", "parsing"), ("proteins", "parsing"), ("parsing", "planning")],
    *[("planning", "learning"), ("opening", "proteins"), ("closing", "learning"), ("stereo", "planning")],
    ("proteins", "planning"),
]

# %%
# Talks with listeners in common are not at the same time, and there are three times.
program = FactorGraph(variables={talk: ["10:00", "11:00", "12:00"] for talk in talks})
for a, b in clashes:
    program.add_all_different([a, b], name=f"{a} / {b}")
print(fginfer.solve(program).status)

# %%
# Listeners of two of the pairs are few, so these would be cheap to give up.
why = fginfer.explain(program, weights={"stereo / planning": 0.2, "opening / proteins": 0.1})
print(why)

# %%
# The clashes that contradict each other, in red.
guilty = {factor.name for factor in why.factors}
network = nx.Graph(clashes)
place = nx.kamada_kawai_layout(network)
colours = ["tab:red" if f"{a} / {b}" in guilty or f"{b} / {a}" in guilty else "lightgrey" for a, b in network.edges]
figure, axis = plt.subplots(figsize=(6, 4))
nx.draw_networkx(network, place, ax=axis, edge_color=colours, width=3, node_color="white", font_size=10)
axis.set_axis_off()
axis.margins(0.15)
figure.tight_layout()
