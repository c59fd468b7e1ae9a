import { describe, expect, it } from 'vitest';
import {
  planCheck,
  tryRound,
  UnsupportedProblem,
  type AttentionKernel,
  type KernelPromises,
  type LawId,
  type RegimeName,
} from '../../../properties/index.js';
import { decodeTensor, type FormatName } from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { tensor } from '../../setup/problems.js';

const upTo = (count: number, first = 1) => Array.from({ length: count }, (_, i) => first + i);
const sizes = { batch: { max: 2 }, keys: { max: 9 }, queries: { max: 5 } } as const;

/** O of one number everywhere, in a format. */
function constant(problem: Problem, x: number, format: FormatName) {
  const { batch, heads, queries, vDim } = problemShape(problem);
  return { out: tensor(format, [batch, heads, queries, vDim], () => x) };
}

const broken: AttentionKernel = () => {
  throw new Error('it is broken');
};

interface Rounds extends KernelPromises {
  readonly law?: LawId;
  readonly seed?: number;
  readonly regimes?: readonly RegimeName[];
}

/** The results of a law in some rounds, and the problems that the kernel was asked. */
async function roundsOf(
  rounds: readonly number[],
  kernel: AttentionKernel,
  { law = 'determinism', seed = 3, regimes, ...promises }: Rounds = {},
) {
  const scope = { laws: [law], ...(regimes === undefined ? {} : { regimes }) };
  const plan = planCheck({ formats: ['fp32'], sizes, ...promises }, scope);
  const [planned] = plan.laws;
  const problems: Problem[] = [];
  const results = [];
  for (const round of rounds)
    results.push(
      await tryRound(
        { planned, promises: plan.promises, seed },
        round,
        (problem, conditions) => {
          problems.push(problem);
          return kernel(problem, conditions);
        },
        0,
      ),
    );
  return { results, problems, planned };
}

type Results = Awaited<ReturnType<typeof roundsOf>>['results'];

const failuresOf = (results: Results) =>
  results.map((result) => (result.status === 'tried' ? result.failure : null));
const textOf = ({ q, k, v, causal, window }: Problem) =>
  JSON.stringify([[q, k, v].map((one) => [one.shape, [...decodeTensor(one)]]), causal, window]);

describe('the problem of a round', () => {
  it('is of each regime in turn, in an order of the law and the seed', async () => {
    const known = planCheck({ formats: ['fp32'], sizes }).laws[0].regimes.slice(0, 5);
    const count = known.length;
    const orders = [];
    for (const law of ['determinism', 'within-bound', 'query-order'] as const)
      for (const seed of [1, 2]) {
        const { results } = await roundsOf(upTo(2 * count), broken, {
          law,
          seed,
          regimes: known,
        });
        const failures = failuresOf(results);
        expect(failures.map((failure) => failure?.round)).toEqual(upTo(2 * count));
        const order = failures.map((failure) => failure!.regime);
        expect([...order.slice(0, count)].sort()).toEqual([...known].sort());
        expect(order.slice(count)).toEqual(order.slice(0, count));
        orders.push(order.join());
      }
    expect(new Set(orders).size).toBeGreaterThan(2);
  });

  it('follows from the seed, the law and the round, and from nothing else', async () => {
    const texts = async (rounds: readonly number[], of: Rounds = {}) => {
      const { results } = await roundsOf(rounds, broken, { regimes: ['normal'], ...of });
      return failuresOf(results).map((failure) => textOf(failure!.lawCase.problem));
    };
    const forward = await texts([1, 2, 3, 4, 5]);
    expect(await texts([5, 4, 3, 2, 1])).toEqual([...forward].reverse());
    expect(new Set(forward).size).toBe(5);
    for (const other of [{ seed: 4 }, { law: 'within-bound' }] as const)
      for (const text of await texts([1, 2, 3, 4, 5], other)) expect(forward).not.toContain(text);
  });

  it('has special values in one round of eight, where these are promised', async () => {
    const special = async (specialValues: boolean) => {
      const found = new Set<number>();
      for (const seed of upTo(3))
        for (const round of upTo(16)) {
          const { problems } = await roundsOf([round], broken, {
            regimes: ['normal'],
            specialValues,
            law: 'within-bound',
            seed,
          });
          const [{ q, k, v }] = problems;
          if ([q, k, v].some((one) => !decodeTensor(one).every(Number.isFinite))) found.add(round);
        }
      return found;
    };
    expect(await special(true)).toEqual(new Set([8, 16]));
    expect(await special(false)).toEqual(new Set());
  });

  it('steps by the threshold that is promised at first, then by usual ones, a turn of all regimes each', async () => {
    /** What the largest score of a block of four keys is above that of the block before, in log2; in every block and row. */
    const growths = ({ q, k, scale }: Problem) => {
      const dim = q.shape[q.shape.length - 1];
      const [queries, keys] = [decodeTensor(q), decodeTensor(k)];
      const score = (key: number) =>
        scale *
        Math.LOG2E *
        upTo(dim, 0).reduce((sum, t) => sum + queries[t] * keys[key * dim + t], 0);
      const maxima = upTo(k.shape[k.shape.length - 2] >> 2, 0).map((block) =>
        Math.max(...upTo(4, 4 * block).map(score)),
      );
      return maxima.slice(1).map((level, block) => Math.abs(level - maxima[block]));
    };
    for (const [rescaleThreshold, thresholds] of [
      [2.53, [2.5, 4, 8, 1, 0, 2.5]],
      [4, [4, 8, 1, 0, 4, 8]],
    ] as const) {
      const regimes = ['steps-above', 'normal'] as const;
      const { results } = await roundsOf(upTo(12), broken, {
        regimes,
        blockKeys: 4,
        rescaleThreshold,
        causal: false,
        window: false,
        scales: ['odd'],
        sizes: { keys: { min: 8, max: 12 }, queries: { min: 1, max: 2 } },
      });
      const steps = failuresOf(results).flatMap((failure) =>
        failure?.regime === 'steps-above' ? [growths(failure.lawCase.problem)] : [],
      );
      expect(steps).toHaveLength(6);
      steps.forEach((found, turn) => {
        for (const growth of found)
          expect(Math.abs(growth - thresholds[turn] - 1 / 16)).toBeLessThan(1e-3);
        expect(found.length).toBeGreaterThan(0);
      });
    }
  });

  it('is of no regime that the blocks of the kernel leave no room', () => {
    const regimesAt = (blockKeys: number) =>
      planCheck({ formats: ['fp32'], sizes: { keys: { max: 200 } }, blockKeys }).laws[0].regimes;
    expect([128, 199, 200, 256].map((block) => regimesAt(block).includes('steps-above'))).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect(regimesAt(256)).toContain('normal');
  });

  it('is as large as in production in the fourth round of eight', async () => {
    const largest = async (round: number) => {
      const { problems } = await roundsOf([round], broken, { regimes: ['normal'], sizes: {} });
      const { batch, groupSize, queries, qkDim } = problemShape(problems[0]);
      return queries > 256 || qkDim >= 64 || (batch >= 3 && groupSize >= 4);
    };
    expect([await largest(4), await largest(12), await largest(20)]).toEqual([true, true, true]);
  });
});

describe('the result of a round', () => {
  it('has the largest sizes of the problems of its runs, and of the one that it failed on', async () => {
    const failed = await roundsOf([1, 2, 3], broken);
    const failures = failuresOf(failed.results);
    failed.results.forEach((result, index) => {
      const { batch, heads, groupSize, queries, keys, qkDim, vDim } = problemShape(
        failures[index]!.lawCase.problem,
      );
      expect(result).toMatchObject({
        status: 'tried',
        sizes: { batch, heads, groupSize, queries, keys, qkDim, vDim },
        widened: [],
      });
      expect(result.seconds).toBeGreaterThanOrEqual(0);
      expect(result.seconds).toBeLessThan(60);
    });
    // The law runs the grouped problem, and one of more kv heads and groups of one.
    const law = 'grouped-heads';
    const held = await roundsOf([1], (problem) => constant(problem, 1, 'fp32'), {
      law,
      laws: { [law]: 'bits' },
      sizes: { ...sizes, groupSize: { max: 2 } },
    });
    const shapes = held.problems.map((problem) => problemShape(problem));
    expect(shapes.map(({ groupSize }) => groupSize).sort()).toEqual([1, 2]);
    expect(held.results[0]).toMatchObject({
      failure: null,
      sizes: { groupSize: 2, heads: Math.max(...shapes.map(({ heads }) => heads)) },
    });
  });

  it('says that there was none to try, and why', async () => {
    const { results } = await roundsOf([1], () => {
      throw new UnsupportedProblem('it takes none');
    });
    expect(results[0]).toMatchObject({ status: 'unsupported', reason: 'it takes none' });
    expect(results[0]).not.toHaveProperty('failure');
    expect(results[0].seconds).toBeLessThan(60);
  });

  it('names the formats of 16 bits that outputs have more digits than', async () => {
    const widened = async (input: FormatName, x: number, output: FormatName) => {
      const kernel: AttentionKernel = (problem) => constant(problem, x, output);
      const { results } = await roundsOf([1], kernel, { formats: [input] });
      return results[0].status === 'tried' ? results[0].widened : expect.fail();
    };
    const third = 1 / 3;
    expect(await widened('bf16', third, 'fp32')).toEqual(['bf16']);
    expect(await widened('fp16', third, 'fp32')).toEqual(['fp16']);
    expect(await widened('bf16', 1.5, 'fp32')).toEqual([]);
    expect(await widened('fp16', Infinity, 'fp32')).toEqual([]);
    expect(await widened('fp16', NaN, 'fp32')).toEqual([]);
    expect(await widened('bf16', third, 'bf16')).toEqual([]);
    expect(await widened('fp32', third, 'fp64')).toEqual([]);
    // One element is enough.
    const one: AttentionKernel = (problem) => {
      const { batch, heads, queries, vDim } = problemShape(problem);
      const shape = [batch, heads, queries, vDim];
      return { out: tensor('fp32', shape, (i) => (i === 0 ? third : 1)) };
    };
    const wide = { ...sizes, queries: { min: 2, max: 3 } };
    const { results } = await roundsOf([1], one, { formats: ['bf16'], sizes: wide });
    expect(results[0]).toMatchObject({ widened: ['bf16'] });
  });
});
