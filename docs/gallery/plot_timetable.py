"""
A timetable in words
====================

Twenty-four lessons are given by four teachers to three classes. Rules are said, not listed: a class and a teacher can
be in one place only, two lessons of a subject are not on the same day, and teachers prefer the morning. Soft rules have
a price.
"""

import matplotlib.pyplot as plt
import numpy as np

import fginfer
from fginfer import FactorGraph

days, hours = ["Mon", "Tue", "Wed"], ["9", "10", "11", "12"]
slots = [f"{day} {hour}" for day in days for hour in hours]
teacher = {"maths": "Ada", "music": "Bob", "history": "Eva", "sport": "Tom"}
classes = ["1a", "1b", "2a"]
lessons = [f"{c} {subject} {k}" for c in classes for subject in teacher for k in ("I", "II")]

# %%
# A variable is a lesson, its labels are the slots. Each class and each teacher has one lesson at a time.
plan = FactorGraph(variables={lesson: slots for lesson in lessons})
for c in classes:
    plan.add_all_different([lesson for lesson in lessons if lesson.startswith(c)], name=f"class {c}")
for subject, name in teacher.items():
    plan.add_all_different([lesson for lesson in lessons if subject in lesson], name=name)
for c in classes:
    for subject in teacher:
        for day in days:
            both = [(f"{c} {subject} {k}", f"{day} {hour}") for k in ("I", "II") for hour in hours]
            plan.add_at_most(1, both)

# %%
# Wishes: the earlier the better, Tom is away on Monday morning, and Bob would like at most three lessons on Tuesday.
for lesson in lessons:
    plan.add_factor([lesson], [-0.5 * hours.index(slot.split()[1]) for slot in slots])
for lesson in lessons:
    if "sport" in lesson:
        plan.add_clause([(lesson, "Mon 9", False)])
bob = [(lesson, f"Tue {hour}") for lesson in lessons if "music" in lesson for hour in hours]
plan.add_at_most(3, bob, penalty=2.0, per_unit=True)

result = fginfer.solve(plan, time_limit=10)
print(result.status, result.score, result.bound)

# %%
found = result.named()
colours = dict(zip(teacher, ["#cfe3f5", "#f8dcc4", "#d9ecd0", "#eadcf0"], strict=True))
figure, axes = plt.subplots(1, len(classes), figsize=(10, 3), sharey=True)
for axis, c in zip(axes, classes, strict=True):
    for lesson, slot in found.items():
        if lesson.startswith(c):
            subject, (day, hour) = lesson.split()[1], slot.split()
            x, y = days.index(day), hours.index(hour)
            axis.add_patch(plt.Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, color=colours[subject]))
            axis.text(x, y, f"{subject}\n{teacher[subject]}", ha="center", va="center", fontsize=8)
    axis.set(title=f"class {c}", xlim=(-0.5, 2.5), ylim=(3.5, -0.5))
    axis.set_xticks(range(3), days)
    axis.set_yticks(range(4), [f"{hour}:00" for hour in hours])
figure.tight_layout()
assert np.isfinite(result.score)
