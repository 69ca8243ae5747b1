"""Names of systems in pictures: cut to what differs, and apart."""

import pytest

from rankframe.plot import _names

TOWERS = [f"two-tower-with-hard-negatives-batch8192-temperature-{n}" for n in range(3)]


@pytest.mark.parametrize(
    ("names", "cut", "key"),
    [
        (["old", "new"], [], ""),
        (["popularity", *TOWERS], [f"…temperature-{n}" for n in range(3)], TOWERS[0][:40]),
        (
            [f"{name}/final-2026-11-27" for name in TOWERS],
            [f"…temperature-{n}…" for n in range(3)],
            f"{TOWERS[0][:40]}… and …/final-2026-11-27",
        ),
        ([TOWERS[0], "b"], ["two-tower-wit…temperature-0"], ""),
        (["協調フィルタリング" * 2, "b"], ["協調フィルタ…ィルタリング"], ""),
        (["x" * 40, "x" * 41], [], ""),  # cut, they would be one
    ],
)
def test_name_that_is_too_long_keeps_what_differs(names, cut, key):
    made = _names.short(names)
    assert list(made.short.values()) == cut
    assert made.key.removeprefix("… = ").removesuffix("…") == key
    assert all(_names.letters(made.of(name)) <= 28 for name in names if name in made.short)
    assert len({*map(made.of, names)}) == len(names)


@pytest.mark.parametrize(
    ("values", "places"),
    [
        ({"a": 1.0, "b": 0.99, "c": 0.98}, {"a": 1, "b": 0.9, "c": 0.8}),
        ({"a": 0.5, "b": 0.5, "c": 0.0}, {"a": 0.55, "b": 0.45, "c": 0}),
        ({"a": 0.0}, {"a": 0}),
        ({}, {}),
    ],
)
def test_names_stand_apart_within_the_frame(values, places):
    apart = _names.apart(values, 0.1, 0.0, 1.0)
    assert apart == pytest.approx(places)
    many = _names.apart({str(n): 0.5 + n / 1e4 for n in range(10)}, 0.1, 0.0, 1.0)
    gaps = [
        high - low for low, high in zip(list(many.values()), [*many.values()][1:], strict=False)
    ]
    assert min(gaps) == pytest.approx(0.1)
