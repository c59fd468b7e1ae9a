"""Kernels of Triton that pass over scores, a row at a time: [heads · rows, keys] of fp64.

Numbers of fp64 come in tensors, since Triton passes those of Python in fp32; constants in here are powers
of two, or constants of the compiler. Rows are of heads of ``rows`` each, and what they see is alike in all
heads.
"""

# Triton reads annotations of its own alone.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl

_ROUND = tl.constexpr(1.5 * 2.0**52)
"""Added and taken away it rounds fp64 numbers below 2^51 to integers, ties to even."""


@triton.jit
def weigh_rows(
    exponents,
    weights,
    maxima,
    totals,
    begins,
    ends,
    rows,
    keys,
    BLOCK: tl.constexpr,
):
    """The maximum, the sum of powers and the weights of one row a program."""
    row = tl.program_id(0).to(tl.int64)
    begin, end = tl.load(begins + row % rows), tl.load(ends + row % rows)
    exponents += row * keys
    weights += row * keys
    first = begin // BLOCK * BLOCK
    largest = tl.full([BLOCK], float("-inf"), tl.float64)
    for at in range(first, end, BLOCK):
        key = at + tl.arange(0, BLOCK)
        is_seen = (key >= begin) & (key < end)
        largest = tl.maximum(largest, tl.load(exponents + key, is_seen, float("-inf")))
    maximum = tl.max(largest)
    maximum = tl.where(maximum > float("-inf"), maximum, 0.0)
    powers = tl.zeros([BLOCK], tl.float64)
    for at in range(first, end, BLOCK):
        key = at + tl.arange(0, BLOCK)
        is_seen = (key >= begin) & (key < end)
        powers += tl.exp2(tl.load(exponents + key, is_seen, float("-inf")) - maximum)
    total = tl.sum(powers)
    divisor = tl.where(total > 0, total, 1.0)
    for at in range(0, keys, BLOCK):
        key = at + tl.arange(0, BLOCK)
        is_seen = (key >= begin) & (key < end)
        power = tl.exp2(tl.load(exponents + key, is_seen, float("-inf")) - maximum)
        tl.store(weights + key, power / divisor, key < keys)
    tl.store(maxima + row, maximum)
    tl.store(totals + row, total)


@triton.jit
def _larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def _slots(
    exponent,
    is_seen,
    most,
    slack,
    LAW: tl.constexpr,
):
    """Whether each exponent is counted, and its place in the table: ``alike_counts``. ``LAW`` is bins of an
    octave, the table's bits, how far below the largest exponents count, and the multiplier of the hash.
    """
    BINS: tl.constexpr = LAW[0]
    BITS: tl.constexpr = LAW[1]
    LEAST: tl.constexpr = LAW[2]
    MULTIPLIER: tl.constexpr = LAW[3]
    places = tl.where(is_seen, exponent, 0.0) * BINS
    near = (places + _ROUND) - _ROUND
    edge = 0.5 - (slack + tl.abs(places) * 2.0**-50)
    is_counted = is_seen & (exponent >= most - LEAST) & (tl.abs(places - near) < edge)
    near = tl.where(is_counted, near, 0.0)
    slot = ((near.to(tl.int64) * MULTIPLIER) >> (64 - BITS)) & ((1 << BITS) - 1)
    return is_counted, slot.to(tl.int32)


@triton.jit
def _largest_so_far(exponent, before, BLOCK: tl.constexpr, TILE: tl.constexpr):
    """The largest up to the end of each exponent's tile, and of all."""
    tiles = tl.max(tl.reshape(exponent, (BLOCK // TILE, TILE)), 1)
    upto = tl.maximum(tl.associative_scan(tiles, 0, _larger), before)
    spread = tl.broadcast_to(upto[:, None], (BLOCK // TILE, TILE))
    return tl.reshape(spread, (BLOCK,)), tl.maximum(tl.max(tiles), before)


@triton.jit
def _most_counted(
    exponent, maximum, so_far, SO_FAR: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr
):
    """What each exponent is counted by, and the largest so far."""
    if SO_FAR:
        most, so_far = _largest_so_far(exponent, so_far, BLOCK, TILE)
    else:
        most = tl.full([BLOCK], 0.0, tl.float64) + maximum
    return most, so_far


@triton.jit
def _count(table, slot, is_counted, PACKED: tl.constexpr):
    """Adds to the table."""
    if PACKED:
        one = tl.where(slot % 2 == 0, 1, 65536)
        tl.atomic_add(table + slot // 2, one, is_counted, sem="relaxed", scope="cta")
    else:
        tl.atomic_add(table + slot, 1, is_counted, sem="relaxed", scope="cta")


@triton.jit
def _counted(table, slot, is_counted, PACKED: tl.constexpr):
    """The table's numbers, from 1 to 65535: from where atomics left them, not from a cache of the
    multiprocessor.
    """
    if PACKED:
        word = tl.load(table + slot // 2, is_counted, 1, cache_modifier=".cg")
        number = tl.where(slot % 2 == 0, word & 65535, (word >> 16) & 65535)
    else:
        number = tl.load(table + slot, is_counted, 1, cache_modifier=".cg")
    return tl.where(is_counted, tl.minimum(number, 65535), 1).to(tl.float64)


@triton.jit
def _clear(to, first, last, BLOCK: tl.constexpr):
    """Writes zeros from one place up to another."""
    for at in range(first, last, BLOCK):
        place = at + tl.arange(0, BLOCK)
        tl.store(to + place, tl.zeros([BLOCK], to.dtype.element_ty), place < last)


@triton.jit
def _additions(
    weight, before, at, last, GROWN: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr
):
    """What tiles of weights add to ``RowTotals.additions``, and the sum of weights up to their end."""
    tiles = tl.sum(tl.reshape(weight, (BLOCK // TILE, TILE)), 1)
    upto = tl.cumsum(tiles, 0) + before
    starts = at + TILE * tl.arange(0, BLOCK // TILE)
    sizes = tl.minimum(tl.maximum(last - starts, 0), TILE).to(tl.float64)
    of_tiles = tl.where(upto > 0, sizes * tl.minimum(upto * GROWN, 1.0), 0.0)
    return tl.sum(of_tiles), before + tl.sum(tiles)


@triton.jit
def _sum_row(
    exponents,
    weights,
    units,
    table,
    numbers,
    ranges,
    sums,
    count,
    LAW: tl.constexpr,
    SO_FAR: tl.constexpr,
    PACKED: tl.constexpr,
    GROWN: tl.constexpr,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
):
    """Fills the table of a row and stores those of its sums that need no counts; returns the largest
    weight and its key.
    """
    maximum, slack, least = numbers
    begin, end, first, last = ranges
    mass = tl.zeros([BLOCK], tl.float64)
    distances = tl.zeros([BLOCK], tl.float64)
    distances_squared = tl.zeros([BLOCK], tl.float64)
    unit1 = tl.zeros([BLOCK], tl.float64)
    unit2 = tl.zeros([BLOCK], tl.float64)
    unit3 = tl.zeros([BLOCK], tl.float64)
    unit4 = tl.zeros([BLOCK], tl.float64)
    squares = tl.zeros([BLOCK], tl.float64)
    bias = tl.zeros([BLOCK], tl.float64)
    largest = tl.full([BLOCK], -1.0, tl.float64)
    largest_at = tl.zeros([BLOCK], tl.int32)
    so_far = tl.full([], float("-inf"), tl.float64)
    before = tl.full([], 0.0, tl.float64)
    additions = tl.full([], 0.0, tl.float64)
    for at in range(first, last, BLOCK):
        key = at + tl.arange(0, BLOCK)
        is_seen = (key >= begin) & (key < end)
        exponent = tl.load(exponents + key, is_seen, float("-inf"))
        weight = tl.load(weights + key, is_seen, 0.0)
        unit = tl.load(units + key, is_seen, 0.0)
        most, so_far = _most_counted(exponent, maximum, so_far, SO_FAR, BLOCK, TILE)
        is_counted, slot = _slots(exponent, is_seen, most, slack, LAW)
        _count(table, slot, is_counted, PACKED)
        distance = tl.where(weight > 0, maximum - exponent, 0.0)
        mass += weight
        distances += weight * distance
        distances_squared += weight * distance * distance
        square = unit * unit
        unit1 += weight * unit
        unit2 += weight * square
        unit3 += weight * square * unit
        unit4 += weight * square * square
        squares += weight * weight
        bias += tl.minimum(weight, least)
        is_larger = weight > largest
        largest = tl.where(is_larger, weight, largest)
        largest_at = tl.where(is_larger, key, largest_at)
        more, before = _additions(weight, before, at, last, GROWN, BLOCK, TILE)
        additions += more
    tl.store(sums, tl.sum(mass))
    tl.store(sums + count, tl.sum(distances))
    tl.store(sums + 2 * count, tl.sum(distances_squared))
    tl.store(sums + 3 * count, tl.sum(unit1))
    tl.store(sums + 4 * count, tl.sum(unit2))
    tl.store(sums + 5 * count, tl.sum(unit3))
    tl.store(sums + 6 * count, tl.sum(unit4))
    tl.store(sums + 7 * count, tl.sum(squares))
    tl.store(sums + 9 * count, tl.sum(bias))
    tl.store(sums + 10 * count, additions)
    most_weight = tl.max(largest)
    return most_weight, tl.min(tl.where(largest == most_weight, largest_at, 2147483647))


@triton.jit
def _vary_row(
    exponents,
    weights,
    variances,
    table,
    numbers,
    ranges,
    factors,
    most_weight,
    LAW: tl.constexpr,
    SO_FAR: tl.constexpr,
    PACKED: tl.constexpr,
    TIED: tl.constexpr,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
):
    """Stores the variances of a row; returns Σ n w² and how many keys may be the heaviest."""
    maximum, slack, least = numbers
    begin, end, first, last = ranges
    relative, of_exponential = factors
    alike = tl.zeros([BLOCK], tl.float64)
    ties = tl.zeros([BLOCK], tl.int32)
    so_far = tl.full([], float("-inf"), tl.float64)
    for at in range(first, last, BLOCK):
        key = at + tl.arange(0, BLOCK)
        is_seen = (key >= begin) & (key < end)
        exponent = tl.load(exponents + key, is_seen, float("-inf"))
        weight = tl.load(weights + key, is_seen, 0.0)
        most, so_far = _most_counted(exponent, maximum, so_far, SO_FAR, BLOCK, TILE)
        is_counted, slot = _slots(exponent, is_seen, most, slack, LAW)
        number = _counted(table, slot, is_counted, PACKED)
        square = weight * weight
        alike += number * square
        moved = relative * weight + least
        variance = number * (moved * moved / 3 + of_exponential * square)
        tl.store(variances + key, tl.where(is_seen, variance, 0.0), key < last)
        ties += (is_seen & (weight >= most_weight * TIED)).to(tl.int32)
    return tl.sum(alike), tl.sum(ties).to(tl.float64)


@triton.jit
def total_rows(
    exponents,
    weights,
    variances,
    units,
    tables,
    of_rows,
    constants,
    begins,
    ends,
    group_begins,
    group_ends,
    sums,
    heaviest,
    count,
    rows,
    keys,
    LAW: tl.constexpr,
    GROWN: tl.constexpr,
    TIED: tl.constexpr,
    SO_FAR: tl.constexpr,
    PACKED: tl.constexpr,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
):
    """The sums of ``RowTotals`` of rows that programs take turns at; each has a table of its own.

    ``of_rows`` is maximum, slack and least of each row, ``constants`` relative and of_exponential; ``sums``
    [12, rows] ends in how many keys may be the heaviest. Two counts share a word of a table where that holds
    as many keys.
    """
    program = tl.program_id(0)
    words: tl.constexpr = (1 << LAW[1]) >> (1 if PACKED else 0)
    table = tables + program.to(tl.int64) * words
    factors = tl.load(constants), tl.load(constants + 1)
    for turn in range(program, count, tl.num_programs(0)):
        row = tl.zeros([], tl.int64) + turn
        at = row % rows
        first, last = tl.load(group_begins + at), tl.load(group_ends + at)
        ranges = tl.load(begins + at), tl.load(ends + at), first, last
        slack, least = tl.load(of_rows + count + row), tl.load(of_rows + 2 * count + row)
        numbers = tl.load(of_rows + row), slack, least
        base = row * keys
        most_weight, heaviest_at = _sum_row(
            exponents + base,
            weights + base,
            units + row // rows * keys,
            table,
            numbers,
            ranges,
            sums + row,
            count,
            LAW,
            SO_FAR,
            PACKED,
            GROWN,
            BLOCK,
            TILE,
        )
        tl.store(heaviest + row, tl.minimum(heaviest_at, keys - 1).to(tl.int64))
        tl.debug_barrier()
        alike, ties = _vary_row(
            exponents + base,
            weights + base,
            variances + base,
            table,
            numbers,
            ranges,
            factors,
            most_weight,
            LAW,
            SO_FAR,
            PACKED,
            TIED,
            BLOCK,
            TILE,
        )
        tl.store(sums + 8 * count + row, alike)
        tl.store(sums + 11 * count + row, ties)
        _clear(variances + base, 0, first, BLOCK)
        _clear(variances + base, last, keys, BLOCK)
        tl.debug_barrier()
        _clear(table, 0, words, 4 * BLOCK)
        tl.debug_barrier()


@triton.jit
def multiply_rows(
    products,
    weights,
    sums,
    begins,
    ends,
    rows,
    keys,
    directions,
    count,
    BLOCK: tl.constexpr,
):
    """The sums of ``Moments`` of one row and direction a program: ``products`` X·v are [heads, directions,
    rows, keys].
    """
    # Programs side by side read the same weights.
    turn = tl.program_id(0).to(tl.int64)
    direction, row = turn % directions, turn // directions % rows
    head = turn // directions // rows
    program = (head * directions + direction) * rows + row
    begin, end = tl.load(begins + row), tl.load(ends + row)
    products += program * keys
    weights += (head * rows + row) * keys
    squares = tl.zeros([BLOCK], tl.float64)
    crossed = tl.zeros([BLOCK], tl.float64)
    absolute = tl.zeros([BLOCK], tl.float64)
    for at in range(begin // BLOCK * BLOCK, end, BLOCK):
        key = at + tl.arange(0, BLOCK)
        is_seen = (key >= begin) & (key < end)
        weight = tl.load(weights + key, is_seen, 0.0)
        product = weight * tl.load(products + key, is_seen, 0.0)
        squares += product * product
        crossed += product * weight
        absolute += tl.abs(product)
    tl.store(sums + program, tl.sum(squares))
    tl.store(sums + count + program, tl.sum(crossed))
    tl.store(sums + 2 * count + program, tl.sum(absolute))
