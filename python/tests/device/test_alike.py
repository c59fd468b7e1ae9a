"""Which rows may err alike: those that agree in every column, and no others."""

from __future__ import annotations

import pytest
import torch

from flashproof.device.alike import row_units


@pytest.mark.parametrize("columns", [1, 3, 9])
@pytest.mark.parametrize("values", [1, 2, 40])
def test_rows_have_one_number_where_they_agree_in_every_column(columns: int, values: int) -> None:
    generator = torch.Generator().manual_seed(columns + 10 * values)

    def drawn(*shape: int) -> torch.Tensor:
        return torch.randint(-values, values, shape, generator=generator).double()

    rows = 200
    # Cells of whole numbers: fine is 2^8 for bf16, and outputs count in quarters of that.
    head = torch.arange(2).repeat_interleave(rows // 2)
    lse, maximum, out = drawn(rows) / 2**8, drawn(rows) / 2**8, drawn(rows, columns) / 2**10
    is_open = torch.zeros(rows, dtype=torch.bool)
    is_clustered = torch.rand(rows, generator=generator) < 0.1
    numbers = row_units(
        head, lse, maximum, out, torch.ones_like(out), (is_clustered, is_open), 8
    ).tolist()
    # Of an output the first four columns count.
    names = [
        (
            int(head[i]),
            *(
                ("clustered",)
                if is_clustered[i]
                else (float(lse[i]), float(maximum[i]), *out[i, :4].tolist())
            ),
        )
        for i in range(rows)
    ]
    for i in range(rows):
        assert [numbers[i] == one for one in numbers] == [names[i] == one for one in names]
