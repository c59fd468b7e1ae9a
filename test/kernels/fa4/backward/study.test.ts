/**
 * What the shortcuts of FlashAttention-4's backward cost: the figures of docs/theory/trade-offs-backward.md. `STUDY=1` makes the
 * problems of the page and prints its tables; otherwise small ones are tried against what the page says.
 */
import { describe, expect } from 'vitest';
import {
  backwardFormat,
  fa4BackwardConfiguration,
  type Fa4BackwardConfiguration,
} from '../../../../kernels/fa4/backward/configuration.js';
import { fa4BackwardRecipe } from '../../../../kernels/fa4/backward/model.js';
import { runKernelModel } from '../../../../kernels/index.js';
import {
  createBackward,
  scaledPatterns,
} from '../../../../kernels/online-softmax/backward/backward.js';
import { addTile } from '../../../../kernels/online-softmax/backward/tile-sums.js';
import { decodeTensor } from '../../../../src/formats/index.js';
import { lazily } from '../../../../src/reuse.js';
import { problemShape, type Tensor } from '../../../../src/problem/index.js';
import {
  filledProblem,
  sumNormalNumbers,
  tensor,
  uniformNumbers,
} from '../../../setup/problems.js';
import {
  gradientsWith,
  rootMeanSquare,
  type ShortcutGradients,
  type Shortcuts,
} from './shortcuts.js';
import { turns } from '../../../setup/turns.js';

const inTurn = turns(import.meta.url);

const isStudy = process.env['STUDY'] !== undefined;
const names = ['dq', 'dk', 'dv'] as const;

/** A line of a table, printed for the page. */
function print(...cells: readonly (string | number)[]): void {
  if (isStudy)
    console.info(
      `| ${cells.map((cell) => (typeof cell === 'number' ? cell.toPrecision(3) : cell)).join(' | ')} |`,
    );
}

/** A problem of normal numbers of one head, with what FlashAttention-4's forward stores of it. */
function studied(seed: number, length: number, dim: number, spread: number) {
  const normal = sumNormalNumbers(uniformNumbers(seed));
  const fills = { q: () => spread * normal(), k: normal, v: normal };
  const problem = filledProblem({ queries: length, keys: length, dim }, fills);
  const dout = tensor('bf16', problem.q.shape, normal);
  const forward = (frequency: string) =>
    runKernelModel('fa4', problem, new Map([['exp2.frequency', frequency]]));
  return { problem, dout, polynomial: forward('16'), hardware: forward('0') };
}

describe.each([
  ['normal', 1],
  ['sharp', 8],
])('shortcuts one by one, %s scores', (name, spread) => {
  const length = isStudy ? 512 : 96;
  const made = lazily(() => {
    const of = studied(7, length, 128, spread);
    return { ...of, exact: gradientsWith(of.problem, of.dout, {}) };
  });
  const error = (shortcuts: Shortcuts) => {
    const { problem, dout, exact } = made();
    const given = gradientsWith(problem, dout, shortcuts);
    return Object.fromEntries(
      names.map((of) => [
        of,
        rootMeanSquare(given[of], exact[of]) /
          rootMeanSquare(exact[of], new Float64Array(exact[of].length)),
      ]),
    ) as Record<(typeof names)[number], number>;
  };
  inTurn('add up like independent errors', () => {
    const { polynomial, hardware } = made();
    const shortcuts: Readonly<Record<string, Shortcuts>> = {
      'the stored LSE, forward by hardware': { storedLse: hardware.lse },
      'the stored LSE, forward with the polynomial': { storedLse: polynomial.lse },
      'P by hardware, from the LSE of the polynomial': {
        storedLse: polynomial.lse,
        hardwareExp2: true,
      },
      'D of the stored O': { storedOut: polynomial.out },
      'dS in bf16': { roundsDerivatives: true },
      'P in bf16': { roundsWeights: true },
      'results in bf16': { roundsOutput: true },
    };
    const errors = Object.entries(shortcuts).map(([of, each]) => [of, error(each)] as const);
    const together = error({
      storedLse: polynomial.lse,
      hardwareExp2: true,
      storedOut: polynomial.out,
      roundsDerivatives: true,
      roundsWeights: true,
      roundsOutput: true,
    });
    for (const [of, { dq, dk, dv }] of errors) print(name, of, dq, dk, dv);
    print(name, 'all', together.dq, together.dk, together.dv);
    for (const of of names) {
      const squares = errors.slice(2).reduce((sum, [, each]) => sum + each[of] ** 2, 0);
      expect(Math.sqrt(squares) / together[of], of).toBeGreaterThan(0.85);
      expect(Math.sqrt(squares) / together[of], of).toBeLessThan(1.15);
    }
  });

  inTurn('ΣP differs from 1 by more where the forward has another exp2', () => {
    const { problem, dout, polynomial, hardware } = made();
    const deviation = ({ lse }: { readonly lse: Tensor }) => {
      const { weightSums }: ShortcutGradients = gradientsWith(problem, dout, {
        storedLse: lse,
        hardwareExp2: true,
      });
      return rootMeanSquare(
        weightSums,
        weightSums.map(() => 1),
      );
    };
    print(name, 'rms of ΣP − 1', deviation(hardware), deviation(polynomial));
    expect(deviation(polynomial)).toBeGreaterThan(deviation(hardware));
    expect(deviation(polynomial)).toBeLessThan(2 ** -14);
  });
});

/** FlashAttention-4's backward on a studied problem. */
function backwardOf(
  { problem, dout, polynomial }: ReturnType<typeof studied>,
  configuration: Partial<Fa4BackwardConfiguration>,
) {
  const shape = problemShape(problem);
  const chosen = fa4BackwardConfiguration(shape, configuration);
  const recipe = fa4BackwardRecipe(problem, backwardFormat(problem, shape, dout), chosen);
  const backward = createBackward(problem, shape, recipe, { dout, ...polynomial });
  return { recipe, backward };
}

const asNumbers = (data: Uint16Array): Float64Array =>
  decodeTensor({ format: 'bf16', shape: [data.length], data });

/** How many patterns differ, and the root mean square of the differences by that of the errors. */
function compare(a: Uint16Array, b: Uint16Array, exact: Float64Array) {
  const differing = a.filter((pattern, i) => pattern !== b[i]).length / a.length;
  const [x, y] = [asNumbers(a), asNumbers(b)];
  return { differing, size: rootMeanSquare(x, y) / rootMeanSquare(x, exact) };
}

describe('orders of sums', () => {
  const deterministic = { deterministic: true } as const;
  const made = lazily(() => {
    const chosen = studied(11, isStudy ? 1024 : 384, 128, 1);
    const exact = gradientsWith(chosen.problem, chosen.dout, {});
    return { chosen, exact, one: backwardOf(chosen, { ...deterministic, ctas: 1 }) };
  });

  inTurn('one CTA or two: dQ alone differs, by less than it errs', () => {
    const { chosen, exact, one } = made();
    const alone = one.backward.run(0);
    const paired = backwardOf(chosen, { ...deterministic, ctas: 2 }).backward.run(0);
    expect(paired.dk).toEqual(alone.dk);
    expect(paired.dv).toEqual(alone.dv);
    const { differing, size } = compare(paired.dq, alone.dq, exact.dq);
    print('two CTAs against one', 'dQ that differ', differing, 'rms of that by rms error', size);
    expect(differing).toBeGreaterThan(0);
    expect(size).toBeLessThan(0.2);
    const errors = [alone, paired].map(({ dq }) => rootMeanSquare(asNumbers(dq), exact.dq));
    print('rms error of dQ, one CTA and two', ...errors);
    expect(errors[1] / errors[0]).toBeGreaterThan(0.98);
    expect(errors[1] / errors[0]).toBeLessThan(1.02);
  });

  inTurn('any order: runs differ in few bits, by less than they err', () => {
    const { exact, one } = made();
    const { recipe, backward } = one;
    const { qkDim, queries } = backward.shape;
    const tiles = new Map<number, Float32Array[]>();
    backward.passes.run([0], {
      tile: ({ first }, tile) => tiles.set(first, [...(tiles.get(first) ?? []), tile.slice()]),
    });
    const random = uniformNumbers(3);
    const run = () => {
      const dq = new Float32Array(queries * qkDim);
      for (const [first, ofBlock] of tiles)
        for (const tile of ofBlock
          .map((each) => [random(), each] as const)
          .sort(([a], [b]) => a - b)
          .map(([, each]) => each))
          addTile(dq.subarray(first * qkDim, first * qkDim + tile.length), tile);
      return { sums: dq, patterns: scaledPatterns(dq, recipe.softmaxScale, recipe.format) };
    };
    const fixed = backward.run(0).dq;
    const runs = Array.from({ length: isStudy ? 20 : 4 }, run);
    const compared = runs.map(({ patterns }) => compare(patterns, fixed, exact.dq));
    const [{ sums }] = runs;
    const ofSums = runs.map(
      (each) => each.sums.filter((sum, i) => sum !== sums[i]).length / sums.length,
    );
    const mean = (of: 'differing' | 'size') =>
      compared.reduce((sum, each) => sum + each[of], 0) / compared.length;
    print('a random order against the fixed one', mean('differing'), mean('size'));
    print('fp32 sums of two random orders that differ', Math.max(...ofSums));
    expect(Math.max(...ofSums)).toBeGreaterThan(0.1);
    expect(mean('differing')).toBeLessThan(0.02);
    expect(mean('size')).toBeLessThan(0.1);
  });
});
