import { expect, it } from 'vitest';
import { laneInstructions } from '../../../src/ptx/instructions/index.js';
import { parsePtx } from '../../../src/ptx/syntax/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { markOf, randomModule } from './random-kernel.js';
import { runRandomKernel } from './run-random.js';

// The same kernels run on a GPU by fixtures/capture/ptx/random_kernels.py.
it('random kernels of all lane instructions come to their end without findings, with the same bits again', () => {
  const seeds = Array.from({ length: scaled(10) }, (_, i) => (testSeed % 1e6) + i + 1);
  const rows = laneInstructions().filter(({ evidence }) => evidence === 'silicon');
  const module = parsePtx(randomModule(seeds, rows));
  for (const seed of seeds)
    expect(markOf(runRandomKernel(module, seed))).toBe(markOf(runRandomKernel(module, seed)));
});
