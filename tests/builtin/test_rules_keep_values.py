"""Each rewrite rule, in float64 by the interpreter: it fits where it should, and changes no value beyond rounding."""

from __future__ import annotations

import math
import random

import pytest

from apps.agents.builtin import algebra, choices, rules
from apps.agents.builtin.form import Buffer, Const, Def, Expr, Fold, Load, Op, Position
from apps.agents.builtin.index import Axis, Index
from apps.agents.builtin.interpreter import interpret
from apps.agents.builtin.rules import Rule, operation

ROWS, COLUMNS = Axis(0, 3), Axis(1, 5)
FOLDED = Axis(101, 5)
MATRIX, VECTOR = Buffer("matrix", "float64", 15), Buffer("vector", "float64", 3)


def at(row: Axis, column: Axis) -> Expr:
    return Load(MATRIX, Index.of(row) * 5 + Index.of(column))


def c(value: float) -> Expr:
    return Const(value, "float64")


X, Y, V = at(ROWS, COLUMNS), at(ROWS, FOLDED), Load(VECTOR, Index.of(ROWS))
TRUE = Op("lt", (c(1.0), c(2.0)), "bool")
POSITIVE = Op("lt", (c(0.0), X), "bool")
SHORT_SOFT_PLUS = Op("select", (Op("lt", (c(2.0), X), "bool"), X, operation("log1p", operation("exp", X))), "float64")
SOFT_PLUS = Op("select", (Op("lt", (c(20.0), X), "bool"), X, operation("log1p", operation("exp", X))), "float64")

ALWAYS: list[tuple[str, Expr]] = [
    ("fold constants", operation("mul", c(3.0), c(4.0))),
    ("fold constants", operation("exp", c(0.5))),
    ("drop neutral operands", operation("add", X, c(0.0))),
    ("drop neutral operands", operation("sub", X, c(0.0))),
    ("drop neutral operands", operation("mul", c(1.0), X)),
    ("drop neutral operands", operation("div", X, c(1.0))),
    ("choose what is known", Op("select", (Const(True, "bool"), X, V), "float64")),
    ("choose what is known", Op("select", (POSITIVE, X, X), "float64")),
    ("choose what is known", Op("and", (POSITIVE, Const(False, "bool")), "bool")),
    ("choose what is known", Op("or", (POSITIVE, Const(False, "bool")), "bool")),
    ("choose what is known", Op("not", (Op("not", (POSITIVE,), "bool"),), "bool")),
    ("reciprocal of a constant", operation("div", X, c(7.0))),
    ("join casts", Op("cast", (Op("cast", (POSITIVE,), "int32"),), "float64")),
    ("join folds", Fold("sum", (Axis(100, 3),), (Fold("sum", (FOLDED,), (at(Axis(100, 3), FOLDED),)),))),
    ("join folds", Fold("max", (FOLDED,), (Fold("max", (FOLDED,), (Y,)),))),
    ("take factors out of sums", Fold("sum", (FOLDED,), (operation("mul", V, Y),))),
    ("sum of a constant", Fold("sum", (FOLDED,), (V,))),
    ("tanh of soft-plus", operation("tanh", SOFT_PLUS)),
    ("logistic function", operation("div", c(1.0), operation("add", c(1.0), operation("exp", operation("neg", X))))),
    ("logarithm of a share", operation("log", operation("div", operation("exp", X), operation("exp", V)))),
    ("tanh and one", operation("add", c(1.0), operation("tanh", X))),
    ("tanh and one", operation("add", operation("tanh", X), c(1.0))),
    ("join constant factors", operation("mul", operation("mul", X, c(0.5)), operation("mul", c(3.0), V))),
    ("join constant factors", operation("mul", operation("mul", X, c(0.5)), c(3.0))),
    ("compare places in 32 bits", Op("lt", (Position(Index.of(COLUMNS)), Const(3, "int64")), "bool")),
]
OTHER, ROW = Axis(102, 5), Axis(103, 3)
DIAGONAL = Op(
    "select", (Op("eq", (Position(Index.of(FOLDED)), Position(Index.of(COLUMNS))), "bool"), V, c(0.0)), "float64"
)
OFF_BY_TWO = Op("eq", (Position(Index.of(FOLDED)), Position(Index.of(COLUMNS) + 2)), "bool")
ALGEBRA: list[tuple[str, Expr]] = [
    ("one term of a diagonal", Fold("sum", (FOLDED,), (operation("mul", DIAGONAL, Y),))),
    ("one term of a diagonal", Fold("sum", (FOLDED, OTHER), (operation("mul", at(ROWS, OTHER), DIAGONAL),))),
    ("sum of a sum", Fold("sum", (FOLDED,), (operation("sub", Y, Fold("sum", (OTHER,), (at(ROWS, OTHER),))),))),
    (
        "sum first over what depends on it",
        Fold("sum", (ROW, FOLDED), (operation("mul", Load(VECTOR, Index.of(ROW)), at(ROW, FOLDED)),)),
    ),
]
TOP = Fold("max", (FOLDED,), (Y,))
MEAN = operation("mul", Fold("sum", (FOLDED,), (Y,)), c(0.2))
AWAY = operation("sub", Y, MEAN)


def _values(body: Expr) -> list[float]:
    chance = random.Random(3)
    memory = {b.name: [chance.uniform(-3, 3) for _ in range(b.elements)] for b in (MATRIX, VECTOR)}
    return [float(one) for one in interpret(Def((ROWS, COLUMNS), body, "float64"), memory)]


def _same(a: list[float], b: list[float]) -> bool:
    return all(math.isclose(x, y, rel_tol=1e-13, abs_tol=1e-13) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize(("name", "before"), ALWAYS)
def test_a_rule_that_is_always_applied(name: str, before: Expr) -> None:
    rule = next(rule for rule in rules.SIMPLIFY if rule.name == name)
    after = rule.apply(before)
    assert after is not None
    assert after is not before
    assert _same(_values(before), _values(after))


@pytest.mark.parametrize(("name", "before"), ALGEBRA)
def test_a_rule_for_products(name: str, before: Expr) -> None:
    rule = next(rule for rule in algebra.ALGEBRA if rule.name == name)
    after = rule.apply(before)
    assert after is not None
    assert _same(_values(before), _values(after))
    assert _same(_values(before), _values(rules.simplified(before, algebra.ALGEBRA)))


def test_a_diagonal_that_leaves_the_matrix_stays() -> None:
    off = Op("select", (OFF_BY_TWO, V, c(0.0)), "float64")
    assert algebra.pick_term(Fold("sum", (FOLDED,), (operation("mul", off, Y),))) is None


def test_every_rule_is_tried() -> None:
    assert {rule.name for rule in rules.SIMPLIFY} == {name for name, _ in ALWAYS}
    assert {rule.name for rule in algebra.ALGEBRA} == {name for name, _ in ALWAYS + ALGEBRA}


@pytest.mark.parametrize(
    "node",
    [
        operation("div", X, V),
        operation("mul", operation("mul", X, c(1e-30)), operation("mul", V, c(1e30))),
        Fold("sum", (FOLDED,), (operation("mul", Y, Y),)),
        Op("round_bfloat16", (Const(1.0, "float32"),), "float32"),
        operation("tanh", SHORT_SOFT_PLUS),
    ],
)
def test_what_must_stay_stays(node: Expr) -> None:
    assert all(rule.apply(node) is None for rule in rules.SIMPLIFY)


def test_one_pass_soft_max() -> None:
    total = Fold("sum", (FOLDED,), (operation("exp", operation("sub", Y, TOP)),))
    before = operation("div", operation("exp", operation("sub", X, TOP)), total)
    (after,) = choices.online([before])
    assert after is not before
    assert _same(_values(before), _values(after))
    folds = {node.whole for node in _folds(after)}
    assert len(folds) == 1, "the largest element and the sum come from one pass"


def test_one_pass_moments() -> None:
    """Here in float32's name: the interpreter computes all in float64, the rule asks for twice the data's precision."""
    single = Buffer("matrix", "float32", 15)
    y = Load(single, Index.of(ROWS) * 5 + Index.of(FOLDED))
    mean = operation("mul", Fold("sum", (FOLDED,), (y,)), Const(0.2, "float32"))
    away = operation("sub", y, mean)
    before = operation("add", Fold("sum", (FOLDED,), (operation("mul", away, away),)), mean)
    (after,) = choices.moments([before])
    assert after is not before
    assert _same(_values(before), _values(after))
    assert choices.moments([Fold("sum", (FOLDED,), (operation("mul", AWAY, AWAY),))])[0].dtype == "float64"


def test_a_reciprocal_is_hoisted_out_of_the_row_alone() -> None:
    norm = operation("sqrt", Fold("sum", (FOLDED,), (operation("mul", Y, Y),)))
    (after,) = choices.reciprocals([operation("div", X, norm)])
    assert isinstance(after, Op)
    assert after.name == "mul"
    assert _same(_values(operation("div", X, norm)), _values(after))
    (kept,) = choices.reciprocals([operation("div", V, X)])
    assert isinstance(kept, Op)
    assert kept.name == "div"


def test_rules_come_to_an_end() -> None:
    body: Expr = X
    for _ in range(12):
        body = operation("mul", operation("add", body, c(0.0)), operation("div", c(1.0), c(4.0)))
    assert _same(_values(body), _values(rules.simplified(body)))
    assert rules.simplified(
        Op("select", (TRUE, Op("cast", (Position(Index.of(ROWS)),), "float64"), X), "float64")
    ).axes == {ROWS}


def _folds(node: Expr) -> list[Fold]:
    from apps.agents.builtin.form import walk

    return [one for one in walk(node) if isinstance(one, Fold)]


def test_a_rule_has_a_name_of_its_own() -> None:
    names = [rule.name for rule in rules.SIMPLIFY]
    assert len(set(names)) == len(names)
    assert all(isinstance(rule, Rule) for rule in rules.SIMPLIFY)
