import { describe, expect, it } from 'vitest';
import { naiveGradients, type BackwardGradients } from '../../kernels/index.js';
import { decodeTensor, encodeFromFloat64, formats, type Tensor } from '../../src/formats/index.js';
import { RequestError } from '../../src/request-error.js';
import { readCapturedGradients, type KernelGradients } from '../fixtures/captured-gradients.js';
import { readGradientsManifest } from '../fixtures/gradients-manifest.js';
import { sampled, testSeed } from '../setup/effort.js';
import { featureProblems, normalProblem, seededRandom } from './features/index.js';
import { drawDout, exactGradients, gradientError, gradientsOf } from './gradients/index.js';

const names = Object.keys(featureProblems);
const drawn = (name: string) => featureProblems[name](seededRandom(testSeed));
const samples = names.filter((name) => drawn(name).rows !== undefined);
const isTable = process.env['GRADIENTS_TABLE'] !== undefined;

describe('the textbook backward', () => {
  it.each(sampled(names, 6).filter((name) => !samples.includes(name)))(
    'is near the exact gradients of %s',
    (name) => {
      const problem = drawn(name);
      const { format } = problem.q;
      const dout = drawDout(seededRandom(testSeed + 1), problem);
      const exact = exactGradients(problem, dout);
      const whole = naiveGradients(problem, dout, 'fp32');
      const passes = naiveGradients(problem, dout, 'bf16');
      for (const of of gradientsOf) {
        // e4m3 keeps 4 bits of the result, and small gradients underflow in it.
        const u = format === 'e4m3' ? 2 ** -4 : 2 ** -9;
        expect(gradientError(whole[of], exact, of) / u, of).toBeLessThan(1);
        // Scores of ten and more, with ALiBi, are rounded to 8 bits in each of their passes.
        expect(gradientError(passes[of], exact, of) / u, of).toBeLessThan(4);
      }
    },
  );

  it('is as exact as fp32 in fp32, and less so with 16 bits between its passes', () => {
    const random = seededRandom(testSeed);
    const problem = normalProblem(random, { batch: 1, queries: 40, format: 'fp32' });
    const dout = drawDout(random, problem);
    const exact = exactGradients(problem, dout);
    const errors = (intermediate: 'fp32' | 'fp16' | 'bf16') => {
      const given = naiveGradients(problem, dout, intermediate);
      return gradientsOf.map((of) => gradientError(given[of], exact, of));
    };
    const [whole, half, bfloat] = [errors('fp32'), errors('fp16'), errors('bf16')];
    gradientsOf.forEach((_, i) => {
      expect(whole[i]).toBeLessThan(2 ** -22);
      expect(half[i] / whole[i]).toBeGreaterThan(100);
      expect(bfloat[i] / half[i]).toBeGreaterThan(4);
      expect(bfloat[i] / half[i]).toBeLessThan(16);
    });
  });

  it('is linear in powers of two of dO, to the last bit', () => {
    const random = seededRandom(testSeed);
    const problem = { ...normalProblem(random), softcap: 3 };
    const dout = drawDout(random, problem);
    const times = (factor: number): Tensor => ({
      ...dout,
      data: encodeFromFloat64(
        formats[dout.format],
        decodeTensor(dout).map((x) => factor * x),
      ),
    });
    const once = naiveGradients(problem, dout, 'bf16');
    const eightfold = naiveGradients(problem, times(8), 'bf16');
    const none = naiveGradients(problem, times(0), 'bf16');
    for (const of of gradientsOf) {
      expect(decodeTensor(eightfold[of])).toEqual(decodeTensor(once[of]).map((x) => 8 * x));
      expect(decodeTensor(none[of]).every((x) => x === 0)).toBe(true);
    }
  });

  it('refuses a sample of rows, and a dO of another shape', () => {
    const problem = drawn(samples[0]);
    const dout = drawDout(seededRandom(testSeed), problem);
    expect(() => naiveGradients(problem, dout, 'fp32')).toThrow(RequestError);
    const whole = normalProblem(seededRandom(testSeed));
    expect(() => naiveGradients(whole, dout, 'fp32')).toThrow(/dout has shape/);
  });
});

describe('with fp32 between its passes it has the errors of the captured "math" backend', () => {
  const files = readGradientsManifest().files.filter(({ outputs }) =>
    outputs.includes('torch_math'),
  );
  const small = files.filter(({ bytes }) => bytes < 1e6);

  /** Root mean squares of both kernels' errors, their ratio, and the share of elements that are equal but for fp32's errors. */
  function compare(
    given: BackwardGradients,
    captured: KernelGradients,
    exact: ReturnType<typeof exactGradients>,
    of: (typeof gradientsOf)[number],
  ) {
    const [own, theirs] = [decodeTensor(given[of]), decodeTensor(captured[of])];
    const { magnitude } = exact[of]!;
    // Where all cancels, what is left is fp32's rounding errors, and those are each kernel's own.
    const isNear = (x: number, i: number) => Math.abs(x - theirs[i]) <= 2 ** -18 * magnitude[i];
    const equal = own.filter(isNear).length / own.length;
    const ratio = gradientError(given[of], exact, of) / gradientError(captured[of], exact, of);
    return { equal, ratio };
  }

  it.each((isTable ? files : sampled(small, 2)).map(({ name }) => name))('%s', async (name) => {
    const { problem, dout, kernels } = await readCapturedGradients(name);
    const given = naiveGradients(problem, dout, 'fp32');
    const exact = exactGradients(problem, dout);
    for (const of of gradientsOf) {
      const { equal, ratio } = compare(given, kernels['torch_math'], exact, of);
      if (isTable) console.info(name, of, equal.toFixed(4), ratio.toFixed(3));
      // Of fp32 both have rounding errors of their own; of 16 bits that of the result is nearly all.
      const isWide = problem.q.format === 'fp32';
      if (!isWide) expect(equal, of).toBeGreaterThan(0.98);
      expect(ratio, of).toBeGreaterThan(isWide ? 0.5 : 0.98);
      expect(ratio, of).toBeLessThan(isWide ? 2 : 1.02);
    }
  });
});
