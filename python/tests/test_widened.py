import numpy as np
import pytest

from flashproof.arrays import to_array
from flashproof.safetensors import write
from flashproof.widened import load, save

ml_dtypes = pytest.importorskip("ml_dtypes")


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_every_number_of_16_bits_is_itself_in_fp32(dtype, tmp_path):
    every = np.arange(2**16, dtype=np.uint16).view(dtype).reshape(256, 256)
    write(tmp_path / "file", {"q": to_array(every)})
    found = load(tmp_path / "file")["q"]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, every.astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.bool_])
def test_others_are_as_they_were_saved(dtype, tmp_path):
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    save(tmp_path / "file", array=array, empty=array[:0])
    found = load(tmp_path / "file")
    assert list(found) == ["array", "empty"]
    assert found["array"].dtype == dtype and found["empty"].shape == (0, 3)
    np.testing.assert_array_equal(found["array"], array)


def test_what_numpy_has_no_numbers_of_is_refused(tmp_path):
    write(tmp_path / "file", {"k": to_array(np.ones(4, ml_dtypes.float8_e4m3fn))})
    with pytest.raises(TypeError, match="k is F8_E4M3; .*BF16"):
        load(tmp_path / "file")
