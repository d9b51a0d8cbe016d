"""The coefficients of the built-in coder's in-line functions, fitted: minimax in relative error, by Remez's exchange.

    python bench/fit_polynomials.py

prints C++ initialisers for apps/agents/builtin/cpp/functions.py and the error of each fit. Needs mpmath (comes with torch).
"""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp

mp.mp.dps = 50
Function = Callable[[mp.mpf], mp.mpf]


def remez(
    f: Function, low: float, high: float, degree: int, weight: Function, rounds: int = 12
) -> tuple[list[mp.mpf], float]:
    """Coefficients c0, c1, .. of the polynomial p with the least maximum of |p - f| * weight on [low, high]."""
    count = degree + 2
    middle, half = (mp.mpf(high) + low) / 2, (mp.mpf(high) - low) / 2
    points = [middle - half * mp.cos(mp.pi * i / (count - 1)) for i in range(count)]
    coefficients: list[mp.mpf] = []
    worst = mp.mpf(0)
    for _ in range(rounds):
        rows = [[p**k for k in range(degree + 1)] + [(-1) ** i / weight(p)] for i, p in enumerate(points)]
        solution = mp.lu_solve(mp.matrix(rows), mp.matrix([f(p) for p in points]))
        coefficients = [solution[k] for k in range(degree + 1)]

        def error(x: mp.mpf, known: list[mp.mpf] = coefficients) -> mp.mpf:
            return (mp.polyval(known[::-1], x) - f(x)) * weight(x)

        grid = [middle - half * mp.cos(mp.pi * i / (40 * count)) for i in range(40 * count + 1)]
        values = [error(x) for x in grid]
        points, worst = _extrema(grid, values, count)
    return coefficients, float(worst)


def rational(
    f: Function, low: float, high: float, *, top: int, bottom: int, rounds: int = 14
) -> tuple[list[mp.mpf], list[mp.mpf], float]:
    """Coefficients of p and q, q(0) = 1, of these degrees with the least maximum of |p / (q f) - 1| on [low, high].

    The exchange's equations hold q in the term for the error too; solved again with the last q until it stays.
    """
    count = top + bottom + 2
    middle, half = (mp.mpf(high) + low) / 2, (mp.mpf(high) - low) / 2
    points = [middle - half * mp.cos(mp.pi * i / (count - 1)) for i in range(count)]
    p, q, worst = [mp.mpf(0)], [mp.mpf(1)], mp.mpf(0)
    for _ in range(rounds):
        for _ in range(6):
            rows = [
                [s**k for k in range(top + 1)]
                + [-f(s) * s**k for k in range(1, bottom + 1)]
                + [(-1) ** i * f(s) * mp.polyval(q[::-1], s)]
                for i, s in enumerate(points)
            ]
            solution = mp.lu_solve(mp.matrix(rows), mp.matrix([f(s) for s in points]))
            p = [solution[k] for k in range(top + 1)]
            q = [mp.mpf(1)] + [solution[top + k] for k in range(1, bottom + 1)]
        grid = [middle - half * mp.cos(mp.pi * i / (30 * count)) for i in range(30 * count + 1)]
        values = [mp.polyval(p[::-1], s) / mp.polyval(q[::-1], s) / f(s) - 1 for s in grid]
        points, worst = _extrema(grid, values, count)
    return p, q, float(worst)


def _extrema(grid: list[mp.mpf], values: list[mp.mpf], count: int) -> tuple[list[mp.mpf], mp.mpf]:
    runs: list[int] = []
    for i, value in enumerate(values):
        if runs and (values[runs[-1]] > 0) == (value > 0):
            if abs(value) > abs(values[runs[-1]]):
                runs[-1] = i
        else:
            runs.append(i)
    while len(runs) > count:
        runs.pop(0 if abs(values[runs[0]]) < abs(values[runs[-1]]) else -1)
    return [grid[i] for i in runs], max(abs(values[i]) for i in runs)


def show(name: str, fit: tuple[list[mp.mpf], float]) -> None:
    """One initialiser, highest power first, and the error of the fit in units of float32's last place."""
    coefficients, worst = fit
    numbers = ", ".join(f"{mp.nstr(c, 10)}f" for c in reversed(coefficients))
    print(f"{name}: {worst * 2**24:.3f} half-ulp\n    {numbers}")


def main() -> None:
    """Every function that the printer writes in line."""
    half_log2 = float(mp.log(2) / 2) * 1.0001
    # exp(r) = 1 + r + r^2 q(r)
    show(
        "exp",
        remez(
            lambda r: (mp.exp(r) - 1 - r) / r**2 if abs(r) > 1e-15 else mp.mpf(0.5),
            -half_log2,
            half_log2,
            4,
            lambda r: mp.mpf("0.17"),
        ),
    )
    # log(1 + r) = r - r^2 / 2 + r^3 q(r) on [sqrt(1/2) - 1, sqrt(2) - 1]
    show(
        "log",
        remez(
            lambda r: (mp.log(1 + r) - r + r**2 / 2) / r**3 if r else mp.mpf(1) / 3,
            float(mp.sqrt(0.5) - 1),
            float(mp.sqrt(2) - 1),
            7,
            lambda r: abs(r**3 / mp.log(1 + r)) if r else mp.mpf(10) ** -9,
        ),
    )
    # tanh(x) = x + x^3 q(x^2) for |x| < 0.625
    show(
        "tanh",
        remez(
            lambda s: (mp.tanh(mp.sqrt(s)) / mp.sqrt(s) - 1) / s if s else mp.mpf(-1) / 3,
            1e-12,
            0.625**2,
            4,
            lambda s: mp.mpf(0.625**2),
        ),
    )
    # erf(x) = x p(x^2) / q(x^2) for |x| < 3.925
    above, below, worst = rational(lambda s: mp.erf(mp.sqrt(s)) / mp.sqrt(s), 1e-9, 3.925**2, top=5, bottom=5)
    show("erf, above", (above, worst))
    show("erf, below", (below, worst))
    # expm1(r) = r + r^2 q(r)
    show(
        "expm1",
        remez(
            lambda r: (mp.expm1(r) - r) / r**2 if abs(r) > 1e-15 else mp.mpf(0.5),
            -half_log2,
            half_log2,
            5,
            lambda r: mp.mpf(half_log2),
        ),
    )
    # sin(r) = r + r^3 q(r^2), cos(r) = 1 - r^2 / 2 + r^4 q(r^2) for |r| <= pi / 4
    top = float(mp.pi / 4) ** 2 * 1.0001
    show("sin", remez(lambda s: (mp.sin(mp.sqrt(s)) / mp.sqrt(s) - 1) / s, 1e-12, top, 2, lambda s: mp.mpf(top)))
    show("cos", remez(lambda s: (mp.cos(mp.sqrt(s)) - 1 + s / 2) / s**2, 1e-12, top, 2, lambda s: mp.mpf(top) ** 2))


if __name__ == "__main__":
    main()
