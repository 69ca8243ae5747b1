"""Each label and each of its other names is a method: ``"map@10"`` is ``.map_at(10)``."""

import inspect

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from two_models import RUN, TRUTH

from rankframe import metrics
from rankframe._request import labels
from rankframe._request.labels import METRICS
from rankframe._rooms import VERBS

NEEDED = {"p": 0.8, "recall": 0.5, "collection": 100, "sampled": 50, "metric": "ap"}


def names_of(entry):
    aliases = [alias for alias, _ in entry.aliases]
    return {name for name in (entry.label, entry.plain, *aliases) if name.isidentifier()}


NAMES = {name: entry for entry in labels.every_entry() for name in sorted(names_of(entry))}
ONE = RUN.filter(model="a")


def result(call):
    """Return the frame, or the text of the error without the names of calls."""
    try:
        return call()
    except (TypeError, ValueError) as error:
        return type(error)


def calls_of(name):
    """Labels with a name, with a cut-off and without: their methods, arguments and options."""
    function = NAMES[name].function
    parameters = inspect.signature(function).parameters
    needed = [p.name for p in parameters.values() if p.default is p.empty and p.name != "k"]
    options = {key: NEEDED.get(key, 1) for key in needed}
    inside = ", ".join(f"{key}={value}" for key, value in options.items())
    label = f"{name}({inside})" if inside else name
    calls = {label: (f"{name}", ())} if name not in {*VERBS, *METRICS} else {}
    if "k" in parameters and f"{name}_at" not in METRICS:
        calls[f"{label}@2"] = (f"{name}_at", (2,))
    return calls, options


@pytest.fixture(scope="module")
def values():
    """Values of the labels that this table has, in one call; errors of the others."""
    texts = [text for name in NAMES for text in calls_of(name)[0]]
    errors = {}
    for text in texts:
        error = result(lambda: ONE.lazy().rank.per_user(text, truth=TRUTH))  # noqa: B023
        if isinstance(error, type):
            errors[text] = error
    known = ONE.rank.per_user(*(text for text in texts if text not in errors), truth=TRUTH)
    return errors | {
        text: known.select("model", "user", text) for text in texts if text not in errors
    }


@pytest.mark.parametrize("name", NAMES)
def test_names_are_the_metrics_of_their_labels(name, values):
    calls, options = calls_of(name)
    for text, (method, args) in calls.items():
        got = result(lambda: getattr(ONE.rank, method)(*args, truth=TRUTH, **options))  # noqa: B023
        expected = values[text]
        if isinstance(expected, pl.DataFrame):
            assert_frame_equal(got, expected)
            assert text in got.columns
        else:
            assert got == expected, text


def test_function_of_a_label_without_cut_off_takes_it_first():
    assert ONE.rank.rbp_at(2, 0.5, truth=TRUTH).columns[-1] == "rbp(p=0.5)@2"
    assert ONE.rank.rbp(0.5, truth=TRUTH).columns[-1] == "rbp(p=0.5)"
    assert ONE.rank.map_at(2, truth=TRUTH, preset="replay").columns[-1] == "map@2"
    assert ONE.lazy().rank.mrr(truth=TRUTH).collect().columns[-1] == "mrr"
    assert "reciprocal" in ONE.rank.mrr.__doc__.lower()


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("mapp_at", "no verb and no metric 'mapp_at'; did you mean 'map_at'?"),
        ("power", "no metric 'power'; did you mean 'stats.power'?"),
        ("evalute", "did you mean 'evaluate'?"),
        ("gauc_at", "metric 'gauc' is the AUC weighted by user: use 'auc'"),
        ("zyzzyva", "no verb and no metric 'zyzzyva'$"),
    ],
)
def test_unknown_method_is_explained(typed, said):
    with pytest.raises(AttributeError, match=said):
        getattr(ONE.rank, typed)


def test_slip_in_the_name_of_a_metric_leads_to_that_metric():
    for name, entry in NAMES.items():
        if len(name) < 6:
            continue
        typed = f"{name[:2]}{name[3]}{name[2]}{name[4:]}_at"
        if labels.of_method(typed) is not None:
            continue
        text = labels.unknown_method(typed, {})
        near = text.partition("mean '")[2].partition("'")[0]
        assert near, typed
        function = METRICS.get(near) or labels.function_of(labels.of_method(near))
        assert function is entry.function, (typed, near)


def test_metric_function_says_that_it_takes_no_frame():
    for call in (
        lambda: metrics.precision_at(ONE, 10),
        lambda: metrics.precision_at(ONE),
        lambda: metrics.precision_at(10, truth=TRUTH),
    ):
        with pytest.raises(TypeError, match="precision_at.k. makes an expression and takes no fr"):
            call()
    with pytest.raises(TypeError, match=r"call it, rf\.metrics\.precision_at\(10\), or request"):
        ONE.rank.evaluate(metrics.precision_at, truth=TRUTH)
