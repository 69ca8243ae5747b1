"""The one list of metrics: each function with each pair of options, made from its signature.

A new metric is in it without being named here. Metrics that need more tables than run and truth
have their invariants in test_lists_and_shares.
"""

import inspect
import itertools
from typing import Literal, get_args, get_origin

import polars as pl
import reference

from rankframe._request.labels import METRICS, parse_metric
from rankframe._request.parameters import Discount, Gain, Levels, Signed

GAINS = {1: 1, 2: 3, 3: 7}
#: mappings that only some take: one that falls, one with a gain for grade 0
#: values of the parameters that are real numbers
FLOATS = {
    "beta": [1, 0.5, 2],
    "recall": [0, 0.3, 1],
    "multiple": [1, 0.2, 2.5],
    "p": [0.8, 0.5],
    "collection": [0, 100],
    "goals": [1, 2, 0.5],
    "alpha": [0.5, 0.3, 1],
}
#: of the first ten ranks
WEIGHTS = (1.0, 1.0, 0.75, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.0)
#: and whole numbers, beside cut-offs
WHOLE = {"collection": [30, 1000]}
SPECIAL_MEANS = ["gmap", "gmap(epsilon=0.01)@3"]
SPECIAL_MEANS += ["gm_map", "gm_bpref", "num_users"]


def _choices(parameter: inspect.Parameter) -> list[object]:
    annotation = parameter.annotation
    if parameter.name == "k":
        return [1, 3, 10] if annotation is int else [None, 1, 3, 10]
    if annotation is Gain:
        return ["linear", "exponential", "binary", GAINS]
    if annotation == Discount:
        return ["log2", "rank", WEIGHTS]
    if annotation == Levels:
        return [parameter.default, (0.25, 0.5, 0.75)]
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    if parameter.name == "base":
        return [None, 2, 10]
    if annotation is int:
        return WHOLE[parameter.name]
    if annotation == int | None:
        return [None, *WHOLE[parameter.name]]
    if annotation == float | None:
        return [None, 4]
    if annotation is Signed:
        return [parameter.default, {"nonrelevant": -0.5, "missed": -1}.get(parameter.name, 2)]
    if annotation is float:
        return FLOATS[parameter.name]
    raise AssertionError(f"say here which values to try for {parameter}")


def _made() -> dict[str, tuple[str, dict[str, object], pl.Expr]]:
    """Name, for each label, the function and the arguments that make it, and what they make."""
    found = {}
    for name, function in METRICS.items():
        if function.__module__.rpartition(".")[2] in ("exposure", "lists", "unbiased"):
            continue
        parameters = inspect.signature(function).parameters
        for values in itertools.product(*map(_choices, parameters.values())):
            arguments = dict(zip(parameters, values, strict=True))
            given = (parameters[name].default for name in arguments)
            chosen = zip(arguments.values(), given, strict=True)
            if sum(value != default != inspect.Parameter.empty for value, default in chosen) > 2:
                continue  # options meet in pairs; all at once would be thousands
            discount = arguments.get("discount", "log2")
            needs_cut = discount == WEIGHTS and arguments["k"] is None
            if needs_cut or (discount != "log2" and arguments["base"] is not None):
                continue  # refused
            made = function(**arguments)
            found.setdefault(made.meta.output_name(), (name, arguments, made))
    return found


_MADE = _made()
CALLS = {label: (name, arguments) for label, (name, arguments, _) in _MADE.items()}
LABELS = list(CALLS)
EVERY_METRIC: dict[str, pl.Expr] = {label: made for label, (*_, made) in _MADE.items()}
#: the least and the greatest value that each declares
RANGES = {label: parse_metric(expr).traits[1:] for label, expr in EVERY_METRIC.items()}


def _few() -> list[str]:
    """Pick of each function labels that have each value of each option, and a cut-off or none."""
    picked = []
    for function in METRICS:
        options = {
            label: {f"{name}={value}" for name, value in arguments.items()}
            for label, (named, arguments) in CALLS.items()
            if named == function and arguments.get("k") in (None, 3)
        }
        missing = set().union(*options.values())
        while options:
            best = max(options, key=lambda label: len(options[label] & missing))
            picked.append(best)
            missing -= options[best]
            if not missing:
                break
    return picked


#: For what does not depend on the formula: a way in, a type of ids, which metrics share a call.
FEW: dict[str, pl.Expr] = {label: EVERY_METRIC[label] for label in _few()}


def _columns(label: str) -> set[str]:
    return {name.partition("(")[0] for name in EVERY_METRIC[label].meta.root_names()}


def _of_each_column() -> list[str]:
    picked = ["precision@3", "num_retrieved"]  # a cut-off, and a count
    missing = set().union(*map(_columns, FEW))
    while missing:
        picked.append(max(FEW, key=lambda label: len(_columns(label) & missing)))
        missing -= _columns(picked[-1])
    return picked


#: For what does not depend on the function either: these read each column of the vocabulary.
OF_EACH_COLUMN: dict[str, pl.Expr] = {label: EVERY_METRIC[label] for label in _of_each_column()}
#: Both, or all pairs of options with ``--thorough``.
OF_TIER = EVERY_METRIC if reference.thorough else FEW | OF_EACH_COLUMN

#: functions without an exact expectation under ties
NO_FORM = {
    "alpha_dcg_at",
    "alpha_ndcg_at",
    "average_precision_ia",
    "compatibility",
    "err_ia_at",
    "insq_at",
    "inst_at",
    "lauc_at",
    "nerr_ia_at",
    "nnrbp",
    "nrbp",
    "pap_at",
    "pauc_at",
    "precision_ia_at",
    "subtopic_recall_at",
    "binary_g_measure",
    "eleven_point_precision",
    "err_at",
    "g_measure",
    "inferred_average_precision",
    "interpolated_precision",
    "ndcg_at_relevant",
    "nerr_at",
    "o_measure",
    "p_measure",
    "p_plus",
    "yaap",
}


def has_form(label: str) -> bool:
    function, arguments = CALLS[label]
    cut = arguments.get("k") is not None
    of_two_chances = function in ("auc", "mean_hit_rank") or arguments.get("divide_by") == "hits"
    return function not in NO_FORM and not (cut and of_two_chances)


WITH_FORM = [label for label in EVERY_METRIC if has_form(label)]
FEW_WITH_FORM = [label for label in FEW if has_form(label)]
