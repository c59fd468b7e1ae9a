import { expect, it } from 'vitest';
import { headOperands } from '../../../src/audit/bounds/head-operands.js';
import { keyTiles } from '../../../src/audit/bounds/key-tiles.js';
import { createScoreTiles } from '../../../src/audit/bounds/score-tiles.js';
import { createBoundMemory, tileRows } from '../../../src/audit/bounds/memory.js';
import { fa4Arithmetic } from '../../../src/audit/index.js';
import { normalProblem } from '../../../src/bench/normal-problem.js';
import { problemMask, problemShape } from '../../../src/problem/index.js';

it.each([
  ['a few tiles, the last of them cut', 300],
  ['more tiles than a scan keeps', 66 * 64],
])('scores after a scan are those computed without one, bit by bit: %s', (_, seqlen) => {
  const plain = normalProblem('bf16', { heads: 1, seqlen, dim: 4 });
  const arithmetic = fa4Arithmetic(plain);
  // FlashAttention-4 has no softcap, the scores may.
  const problem = { ...plain, softcap: 5 };
  const shape = problemShape(problem);
  const make = () => {
    const memory = createBoundMemory(shape.qkDim, shape.vDim, shape.keys);
    return { memory, scoreTiles: createScoreTiles(problem, shape, arithmetic, memory) };
  };
  const [scanned, fresh] = [make(), make()];
  const [operands] = [...headOperands(problem, shape, arithmetic)];
  // Without a mask every row sees the same tiles.
  const ranges = Array.from({ length: tileRows }, (_, i) =>
    problemMask(problem, shape).ranges(0, i),
  );
  const tiles = keyTiles(arithmetic, ranges);
  // A second block of rows must not see the scores of the first.
  for (const firstRow of [0, tileRows]) {
    const noneNegligible = new Float64Array(tileRows).fill(-Infinity);
    for (const { scoreTiles } of [scanned, fresh])
      scoreTiles.load(operands, firstRow, noneNegligible);
    scanned.scoreTiles.scan(tiles, ranges);
    for (const tile of tiles) {
      for (const { scoreTiles } of [scanned, fresh]) scoreTiles.score(tile, ranges);
      for (const name of ['scores', 'scoreError', 'low', 'high'] as const)
        expect(
          scanned.memory[name].view.every((x, i) => Object.is(x, fresh.memory[name].view[i])),
          name,
        ).toBe(true);
      expect(scanned.memory.scores.view.some((score) => score !== 0)).toBe(true);
      // As the weighing does: what is kept is a copy.
      scanned.memory.scores.view.fill(0);
    }
  }
});
