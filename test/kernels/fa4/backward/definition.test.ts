import { describe, expect, it } from 'vitest';
import { createKeyBlock } from '../../../../kernels/online-softmax/backward/webassembly/webassembly-key-block.js';
import { createPlainKeyBlock } from '../../../../kernels/online-softmax/backward/plain-key-block.js';
import type { QueryBlock } from '../../../../kernels/online-softmax/backward/key-block.js';
import { encodeFromFloat64, formats } from '../../../../src/formats/index.js';
import { pseudorandom } from '../../../setup/problems.js';
import { backwardCases, prepareCase, runAll, smallBlocks } from './backward-cases.js';
import { turns } from '../../../setup/turns.js';

const inTurn = turns(import.meta.url);

describe('the backward in WebAssembly', () => {
  inTurn.each(backwardCases)('has the bits of its definition: $name', (chosen) => {
    const { backward } = prepareCase(chosen);
    const plain = runAll(backward({ execution: 'plain' }));
    expect(runAll(backward())).toEqual(plain);
    expect(plain.some(({ dq, dk, dv }) => [dq, dk, dv].some((of) => of.some((x) => x !== 0)))).toBe(
      true,
    );
  });

  it.each(['sm_90', 'sm_103'] as const)('has them on %s', (architecture) => {
    const { backward } = prepareCase(backwardCases[0], { architecture });
    expect(runAll(backward())).toEqual(runAll(backward({ execution: 'plain' })));
  });

  it('has them of bit patterns of every kind', () => {
    const { recipe } = prepareCase(backwardCases[0], smallBlocks);
    const dimensions = { qkDim: 32, vDim: 32 };
    const [plain, fast] = [createPlainKeyBlock, createKeyBlock].map((create) =>
      create(recipe, dimensions),
    );
    const uniform = pseudorandom(3);
    // Infinities, NaNs, subnormals and numbers of all sizes, each in some of the rows.
    const values = [Infinity, -Infinity, NaN, 0, -0, 2 ** -130, 3e38, -1e-20, 1e20, 1, -2.5];
    const patterns = (rows: number, rare: number): Uint16Array => {
      const drawn = Float64Array.from({ length: rows * 32 }, () =>
        uniform() < rare ? values[Math.floor(uniform() * values.length)] : uniform() - 0.5,
      );
      return encodeFromFloat64(formats.bf16, drawn) as Uint16Array;
    };
    for (const rare of [0, 0.005, 0.3])
      for (const rows of [16, 9]) {
        const block: QueryBlock = {
          rows,
          queries: patterns(rows, rare),
          dout: patterns(rows, rare),
          logSumExp2: Float32Array.from({ length: rows }, (_, i) => [0, 3.5, -20, Infinity][i % 4]),
          productSums: Float32Array.from({ length: rows }, () => uniform()),
          visible: Array.from({ length: rows }, (_, i) =>
            i === 3
              ? []
              : [
                  { begin: 0, end: 5 },
                  { begin: 7, end: 11 },
                ],
          ),
        };
        const [keys, of] = [patterns(11, rare), patterns(11, rare)];
        const results = [plain, fast].map((work) => {
          work.begin(keys, of);
          return { dq: work.queries(block).slice(), ...work.finish() };
        });
        expect(results[1]).toEqual(results[0]);
      }
  });
});
