"""Kernels of Triton that pass over pairs, a row of queries at a time: [heads · rows, keys] of fp64.

Numbers of fp64 come in tensors, since Triton passes those of Python in fp32. Rows are of heads of ``rows``
each, and what they see is alike in all heads. ``numbers`` are those of ``fused_pairs``.
"""

# Triton reads annotations of its own alone.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl

_ROUND = tl.constexpr(1.5 * 2.0**52)
"""Added and taken away it rounds fp64 numbers below 2^51 to integers, ties to even."""
_EXPONENT = tl.constexpr(0x7FF << 52)


@triton.jit
def _err_weight(exponent, p, is_seen, lse, norm, key_norm, numbers):
    """``p-recompute``: the score's error, that of P, its typical one, and its variance."""
    ln2, worst_of_scores, walk = (
        tl.load(numbers),
        tl.load(numbers + 1),
        tl.load(numbers + 2),
    )
    r, e, two_tiny = tl.load(numbers + 3), tl.load(numbers + 4), 2 * tl.load(numbers + 5)
    to_zero, of_scores = tl.load(numbers + 6), tl.load(numbers + 7)
    size = tl.where(is_seen, exponent * ln2, 0.0)
    away = tl.abs(tl.where(is_seen, size - lse, 0.0))
    size = tl.abs(size)
    score = tl.where(is_seen, norm * worst_of_scores * key_norm + 8 * r * size + 2 * r * away, 0.0)
    worst = tl.minimum(score, 1.0)
    shift = norm * walk * key_norm + walk * size
    variance = shift * shift + of_scores * (2 * size * size + away * away) + e * e
    variance *= p * p
    grown = worst + worst * worst
    error = tl.where(is_seen, two_tiny + p * (grown * (1 + e) + e), 0.0)
    size *= to_zero + r
    typical = tl.where(is_seen, two_tiny + p * (size + size * size), 0.0)
    return score, error, typical, variance


@triton.jit
def _vary_derivative(size, norm, value_norm, numbers):
    """``dp-accumulate``: the variance of x."""
    walk = tl.load(numbers + 9)
    shift = norm * walk * value_norm + walk * size
    return shift * shift


@triton.jit
def sum_pairs(
    exponents,
    weights,
    products,
    of_rows,
    key_norms,
    value_norms,
    numbers,
    begins,
    ends,
    sums,
    count,
    rows,
    keys,
    SCATTER: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The members of ``PairSums`` of one row a program, ``sums`` [13, rows]; ``of_rows`` is the row's LSE,
    |scale|·‖q‖ and ‖dO‖.
    """
    row = tl.program_id(0).to(tl.int64)
    begin, end = tl.load(begins + row % rows), tl.load(ends + row % rows)
    lse, norm = tl.load(of_rows + row), tl.load(of_rows + count + row)
    derivative_norm = tl.load(of_rows + 2 * count + row)
    base, key_base = row * keys, row // rows * keys
    first = begin // BLOCK * BLOCK
    shares = tl.zeros([BLOCK], tl.float64)
    for at in range(first, end, BLOCK):
        key = at + tl.arange(0, BLOCK)
        is_seen = (key >= begin) & (key < end)
        p = tl.load(weights + base + key, is_seen, 0.0)
        shares += p * tl.load(products + base + key, is_seen, 0.0)
    mean = tl.sum(shares)
    of_products, floor = tl.load(numbers + 8) * derivative_norm, tl.load(numbers + 10)
    total = tl.zeros([BLOCK], tl.float64)
    squares = tl.zeros([BLOCK], tl.float64)
    errors = tl.zeros([BLOCK], tl.float64)
    typical = tl.zeros([BLOCK], tl.float64)
    variance = tl.zeros([BLOCK], tl.float64)
    weight_errors = tl.zeros([BLOCK], tl.float64)
    typical_weights = tl.zeros([BLOCK], tl.float64)
    weight_variance = tl.zeros([BLOCK], tl.float64)
    scatter = tl.zeros([BLOCK], tl.float64)
    typical_scatter = tl.zeros([BLOCK], tl.float64)
    scatter_variance = tl.zeros([BLOCK], tl.float64)
    largest = tl.zeros([BLOCK], tl.float64)
    part = tl.load(numbers + 11)
    for at in range(first, end, BLOCK):
        key = at + tl.arange(0, BLOCK)
        is_seen = (key >= begin) & (key < end)
        p = tl.load(weights + base + key, is_seen, 0.0)
        x = tl.load(products + base + key, is_seen, 0.0)
        exponent = tl.load(exponents + base + key, is_seen, 0.0)
        key_norm = tl.load(key_norms + key_base + key, is_seen, 0.0)
        value_norm = tl.load(value_norms + key_base + key, is_seen, 0.0)
        score, error, typical_error, of_p = _err_weight(
            exponent, p, is_seen, lse, norm, key_norm, numbers
        )
        size = tl.abs(x)
        product = p * size
        total += product
        squares += product * product
        errors += error * size + (error + p) * (of_products * value_norm + floor)
        typical += typical_error * size + part * product + floor * p
        of_x = _vary_derivative(size, derivative_norm, value_norm, numbers)
        variance += of_p * x * x + p * p * of_x
        weight_errors += error
        typical_weights += typical_error
        weight_variance += of_p
        largest = tl.maximum(largest, score)
        if SCATTER:
            distance = tl.abs(x - mean)
            scatter += error * distance
            typical_scatter += typical_error * distance
            scatter_variance += of_p * distance * distance
    sums += row
    tl.store(sums, mean)
    tl.store(sums + count, tl.sum(total))
    tl.store(sums + 2 * count, tl.sum(squares))
    tl.store(sums + 3 * count, tl.sum(errors))
    tl.store(sums + 4 * count, tl.sum(typical))
    tl.store(sums + 5 * count, tl.sum(variance))
    tl.store(sums + 6 * count, tl.sum(weight_errors))
    tl.store(sums + 7 * count, tl.sum(typical_weights))
    tl.store(sums + 8 * count, tl.sum(weight_variance))
    tl.store(sums + 9 * count, tl.sum(scatter))
    tl.store(sums + 10 * count, tl.sum(typical_scatter))
    tl.store(sums + 11 * count, tl.sum(scatter_variance))
    tl.store(sums + 12 * count, tl.max(largest))


@triton.jit
def _binade(x):
    return (x.to(tl.int64, bitcast=True) & _EXPONENT).to(tl.float64, bitcast=True)


@triton.jit
def _half_ulp(x, numbers):
    """``half_ulp`` of the working format."""
    surely, smallest, u = tl.load(numbers + 16), tl.load(numbers + 17), tl.load(numbers + 18)
    return tl.maximum(_binade(x * surely), smallest) * u


@triton.jit
def _round_weight(p, error, numbers, OPEN: tl.constexpr, CLOSE: tl.constexpr):
    """``round_weights``: worst, known, variance, and the size of what is open."""
    smallest, u = tl.load(numbers + 17), tl.load(numbers + 18)
    third = tl.load(numbers + 19)
    most = (p + error) * (1 + 2.0**-20)
    half = tl.maximum(_binade(most - most * CLOSE), smallest) * u
    above = tl.maximum(_binade(most + most * CLOSE), smallest) * u
    quantum = tl.maximum(_binade(p), smallest) * 2 * u
    quotient = p / quantum
    rounding = (quotient + _ROUND) - _ROUND - quotient
    distance = tl.abs(rounding)
    is_open = (distance >= 0.5 - OPEN) | (half != above)
    rounding *= quantum
    distance *= quantum
    worst = distance + error
    part = worst / half
    is_known = part < 1
    is_open |= tl.abs(part - 1) <= OPEN
    part = error / half
    is_open |= tl.abs(part - 1) <= OPEN
    spread = tl.where(part < 1, distance * distance, half * half * third)
    variance = tl.where(is_known | is_open, 0.0, spread)
    known = tl.where(is_known & (is_open == 0), rounding, 0.0)
    return tl.minimum(half, worst), known, variance, tl.where(is_open, half, 0.0)


@triton.jit
def _err_share(p, x, is_seen, of_weights, of_row, value_norm, numbers):
    """``errDerivatives`` of one row: dS, |dS|, what pairs err by, with what rows add; what does not average
    out, the variance; these two as dK has them; and |dS| with all its errors.

    ``of_weights`` is P's error, the worst of its rounding, its typical error and its variance, ``of_row``
    ‖dO‖ and the members of ``Rows`` without those of typical weights.
    """
    weight_error, rounded, typical_error, of_p = of_weights
    norm, mean, whole, row_variance, worst_mean, typical_mean, mean_variance = of_row
    r, tiny = tl.load(numbers + 3), tl.load(numbers + 5)
    floor, part, unit = tl.load(numbers + 10), tl.load(numbers + 11), tl.load(numbers + 15)
    distance = tl.abs(x - mean)
    share = (x - mean) * p
    size = tl.abs(share)
    of_x = tl.load(numbers + 8) * norm * value_norm + r * distance
    of_x += tl.load(numbers + 12) * tl.abs(mean) + floor
    own = (weight_error + rounded) * (1 + 3 * r) + 3 * r * p + 3 * tiny
    own = (own * (of_x + distance + worst_mean) + p * of_x + 3 * tiny) * (1 + whole)
    together = size * whole + p * (worst_mean * (1 + whole))
    before = (size + own + together) * (1 + 2.0**-20)
    rounding = tl.maximum(_half_ulp(before, numbers), _half_ulp(before * unit, numbers) / unit)
    worst = tl.where(is_seen, own + rounding, 0.0)
    all_worst = tl.where(is_seen, together + worst, 0.0)
    systematic = typical_error * distance + part * p * tl.abs(x) + floor * p + 3 * tiny
    systematic = tl.where(is_seen, systematic, 0.0)
    square, squares = p * p, distance * distance
    variance = _vary_derivative(tl.abs(x), norm, value_norm, numbers)
    variance += tl.load(numbers + 13) * squares + tl.load(numbers + 14) * mean * mean
    variance = square * variance + of_p * squares + rounding * rounding / 3
    variance = tl.where(is_seen, variance, 0.0)
    typical = systematic + p * typical_mean
    moved = variance + square * (squares * row_variance + mean_variance)
    before = tl.where(is_seen, before, 0.0)
    return share, size, worst, all_worst, systematic, variance, typical, moved, before


@triton.jit
def err_pairs(
    exponents,
    weights,
    products,
    of_rows,
    key_norms,
    value_norms,
    numbers,
    begins,
    ends,
    matrices,
    largest,
    opens,
    size_of_matrix,
    count,
    rows,
    keys,
    OPEN: tl.constexpr,
    CLOSE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The members of ``PairMatrices`` of one row a program: ``matrices`` [13, rows, keys], of each row the
    largest dS with its errors, and whether roundings of P are open. ``of_rows`` goes on with the members
    of ``Rows`` from ``mean`` to ``mean_variance``.
    """
    row = tl.program_id(0).to(tl.int64)
    begin, end = tl.load(begins + row % rows), tl.load(ends + row % rows)
    of_rows += row
    lse, norm, whole = tl.load(of_rows), tl.load(of_rows + count), tl.load(of_rows + 4 * count)
    row_variance = tl.load(of_rows + 6 * count)
    of_row = (
        tl.load(of_rows + 2 * count),
        tl.load(of_rows + 3 * count),
        whole,
        row_variance,
        tl.load(of_rows + 7 * count),
        tl.load(of_rows + 8 * count),
        tl.load(of_rows + 9 * count),
    )
    base, key_base = row * keys, row // rows * keys
    # A matrix may have more numbers than 32 bits count.
    size_of_matrix = size_of_matrix.to(tl.int64)
    most = tl.zeros([BLOCK], tl.float64)
    is_any_open = tl.zeros([BLOCK], tl.int32)
    for at in range(0, keys, BLOCK):
        key = at + tl.arange(0, BLOCK)
        is_seen = (key >= begin) & (key < end)
        to, is_there = matrices + base + key, key < keys
        p = tl.load(weights + base + key, is_seen, 0.0)
        x = tl.load(products + base + key, is_seen, 0.0)
        exponent = tl.load(exponents + base + key, is_seen, 0.0)
        key_norm = tl.load(key_norms + key_base + key, is_seen, 0.0)
        value_norm = tl.load(value_norms + key_base + key, is_seen, 0.0)
        _, weight_error, typical_error, of_p = _err_weight(
            exponent, p, is_seen, lse, norm, key_norm, numbers
        )
        error = weight_error * (1 + whole) + p * whole
        rounded, known, spread, open_size = _round_weight(p, error, numbers, OPEN, CLOSE)
        rounded = tl.where(p == 0, 0.0, rounded)
        is_any_open |= (open_size > 0).to(tl.int32)
        weight_variance = spread + of_p + p * p * row_variance
        of_weights = weight_error, rounded, typical_error, of_p
        share, size, worst, all_worst, systematic, variance, typical, moved, before = _err_share(
            p, x, is_seen, of_weights, of_row, value_norm, numbers
        )
        most = tl.maximum(most, before)
        tl.store(to, share, is_there)
        tl.store(to + size_of_matrix, size, is_there)
        tl.store(to + 2 * size_of_matrix, worst, is_there)
        tl.store(to + 3 * size_of_matrix, all_worst, is_there)
        tl.store(to + 4 * size_of_matrix, systematic, is_there)
        tl.store(to + 5 * size_of_matrix, variance, is_there)
        tl.store(to + 6 * size_of_matrix, typical, is_there)
        tl.store(to + 7 * size_of_matrix, moved, is_there)
        tl.store(to + 8 * size_of_matrix, error + rounded, is_there)
        tl.store(to + 9 * size_of_matrix, typical_error, is_there)
        tl.store(to + 10 * size_of_matrix, weight_variance, is_there)
        tl.store(to + 11 * size_of_matrix, known, is_there)
        tl.store(to + 12 * size_of_matrix, open_size, is_there)
    tl.store(largest + row, tl.max(most))
    tl.store(opens + row, tl.max(is_any_open))
