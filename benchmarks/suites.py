"""What is asked for: five metrics, and a grid of 10 metrics × 5 cut-offs."""

FIVE = ["precision@10", "recall@10", "ap", "ndcg@10", "rr"]
MEASURES = [
    "precision",
    "precision(divide_by=attainable)",
    "recall",
    "f1",
    "hit",
    "ap",
    "rr",
    "dcg",
    "ndcg",
    "ndcg(gain=exponential)",
]
GRID = [f"{measure}@{k}" for measure in MEASURES for k in (1, 2, 3, 5, 10)]
SUITES = {"five": FIVE, "grid": GRID}
