import {
  broadcastStrides,
  problemMask,
  problemShape,
  type BlockMask,
  type BooleanTensor,
  type Problem,
} from '../../../src/problem/index.js';
import type { FeatureKind } from '../../problems/index.js';
import { arrangedViolation } from '../compare-runs.js';
import { NotApplicable, type Law } from '../law.js';
import { isPromised } from '../promised-problem.js';
import { indices } from '../transform-problem.js';
import { wholeSizesOf } from './sequence-problems.js';

/** The blocks that rows of a problem see some key of, listed for each head. */
export function neededBlocks(problem: Problem, blockQueries: number, blockKeys: number): BlockMask {
  const shape = problemShape(problem);
  const { batch, heads, queries, keys } = shape;
  const mask = problemMask(problem, shape);
  const rows = Math.ceil(queries / blockQueries);
  const columns = Math.ceil(keys / blockKeys);
  const counts = new Int32Array(batch * heads * rows);
  const data = new Int32Array(counts.length * columns);
  for (let head = 0; head < batch * heads; head++)
    for (let row = 0; row < rows; row++) {
      const seen = new Uint8Array(columns);
      const end = Math.min(queries, (row + 1) * blockQueries);
      for (let query = row * blockQueries; query < end; query++)
        for (const range of mask.ranges(head, query))
          seen.fill(1, Math.floor(range.begin / blockKeys), Math.ceil(range.end / blockKeys));
      const list = indices(columns).filter((column) => seen[column] === 1);
      counts[head * rows + row] = list.length;
      data.set(list, (head * rows + row) * columns);
    }
  return {
    counts: { shape: [batch, heads, rows], data: counts },
    indices: { shape: [batch, heads, rows, columns], data },
    blockQueries,
    blockKeys,
  };
}

/** The keys that each row sees, as a mask of the whole shape. */
function explicitMask(problem: Problem): BooleanTensor {
  const shape = problemShape(problem);
  const { sequences } = problem;
  const whole = wholeSizesOf(problem);
  const { batch, head, query } = broadcastStrides(whole);
  const data = new Uint8Array(whole.reduce((product, size) => product * size, 1));
  const mask = problemMask(problem, shape);
  const rowsOf = sequences ?? indices(shape.batch).map(() => null);
  rowsOf.forEach((sequence, index) => {
    const count = sequence?.queries ?? shape.queries;
    for (let h = 0; h < shape.heads; h++)
      for (let i = 0; i < count; i++) {
        const ranges =
          sequence === null
            ? mask.ranges(index * shape.heads + h, i)
            : mask.ranges(h, sequence.firstQuery + i);
        // A size of 1 has no stride, and no second element either.
        const row = index * batch + h * head + i * query;
        const first = sequence?.firstKey ?? 0;
        for (const { begin, end } of ranges) data.fill(1, row + begin - first, row + end - first);
      }
  });
  return { shape: whole, data };
}

/** All masks of a problem as one boolean mask, and the blocks that they leave beside them. */
const maskForms = [
  (problem: Problem): Problem => {
    const { segments, blockMask, keyLists, prefix, ...rest } = problem;
    void [segments, blockMask, keyLists, prefix];
    const mask = explicitMask(problem);
    if (!mask.data.includes(1)) throw new NotApplicable('no query of the problem sees a key');
    return { ...rest, causal: false, window: null, mask };
  },
  (problem: Problem): Problem => {
    if (problem.blockMask !== undefined) throw new NotApplicable('the problem has a block mask');
    return { ...problem, blockMask: neededBlocks(problem, 64, 128) };
  },
] as const;

const maskWords = [
  'with all masks as one boolean mask',
  'with the blocks of 64 × 128 that some query sees',
] as const;

/** Masks in place of a causal mask, a window, documents and blocks, and blocks beside them. */
export const maskTensors: Law = {
  statement:
    'Causal masks, windows, documents and blocks are the boolean mask and the blocks that they are',
  reason:
    'Masks that hide the same keys are the same problem. A kernel that ignores a mask, takes blocks for all there is or skips one too many differs.',
  strengths: ['bits', 'bound'],
  usual: 'bound',
  choices: maskForms.length,
  notFor: ({ features }) =>
    features.includes('mask') || features.includes('block-mask')
      ? null
      : 'neither boolean nor block masks are promised',
  violation: async ({ problem, choice }, tools) => {
    const isTensor = choice % maskForms.length === 0;
    const needed: FeatureKind = isTensor ? 'mask' : 'block-mask';
    if (!tools.promises.features.includes(needed))
      throw new NotApplicable(`a ${isTensor ? 'boolean' : 'block'} mask is not promised`);
    if (!isTensor && problem.sequences !== undefined)
      throw new NotApplicable('packed sequences have no block mask');
    const transformed = maskForms[choice % maskForms.length](problem);
    if (!isPromised(transformed, tools.promises))
      throw new NotApplicable('what it makes of the problem is not promised');
    return arrangedViolation({ problem, transformed, words: maskWords[choice] }, tools);
  },
};
