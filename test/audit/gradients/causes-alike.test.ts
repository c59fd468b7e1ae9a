import { describe, expect } from 'vitest';
import { auditGradients, type GradientTensors } from '../../../src/audit/index.js';
import { decodeTensor } from '../../../src/formats/index.js';
import type { Problem, Tensor } from '../../../src/problem/index.js';
import { normalProblem, seededRandom } from '../../kernels/features/index.js';
import { drawDout, faultyBackwards } from '../../kernels/gradients/index.js';
import { testSeed } from '../../setup/effort.js';
import { encode } from '../damage.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

type Judged = 'dq' | 'dk' | 'dv';

const draw = () =>
  normalProblem(seededRandom(testSeed), {
    batch: 1,
    heads: 2,
    kvHeads: 1,
    queries: 70,
    keys: 150,
  });
const dim = 16;

function changed(tensor: Tensor, change: (values: Float64Array) => Float64Array): Tensor {
  return encode(change(decodeTensor(tensor)), tensor.format, tensor.shape);
}

/** Both heads those of the first. */
const repeated = (tensor: Tensor) =>
  changed(tensor, (values) => values.map((_, i) => values[i % (values.length / 2)]));

/** All causes that an audit names for some gradients of a faulty kernel. */
function causesOf(name: string, problem: Problem, dout: Tensor, judged: readonly Judged[]) {
  const { kernel } = faultyBackwards.find((one) => one.name === name)!;
  const outputs = kernel(problem, dout);
  const given = Object.fromEntries(judged.map((one) => [one, outputs[one]]));
  const { verdict } = auditGradients(problem, { dout, ...given } as GradientTensors);
  expect(verdict.pass).toBe(false);
  const { id, equivalents } = verdict.diagnosis!;
  return [id, ...equivalents];
}

describe('causes that give the same gradients are named together', () => {
  inTurn('one head of a group, and the mean over heads that are the same', () => {
    const problem = draw();
    const same = { ...problem, q: repeated(problem.q) };
    const dout = repeated(drawDout(seededRandom(testSeed + 1), problem));
    const causes = causesOf('one-head-of-group', same, dout, ['dk', 'dv']);
    expect(new Set(causes)).toEqual(new Set(['group-mean', 'group-one-head']));
  });

  inTurn('a tile of keys, and D, where all keys are nearly one and only dQ is given', () => {
    const problem = draw();
    const offset = 200;
    const near = {
      ...problem,
      k: changed(problem.k, (values) => values.map((x) => x + offset)),
      scale: 1 / (offset * Math.sqrt(dim)),
    };
    const dout = drawDout(seededRandom(testSeed + 1), problem);
    expect(causesOf('key-tile-missing', near, dout, ['dq'])).toContain('key-tile-missing');
    expect(causesOf('key-tile-missing', near, dout, ['dq', 'dk'])).toEqual(['key-tile-missing']);
  });

  inTurn(
    'a tile of queries, and a factor, where all queries are one: the tile alone has a name',
    () => {
      const problem = draw();
      const one = {
        ...problem,
        q: changed(problem.q, (values) => values.fill(0)),
      };
      const dout = changed(drawDout(seededRandom(testSeed + 1), problem), (values) =>
        values.fill(1),
      );
      expect(causesOf('query-tile-missing', one, dout, ['dv'])).toEqual(['query-tile-missing']);
    },
  );
});
