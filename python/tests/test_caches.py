"""Writes into caches judged from Python."""

import ml_dtypes
import numpy as np
import pytest

from flashproof import RequestError, assert_cache_write, audit_cache_write

TOKENS, HEADS, DIM, BLOCKS, BLOCK = 5, 4, 32, 3, 8
SLOTS = np.array([8, 9, 2, -1, 17], np.int64)


def tokens():
    random = np.random.default_rng(1)
    return [
        random.standard_normal((TOKENS, HEADS, DIM)).astype(ml_dtypes.bfloat16) for _ in range(2)
    ]


def old(dtype, *shape):
    random = np.random.default_rng(2)
    return random.integers(0, 100, shape, np.uint8).astype(np.float32).astype(dtype)


def store(k, v, slots=SLOTS):
    """A right write of e4m3 with a factor a token and head."""
    given = {"k": k, "v": v, "slot_mapping": SLOTS}
    for name, cache, x in (("k", "key_cache", k), ("v", "value_cache", v)):
        numbers = old(ml_dtypes.float8_e4m3fn, BLOCKS, BLOCK, HEADS, DIM)
        factors = old(np.float32, BLOCKS, BLOCK, HEADS)
        given[f"{cache}_before"] = numbers.copy()
        given[f"{name}_scale_before"] = factors.copy()
        wide = x.astype(np.float32)
        scale = np.abs(wide).max(-1) / np.float32(448)
        for token, slot in enumerate(slots):
            if slot < 0:
                continue
            block, offset = divmod(int(slot), BLOCK)
            quotient = wide[token] / scale[token][:, None]
            numbers[block, offset] = quotient.astype(ml_dtypes.float8_e4m3fn)
            factors[block, offset] = scale[token]
        given[cache], given[f"{name}_scale"] = numbers, factors
    return given


def test_a_right_write_passes_and_says_its_rule():
    report = assert_cache_write(**store(*tokens()))
    assert report.passed and report.status == "PASS"
    assert "factors of k are amax/448 by token and head" in " ".join(report.text.split())


def test_a_wrong_slot_fails_with_its_cause(kept):
    given = store(*tokens(), slots=np.where(SLOTS < 0, SLOTS, SLOTS + 1))
    report = audit_cache_write(**given)
    assert not report.passed
    assert "1 slot behind" in report.text
    with pytest.raises(AssertionError, match="Again: "):
        assert_cache_write(**given)
    assert len(list(kept.iterdir())) == 1


def test_settings_are_the_contracts_notes():
    given = store(*tokens())
    assert audit_cache_write(**given, settings={"scale_rule": "amax", "scale_floor": "none"}).passed
    assert not audit_cache_write(**given, settings={"scale_rule": "power-up"}).passed
    with pytest.raises(RequestError, match="give one of given, amax"):
        audit_cache_write(**given, settings={"scale_rule": "max"})
    with pytest.raises(TypeError, match="settings is 'amax'"):
        audit_cache_write(**given, settings="amax")
    with pytest.raises(TypeError, match="unexpected keyword argument 'cache'"):
        audit_cache_write(**given, cache=1)
