import { describe, expect, it } from 'vitest';
import {
  conduct,
  conductApart,
  describedContract,
  measureDescribed,
  type DescribedAudit,
  type MeasuredQuantities,
  type Part,
} from '../../../src/audit/index.js';
import type { Tensor } from '../../../src/problem/index.js';
import { testSeed } from '../../setup/effort.js';
import { pseudorandom } from '../../setup/problems.js';
import { encode } from '../damage.js';
import { mergeContract, mergeDescription } from './merge/merge-contract.js';
import type { Half, MergeProblem } from './merge/merge-problem.js';

const [heads, rows, dim] = [3, 40, 8];
const random = pseudorandom(1 + (testSeed % 1_000_003));
const drawn = (length: number, scale: number) =>
  Float64Array.from({ length }, () => Math.fround(scale * (2 * random() - 1)));

const half = (): Half => ({ out: drawn(heads * rows * dim, 3), lse: drawn(heads * rows, 4) });
const problem: MergeProblem = { heads, rows, dim, format: 'bf16', halves: [half(), half()] };

/** A kernel: the merge by its definition, rounded once, with the weight of each half. */
function merged(
  weight: (lse: number, half: number) => number,
  changed: (x: number, i: number) => number = (x) => x,
): Record<string, Tensor> {
  const weights = problem.halves.map(({ lse }, of) => lse.map((x) => weight(x, of)));
  const total = weights[0].map((x, row) => x + weights[1][row]);
  const out = problem.halves[0].out.map((_, i) => {
    const row = Math.floor(i / dim);
    const sum = problem.halves.reduce((all, { out: x }, of) => all + weights[of][row] * x[i], 0);
    return changed(sum / total[row], i);
  });
  return {
    out: encode(out, 'bf16', [1, heads, rows, dim]),
    lse: encode(total.map(Math.log), 'fp32', [1, heads, rows]),
  };
}

const right = (lse: number) => Math.exp(lse);

/** Judges here, and in parts by a runner that gets copies of what it is sent, and answers the last first. */
async function judged(tensors: Record<string, Tensor>): Promise<DescribedAudit> {
  const plan = { problem, tensors };
  const here = conduct(mergeContract, plan);
  const told: string[] = [];
  const start = (data: MergeProblem, count: number) => {
    told.push(`started for ${count}`);
    const own = structuredClone(data);
    return {
      run: async (
        requests: readonly Part[],
        settle: (answer: MeasuredQuantities, index: number) => void,
      ) => {
        const answers = requests
          .map((request) => structuredClone(request))
          .toReversed()
          .map((request) => measureDescribed(mergeDescription, own, request))
          .toReversed();
        await Promise.resolve();
        for (const [index, answer] of answers.entries()) settle(structuredClone(answer), index);
      },
      close: async () => void told.push('closed'),
    };
  };
  const apart = await conductApart(mergeContract, plan, { start });
  expect(told).toEqual([`started for ${heads}`, 'closed']);
  expect(apart).toEqual(here);
  return here;
}

describe('a merge of two partial results, a contract that the library does not know', () => {
  it('passes where it is exact but for one rounding', async () => {
    const { verdict } = await judged(merged(right));
    expect(verdict.findings).toEqual([]);
    expect(verdict.sentence).toMatch(
      /^PASS: the output and the LSE stay within what rounding explains; the worst element uses/,
    );
  });

  it.each<[string, string, (lse: number, half: number) => number]>([
    ['weights-base-2', 'the halves are merged with weights 2^LSE', (lse) => 2 ** lse],
    ['half-left-out', 'half 1 is left out of the merge', (lse, of) => (of === 1 ? 0 : right(lse))],
  ])('fails by a planted fault, and names it: %s', async (id, sentence, weight) => {
    const tensors = merged(weight);
    // A kernel that subtracts the larger LSE keeps it as it is.
    const largest = problem.halves[0].lse.map((x, row) => Math.max(x, problem.halves[1].lse[row]));
    const lse = largest.map((m, row) =>
      id === 'weights-base-2'
        ? m + Math.log(problem.halves.reduce((sum, { lse: x }) => sum + 2 ** (x[row] - m), 0))
        : problem.halves[0].lse[row],
    );
    const { verdict } = await judged({ ...tensors, lse: encode(lse, 'fp32', [1, heads, rows]) });
    expect(verdict.pass).toBe(false);
    expect(verdict.diagnosis).toMatchObject({ id, equivalents: [], sentence });
    expect(verdict.sentence).toBe(`FAIL: ${sentence}.`);
  });

  it('fails by one element, of which no cause is known', async () => {
    const { verdict } = await judged(merged(right, (x, i) => (i === 333 ? x + 1 : x)));
    expect(verdict.diagnosis!.id).toBe('unexplained');
    expect(verdict.findings[0]).toMatchObject({ quantity: 'out', test: 'element-bound' });
    expect(verdict.findings[0].statement).toMatch(
      /a merge in fp32 can.* head 1, query 1, column 5/,
    );
  });

  it('is not passed where nothing has been measured, zeros least of all', () => {
    const zeros = Object.fromEntries(
      Object.entries(merged(right)).map(([name, one]) => [
        name,
        { ...one, data: one.data.map(() => 0) as typeof one.data },
      ]),
    );
    const nothing = describedContract({ ...mergeDescription, partsOf: () => [] });
    const { verdict } = conduct(nothing, { problem, tensors: zeros });
    expect(verdict).toMatchObject({ pass: false, judged: false, findings: [] });
    const some = describedContract({
      ...mergeDescription,
      partsOf: (whole) => mergeDescription.partsOf(whole).slice(1),
    });
    const [most] = conduct(some, { problem, tensors: merged(right) }).quantities;
    expect(most).toMatchObject({ elements: { unbounded: rows * dim } });
  });

  it('has no cause that takes bounds away', () => {
    const unbounded = describedContract({
      ...mergeDescription,
      causes: [
        function* (of: MergeProblem) {
          const { out, lse } = mergeDescription.measure(of);
          const infinite = out.bound.total.map(() => Infinity);
          const none = { ...out.bound, total: infinite, systematic: infinite, deviation: infinite };
          yield {
            id: 'anything',
            sentence: 'anything goes',
            measured: { out: { ...out, bound: none }, lse },
          };
        },
      ],
    });
    const tensors = merged(right, (x, i) => (i === 333 ? x + 1 : x));
    expect(conduct(unbounded, { problem, tensors }).verdict.diagnosis!.id).toBe('unexplained');
  });

  it('is refused where there is nothing to judge, and for what it has no name of', () => {
    expect(() => conduct(mergeContract, { problem, tensors: {} })).toThrow(
      'there is nothing to judge; give out, lse',
    );
    const { out } = merged(right);
    expect(() => conduct(mergeContract, { problem, tensors: { out, LSE: out } })).toThrow(
      'there is no quantity LSE; give out, lse',
    );
  });
});
