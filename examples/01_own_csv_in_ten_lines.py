# %% [markdown]
# # Your own CSV files in ten lines
#
# You need a table of edges. A table of nodes is optional. The first cell makes two small files, so that this
# script runs anywhere. The ten lines follow.

# %% Example files: 300 customers of three kinds, who mostly know their own kind
import csv
import tempfile
from pathlib import Path

import numpy as np

rng = np.random.default_rng(0)
folder = Path(tempfile.mkdtemp())
kind = rng.integers(0, 3, size=300)
name = [f"customer-{i:03d}" for i in range(300)]
with (folder / "nodes.csv").open("w", newline="", encoding="utf-8") as file:
    table = csv.writer(file)
    table.writerow(["customer", "age", "spend", "newsletter", "region"])
    for i, k in enumerate(kind):
        region = ("north", "south", "west")[k if rng.random() < 0.6 else rng.integers(3)]
        spend = round(float(rng.gamma(2 + k, 40)), 2)
        table.writerow([name[i], int(rng.normal(35 + 8 * k, 6)), spend, bool(rng.random() < 0.5), region])
with (folder / "edges.csv").open("w", newline="", encoding="utf-8") as file:
    table = csv.writer(file)
    table.writerow(["source", "target"])
    while file.tell() < 30_000:
        a, b = rng.integers(0, 300, size=2)
        if a != b and (kind[a] == kind[b] or rng.random() < 0.1):
            table.writerow([name[a], name[b]])

# %% The ten lines
import nodejepa

graph = nodejepa.load_graph(folder / "edges.csv", nodes=folder / "nodes.csv")
print(graph)  # ids are text, numbers were scaled, regions encoded
model = nodejepa.NodeJEPA(epochs=20, seed=0).fit(graph)  # labels are not used
z = model.transform(graph)  # float32, one row per node
print(nodejepa.diagnose(z).verdict)
nodejepa.write_embeddings(folder / "z.parquet", graph, z)  # with your ids
ids, z = nodejepa.read_embeddings(folder / "z.parquet")
nearest = nodejepa.nearest_neighbours(z, [0], k=5)
print(f"nearest to {ids[0]}:", ", ".join(ids[nearest.rows[0]]))

# %% What was guessed, and whether neighbours are of the same kind
for note in nodejepa.read_graph(folder / "edges.csv", nodes=folder / "nodes.csv").notes:
    print("note:", note)
all_nearest = nodejepa.nearest_neighbours(z, k=5).rows
same = float((kind[all_nearest] == kind[:, None]).mean())
print(f"{same:.0%} of the five nearest neighbours are of the same kind; by chance it would be about a third")
