import { describe, expect, it } from 'vitest';
import {
  assertAttentionKernel,
  checkKernel,
  describeFailures,
  describeProblem,
  laws,
  planCheck,
  UnsupportedProblem,
  type AttentionKernel,
  type KernelPromises,
} from '../../../properties/index.js';
import { runKernelModel } from '../../../kernels/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import { decodeProblem, encodeProblem } from '../../../properties/problems/plain-problem.js';
import { sampled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { exactKernel } from '../exact-kernel.js';

const inTurn = turns(import.meta.url);

const promises: KernelPromises = {
  formats: ['fp32'],
  specialValues: false,
  sizes: { queries: { max: 6 }, keys: { max: 8 }, qkDim: { max: 4 }, vDim: { max: 4 } },
};
const options = {
  laws: ['within-bound'],
  regimes: ['normal', 'ones'],
  runs: 10,
  seed: 5,
} as const;

const enlarged: AttentionKernel = (problem) => {
  const { out } = exactKernel(problem);
  return { out: { ...out, data: (out.data as Float32Array).map((x) => x * 1.5) } };
};

describe('assertAttentionKernel', () => {
  it('gives what became of each law when all hold', async () => {
    const result = await assertAttentionKernel(exactKernel, promises, options);
    expect(result).toMatchObject({ pass: true, seed: 5, runs: 10 });
    expect(result.laws).toMatchObject([{ id: 'within-bound', runs: 10, failure: null }]);
  });

  it('throws the law, what is wrong, the problem and the seed', async () => {
    const { laws: results, ...rest } = await checkKernel(enlarged, promises, options);
    const { lawCase, statement } = results[0].failure!;
    const text = describeFailures({ ...rest, laws: results });
    expect(text).toContain(`within-bound: ${statement}.\n`);
    expect(text).toContain(`Law:    ${laws['within-bound'].statement}.\n`);
    expect(text).toContain(describeProblem(lawCase.problem));
    const attempt = assertAttentionKernel(enlarged, promises, options);
    await expect(attempt).rejects.toThrow(
      /^the kernel violates 1 of 1 law \(seed 5, \d+ runs? in /,
    );
    await expect(attempt).rejects.toThrow(text);
    await expect(attempt).rejects.toThrow(
      /The option \{ seed: 5 \} tries the same problems again\.$/,
    );
  });

  it('tells what a kernel throws from a problem that it does not take', async () => {
    const throwing = () => Promise.reject(new Error('out of shared memory'));
    await expect(assertAttentionKernel(throwing, promises, options)).rejects.toThrow(
      /within-bound: the kernel threw: out of shared memory\./,
    );
    const picky: AttentionKernel = (problem) => {
      if (problem.causal) throw new UnsupportedProblem('no causal mask');
      return exactKernel(problem);
    };
    await expect(assertAttentionKernel(picky, promises, options)).resolves.toMatchObject({
      pass: true,
    });
  });

  it('takes a check of nothing for a mistake', async () => {
    const declining = () => Promise.reject(new UnsupportedProblem('not today'));
    await expect(assertAttentionKernel(declining, promises, options)).rejects.toThrow(
      /^nothing was checked: /,
    );
    const modest = { ...promises, laws: { 'within-bound': 'none' } } as const;
    await expect(assertAttentionKernel(exactKernel, modest, options)).rejects.toThrow(RequestError);
  });

  it('refuses runs and seeds that are no numbers of runs and no seeds', async () => {
    for (const wrong of [{ runs: 0 }, { runs: 2.5 }, { runs: NaN }, { seed: 0.5 }, { seed: NaN }])
      await expect(checkKernel(exactKernel, promises, { ...options, ...wrong })).rejects.toThrow(
        /^(runs|seed) is .*; give a (positive )?whole number$/,
      );
  });
});

describe('kernels that take some problems only', () => {
  const restricted: readonly (readonly [string, KernelPromises, (problem: Problem) => boolean])[] =
    [
      ['causal masks only', { causal: 'only' }, ({ causal }) => causal],
      [
        'some groups',
        { groupSizes: [1, 3] },
        (problem) => [1, 3].includes(problemShape(problem).groupSize),
      ],
      [
        'multiples',
        { multiples: { keys: 4, queries: 2 } },
        (problem) =>
          problemShape(problem).keys % 4 === 0 && problemShape(problem).queries % 2 === 0,
      ],
    ];
  inTurn.each(sampled(restricted, 1))(
    'are asked for nothing else: %s',
    async (_, more, isTaken) => {
      const strict: AttentionKernel = (problem) => {
        if (!isTaken(problem)) throw new Error('a problem that is not promised');
        return runKernelModel('naive-fp32', problem);
      };
      const sizes = { batch: { max: 1 }, queries: { max: 6 }, keys: { max: 12 } };
      const few = { qkDim: { max: 2 }, vDim: { max: 2 } };
      const result = await checkKernel(
        strict,
        { formats: ['fp32'], ...more, sizes: { ...sizes, ...few } },
        { regimes: ['normal', 'ones'], runs: 4, seed: 2, shrinkSeconds: 0 },
      );
      expect(describeFailures(result)).toBe('');
      // Each leaves most laws something to say.
      const held = result.laws.filter(({ status }) => status === 'holds');
      expect(held.length).toBeGreaterThan(12);
      for (const { status, skipped } of result.laws)
        if (status === 'untried') expect(skipped).toMatch(/^none of its problems could be tried: /);
    },
  );

  it('are refused promises that leave nothing', () => {
    const wrong: readonly (readonly [KernelPromises, RegExp])[] = [
      [{ causal: 'always' as 'only' }, /^promise causal is "always"; give true, false or "only"$/],
      [{ groupSizes: [0] }, /^constraint groupSizes has 0; give whole numbers from 1$/],
      [{ groupSizes: [4], sizes: { groupSize: { max: 2 } } }, /groupSizes has none of the numbers/],
      [{ multiples: { keys: 2.5 } }, /^constraint multiples.keys is 2.5; give a whole number/],
      [{ multiples: { key: 2 } as never }, /^constraint multiples has no size "key"; choose from/],
      [
        { multiples: { keys: 64 }, sizes: { keys: { min: 65, max: 100 } } },
        /^constraint multiples.keys is 64, of which none lies within 65 to 100; widen keys$/,
      ],
    ];
    for (const [promised, message] of wrong) expect(() => planCheck(promised)).toThrow(message);
  });

  it('that write more digits than their inputs have are told so', async () => {
    const scope = { laws: ['within-bound'], regimes: ['normal'], runs: 2, seed: 1 } as const;
    const inBf16 = { ...promises, formats: ['bf16'] as const };
    const widening: AttentionKernel = (problem) => {
      const plain = decodeProblem(problem);
      const widened = { ...plain, formats: { q: 'fp32', k: 'fp32', v: 'fp32' } as const };
      return runKernelModel('naive-fp32', encodeProblem(widened));
    };
    const [wide, narrow] = [
      await checkKernel(widening, inBf16, scope),
      await checkKernel(exactKernel, inBf16, scope),
    ];
    expect([wide.pass, narrow.pass, narrow.notes]).toEqual([true, true, []]);
    expect(wide.notes).toEqual([
      expect.stringMatching(/^outputs for bf16 inputs have digits that bf16 has not; /),
    ]);
  });
});

describe('the plan of a check', () => {
  it('says which laws are tried, where, and why others are not', () => {
    const tried = planCheck(promises, { laws: ['within-bound'], regimes: ['ones', 'normal'] });
    expect(tried.laws).toMatchObject([{ id: 'within-bound', skipped: null }]);
    expect([...tried.laws[0].regimes].sort()).toEqual(['normal', 'ones']);
    const modest = planCheck({ laws: { 'within-bound': 'none' } }, { laws: ['within-bound'] });
    expect(modest.laws[0].skipped).toBe('not promised');
    const planned = (plan: ReturnType<typeof planCheck>) => plan.laws.map(({ id }) => id);
    expect(planned(planCheck({ gradients: true }))).toEqual(Object.keys(laws));
    // Kernels without gradients have nothing to do with theirs.
    expect(planned(planCheck())).toEqual(
      Object.keys(laws).filter((id) => !id.startsWith('gradients-')),
    );
  });

  it('refuses names that there are not', () => {
    const unknown = ['no-such-name'] as never[];
    expect(() => planCheck({}, { laws: unknown })).toThrow(
      /^there is no law "no-such-name"; choose /,
    );
    expect(() => planCheck({}, { regimes: unknown })).toThrow(
      /^there is no regime "no-such-name"; /,
    );
    expect(() => planCheck({ formats: unknown })).toThrow(RequestError);
  });
});
