import { describe, expect, it } from 'vitest';
import {
  kernelModels,
  naiveInputModel,
  runKernelModel,
  type KernelModel,
} from '../../../kernels/index.js';
import type { AttentionKernel } from '../../../properties/index.js';
import {
  decodeTensor,
  encodeFromFloat64,
  formats,
  patternsOf,
  unitRoundoff,
  type Tensor,
} from '../../../src/formats/index.js';
import { problemFeatures, type Problem } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import { sampled, testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { definedAttention } from './defined-attention.js';
import { featureKernel } from './feature-kernel.js';
import { featureProblems, seededRandom } from './feature-problems.js';

const inTurn = turns(import.meta.url);

const names = sampled(Object.keys(featureProblems), 12);
const drawn = new Map(
  names.map((name) => {
    const problem = featureProblems[name](seededRandom(testSeed));
    return [name, { problem, exact: definedAttention(problem) }] as const;
  }),
);

/** The largest errors of a kernel against the definition: of O relative to the largest |v|, and of the LSE. */
async function errorsOf(kernel: AttentionKernel, name: string) {
  const { problem, exact } = drawn.get(name)!;
  const { out, lse } = await kernel(problem);
  const largest = decodeTensor(problem.v).reduce((a, b) => Math.max(a, Math.abs(b)), 1);
  const ofOut = decodeTensor(out).map((x, i) => Math.abs(x - exact.out[i]) / largest);
  const ofLse = decodeTensor(lse as Tensor).map((x, i) =>
    // FlashAttention-2 has +∞ for a row without keys.
    x === exact.lse[i] || (x === Infinity && exact.lse[i] === -Infinity)
      ? 0
      : Math.abs(x - exact.lse[i]),
  );
  const most = (errors: Float64Array) =>
    errors.reduce((a, b) => (b > a || Number.isNaN(b) ? b : a), 0);
  return { out: most(ofOut), lse: most(ofLse) };
}

describe('the kernel with every feature', () => {
  inTurn.each(names)('computes %s', async (name) => {
    for (const options of [{}, { splits: 3, order: 'last-first', blockKeys: 32 }] as const) {
      const { out, lse } = await errorsOf(featureKernel({ weights: 'fp32', ...options }), name);
      // The output is bf16; of what is written in fp32 the LSE has its rounding.
      expect(out).toBeLessThan(2 ** -8);
      expect(lse).toBeLessThan(2 ** -18);
    }
  });
});

/** Whether a model takes a problem: its features, what its promises say, and no other reason against it. */
function takes(model: KernelModel, problem: Problem): boolean {
  try {
    model.prepare(problem, new Map());
  } catch (error) {
    if (error instanceof RequestError) return false;
    throw error;
  }
  const { formats: taken, softcap } = model.promises(new Map());
  return (
    problemFeatures(problem).every((feature) => model.features.includes(feature)) &&
    taken.includes(problem.q.format) &&
    (problem.softcap === null || softcap === true)
  );
}

/** The problems that a model takes; one that takes none of these sizes has tests of its own. */
const takenBy = (model: KernelModel) =>
  names.filter((name) => takes(model, drawn.get(name)!.problem));

describe.each(kernelModels.filter((model) => takenBy(model).length > 0))(
  'the kernel model $name',
  (model) => {
    const taken = takenBy(model);
    it.each(sampled(taken, 6))('computes %s', async (name) => {
      const { problem } = drawn.get(name)!;
      const { out, lse } = await errorsOf((given) => runKernelModel(model, given), name);
      const isWritten = model === naiveInputModel && problem.q.format !== 'fp32';
      // A polynomial of degree 3, and tanh.approx.
      const approximate = problem.softcap === null ? 2 ** -13 : 2 ** -8;
      // Where scores are written in 16 bits, those of ALiBi are off by a tenth.
      const written = name.startsWith('ALiBi') ? 2 ** -3 : 2 ** -5;
      const ofOutput = 2 * unitRoundoff(formats[problem.q.format]);
      expect(out).toBeLessThan(isWritten ? written : ofOutput);
      const ofLse = model.exponentials(problem, new Map()).length > 0 ? approximate : 2 ** -18;
      expect(lse).toBeLessThan(isWritten ? written : ofLse);
    });

    inTurn.each(sampled(taken, 4))('takes %s apart into techniques', (name) => {
      const { problem, exact } = drawn.get(name)!;
      const { out, lse } = runKernelModel(model, problem);
      const kernel = model.attribute(problem, new Map());
      const { vDim } = kernel.shape;
      const run = kernel.prepareRuns([new Set(kernel.techniques), new Set()]);
      const format = formats[kernel.outFormat];
      const largest = decodeTensor(problem.v).reduce((a, b) => Math.max(a, Math.abs(b)), 1);
      for (let piece = 0; piece < kernel.pieces; piece++) {
        const { firstRow, rows, outputs, lse: lses } = run(piece);
        const [first, end] = [firstRow * vDim, (firstRow + rows) * vDim];
        expect(patternsOf(encodeFromFloat64(format, outputs[0]), format)).toEqual(
          patternsOf(out.data, format).slice(first, end),
        );
        expect(Float32Array.from(lses[0])).toEqual(lse.data.slice(firstRow, firstRow + rows));
        const far = (values: Float64Array, of: Float64Array, from: number) =>
          values.findIndex(
            (x, i) => x !== of[from + i] && !(Math.abs(x - of[from + i]) < 1e-10 * largest),
          );
        expect(far(outputs[1], exact.out, first)).toBe(-1);
        expect(far(lses[1], exact.lse, firstRow)).toBe(-1);
      }
    });
  },
);
