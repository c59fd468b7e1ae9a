import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  assertMatchesAttention,
  assertWithinBound,
  attentionProblem,
  matchAttention,
  matchBound,
} from '../../properties/index.js';
import '../../properties/vitest/index.js';
import { attentionOracle } from '../../oracles/index.js';
import {
  anyKernelArithmetic,
  elementBounds,
  KernelBound,
  naiveArithmetic,
} from '../../src/audit/index.js';
import { encodeFromFloat64, formats } from '../../src/formats/index.js';
import type { Tensor } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { randomValues } from '../../properties/problems/values.js';
import { scaled } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { filledProblem, tensor } from '../setup/problems.js';
import { exactKernel } from './exact-kernel.js';

const inTurn = turns(import.meta.url);

const random = randomValues(5);
const problem = filledProblem(
  { heads: 2, kvHeads: 1, queries: 20, keys: 30, dim: 8 },
  random.normal,
  { scale: 8 ** -0.5, causal: true },
);
const good = exactKernel(problem);
const unmasked = exactKernel({ ...problem, causal: false });
const wrongLse = {
  ...good.lse!,
  data: (good.lse!.data as Float64Array).map((x) => x / Math.LN2),
};

describe('toMatchAttention', () => {
  inTurn('passes the exact output, with its LSE, without it, and with null', () => {
    expect(good).toMatchAttention(problem);
    expect({ out: good.out }).toMatchAttention(problem);
    expect({ out: good.out, lse: null }).toMatchAttention(problem);
  });

  inTurn('fails another problem’s output with the verdict and every finding', () => {
    const attempt = () => expect(unmasked).toMatchAttention(problem);
    const { message } = matchAttention(problem, unmasked);
    expect(message).toMatch(/^FAIL: .*\n {2}[a-z-]+: /);
    expect(message.split('\n').length).toBeGreaterThan(2);
    expect(attempt).toThrow(message);
  });

  it('fails a wrong LSE, which it only looks at when there is one', () => {
    expect(() => expect({ out: good.out, lse: wrongLse }).toMatchAttention(problem)).toThrow(
      /lse-bound: the LSE is in base 2/,
    );
  });

  it('works with .not', () => {
    expect(unmasked).not.toMatchAttention(problem);
    expect({ out: good.out, lse: wrongLse }).not.toMatchAttention(problem);
    expect(() => expect(good).not.toMatchAttention(problem)).toThrow(
      /expected the output not to match the problem's attention\nPASS: /,
    );
  });

  it('hands its options to the audit', () => {
    const stages = new Set<string>();
    expect(good).toMatchAttention(problem, { progress: (stage) => stages.add(stage) });
    expect(stages).toContain('oracle');
  });

  it('takes outputs of the wrong shape or kind for a mistake, also with .not', () => {
    const misshapen = { out: { ...good.out, shape: [1, 2, 8, 20] } };
    for (const received of [misshapen, null, 7, {}, { out: [1, 2] }, { ...good, lse: 3 }]) {
      expect(() => expect(received).toMatchAttention(problem)).toThrow(RequestError);
      expect(() => expect(received).not.toMatchAttention(problem)).toThrow(RequestError);
    }
    expect(() => expect({}).toMatchAttention(problem)).toThrow(
      /the outputs are not \{ out: Tensor/,
    );
  });
});

describe('toBeWithinBound', () => {
  /** The exact output with one element moved by `factor` times its bound. */
  function moved(factor: number, index: number): Tensor {
    const exact = attentionOracle(problem);
    const {
      quantities: {
        out: { total },
      },
    } = elementBounds(
      problem,
      exact,
      anyKernelArithmetic(problem, 'fp64'),
      new KernelBound(problem, exact, 'fp64'),
    );
    const data = exact.quantities.out.values.slice();
    data[index] += factor * total[index];
    return { format: 'fp64', shape: good.out.shape, data };
  }

  inTurn('passes every element up to its bound and none beyond', () => {
    for (const index of [0, 37, 319]) {
      expect(moved(0.99, index)).toBeWithinBound(problem);
      expect(moved(-0.99, index)).toBeWithinBound(problem);
      expect(moved(1.01, index)).not.toBeWithinBound(problem);
      expect(moved(-1.01, index)).not.toBeWithinBound(problem);
    }
  });

  it('names the worst element, with what is there and what may be', () => {
    const index = (20 + 3) * 8 + 5;
    const wrong = moved(3, index);
    expect(() => expect(wrong).toBeWithinBound(problem)).toThrow(
      /^1 of 320 elements err by more than .*; the worst by \S+ where at most \S+, at head 1, query 3, column 5\nworst element: \S+ for \S+ ± \S+ at head 1, query 3, column 5$/,
    );
    const { message } = matchBound(problem, wrong);
    const [, found, exact] = /worst element: (\S+) for (\S+) ±/.exec(message)!;
    expect(Number(found)).toBe(wrong.data[index]);
    expect(Number(exact)).toBe(attentionOracle(problem).quantities.out.values[index]);
  });

  it('takes outputs with an LSE, without one, and a tensor alone', () => {
    expect(good).toBeWithinBound(problem);
    expect({ out: good.out }).toBeWithinBound(problem);
    expect(good.out).toBeWithinBound(problem);
    expect({ out: good.out, lse: wrongLse }).not.toBeWithinBound(problem);
    expect(() => expect({ out: good.out, lse: wrongLse }).toBeWithinBound(problem)).toThrow(
      /^the LSE is in base 2/,
    );
  });

  it('fails NaNs, and values where no key is visible', () => {
    const data = (good.out.data as Uint16Array).slice();
    data[9] = 0x7fc0;
    expect({ ...good.out, data }).not.toBeWithinBound(problem);
    // More queries than keys under a causal mask: the first queries see no key.
    const few = () => tensor('bf16', [1, 1, 5, 8], random.normal);
    const blind = { ...problem, k: few(), v: few() };
    const { out } = exactKernel(blind);
    expect(out).toBeWithinBound(blind);
    const tiny = (out.data as Uint16Array).slice();
    tiny[0] = 1;
    expect({ ...out, data: tiny }).not.toBeWithinBound(blind);
  });

  it('leaves what is small and systematic to toMatchAttention', () => {
    const {
      quantities: {
        out: { values: out },
      },
    } = attentionOracle(problem);
    const data = out.map((x) => x * 1.001);
    const received = { format: 'fp64', shape: good.out.shape, data } as const;
    expect(received).toBeWithinBound(problem);
  });

  it('judges by the arithmetic that it is given', () => {
    const half = moved(0.5, 37);
    expect(half).toBeWithinBound(problem);
    const arithmetic = naiveArithmetic(problem, 'fp32');
    expect(half).not.toBeWithinBound(problem, { arithmetic });
    expect(moved(0, 37)).toBeWithinBound(problem, { arithmetic });
  });

  it('takes outputs of the wrong shape or kind for a mistake, also with .not', () => {
    const misshapen = { ...good.out, shape: [1, 2, 8, 20] };
    for (const received of [misshapen, { out: misshapen }, null, 7, {}, { ...good, lse: 3 }]) {
      expect(() => expect(received).toBeWithinBound(problem)).toThrow(RequestError);
      expect(() => expect(received).not.toBeWithinBound(problem)).toThrow(RequestError);
    }
  });

  it('has its twin for other test runners', () => {
    expect(() => assertWithinBound(problem, good)).not.toThrow();
    const wrong = moved(2, 4);
    const { message } = matchBound(problem, wrong);
    expect(() => assertWithinBound(problem, wrong)).toThrow(new Error(message));
    expect(() => assertWithinBound(problem, problem.k)).toThrow(RequestError);
  });
});

describe('assertMatchesAttention', () => {
  it('does nothing for a match and throws the same message for none', () => {
    expect(() => assertMatchesAttention(problem, good)).not.toThrow();
    const { message } = matchAttention(problem, unmasked);
    expect(() => assertMatchesAttention(problem, unmasked)).toThrow(new Error(message));
    expect(() => assertMatchesAttention(problem, { out: problem.k })).toThrow(RequestError);
  });

  inTurn('lets the exactly rounded answer of any problem pass', () => {
    const arbitrary = attentionProblem({
      batch: { max: 1 },
      queries: { max: 8 },
      keys: { max: 8 },
      qkDim: { max: 6 },
      vDim: { max: 6 },
      specialValues: ['nan', 'infinity'],
    });
    let judged = 0;
    const numRuns = scaled(30);
    fc.assert(
      fc.property(arbitrary, (given) => {
        const { pass, message } = matchAttention(given, exactKernel(given));
        // Scores beyond every format's range leave nothing to judge.
        if (message.startsWith('NOT JUDGED')) return;
        judged++;
        expect(pass, message).toBe(true);
      }),
      { numRuns },
    );
    expect(judged).toBeGreaterThan(numRuns / 2);
  });

  inTurn('catches one element that is off in any problem with room for it', () => {
    const arbitrary = attentionProblem({
      batch: { max: 1 },
      queries: { max: 6 },
      keys: { max: 6 },
      formats: ['bf16', 'fp16', 'fp32'],
      regimes: ['normal'],
      emptyRows: false,
    });
    fc.assert(
      fc.property(arbitrary, fc.nat(), (given, index) => {
        const { out } = exactKernel(given);
        const data = out.data.slice() as Uint16Array;
        const at = index % data.length;
        data.set(encodeFromFloat64(formats[out.format], Float64Array.of(1000)) as Uint16Array, at);
        expect({ out: { ...out, data } }).not.toMatchAttention(given);
      }),
      { numRuns: scaled(10) },
    );
  });
});
