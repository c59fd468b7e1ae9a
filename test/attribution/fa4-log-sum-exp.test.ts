import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createAttributedForward,
  createFa4Forward,
  findKernelModel,
  techniques,
  type EmulatedTechniques,
  type Fa4Configuration,
} from '../../kernels/index.js';
import { attentionOracle } from '../../oracles/index.js';
import { attentionProblem, regimeNames } from '../../properties/index.js';
import { decode, encode, formats } from '../../src/formats/index.js';
import { lg2ApproxFtz } from '../../src/hardware/index.js';
import type { Problem, Tensor } from '../../src/problem/index.js';
import { rescaleProblem } from '../kernels/fa4/rescale-regimes.js';
import { scaled } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { singleHead, tensorOfRows, type Rows } from '../setup/problems.js';
import { configuredCase } from './captured-attribution.js';

const inTurn = turns(import.meta.url);

const { fround } = Math;
const { fp32 } = formats;
const everything: EmulatedTechniques = new Set(techniques);
const nothing: EmulatedTechniques = new Set();

/** The LSEs of every run, and the outputs. */
function runAll(
  problem: Problem,
  choices: readonly EmulatedTechniques[],
  configuration: Partial<Fa4Configuration> = {},
) {
  const forward = createAttributedForward(problem, choices, configuration);
  const { batch, heads, queries, vDim } = forward.shape;
  const rows = batch * heads * queries;
  const lse = choices.map(() => new Float64Array(rows));
  const out = choices.map(() => new Float64Array(rows * vDim));
  for (let tile = 0; tile < forward.tiles; tile++) {
    const { first } = forward.rowsOf(tile);
    const result = forward.runTile(tile);
    result.lse.forEach((values, run) => lse[run].set(values, first));
    result.outputs.forEach((values, run) => out[run].set(values, first * vDim));
  }
  return { lse, out };
}

/** What the model makes of the problem. */
function modelOf(problem: Problem, configuration: Partial<Fa4Configuration>) {
  const forward = createFa4Forward(problem, { configuration });
  const tiles = Array.from({ length: forward.tiles }, (_, tile) => forward.runTile(tile));
  return {
    lse: tiles.flatMap(({ lse }) => [...lse]),
    out: tiles.flatMap(({ out }) => [...out]),
  };
}

const configurations: fc.Arbitrary<Partial<Fa4Configuration>> = fc.record({
  architecture: fc.constantFrom('sm_90', 'sm_100'),
  rescaleThreshold: fc.constantFrom(0, 1, 8),
  maxOffset: fc.constantFrom(0, 8, -3, 0.3),
  lseFused: fc.boolean(),
  blockKeys: fc.constantFrom(32, 128),
});

const sizes = { softcap: false, queries: { max: 40 }, keys: { max: 200 } } as const;

describe('the LSE of the forward with switches', () => {
  inTurn.each(['bf16', 'fp16', 'e4m3', 'e5m2'] as const)(
    'with every technique emulated equals the model bit for bit, as do outputs (%s)',
    (format) => {
      const problems = attentionProblem({
        ...sizes,
        formats: [format],
        specialValues: ['nan', 'infinity'],
      });
      fc.assert(
        fc.property(problems, configurations, (problem, configuration) => {
          const { lse, out } = runAll(problem, [everything], configuration);
          const model = modelOf(problem, configuration);
          expect([...lse[0]]).toEqual(model.lse);
          const isHalf = createFa4Forward(problem, { configuration }).configuration.outFormat;
          expect([...out[0]]).toEqual(model.out.map((bits) => decode(formats[isHalf], bits)));
        }),
        { numRuns: scaled(8) },
      );
    },
  );

  inTurn.each([['02'], ['05'], ['09']])(
    'equals an H200 on case %s, contracted or not',
    async (digits) => {
      const file = new URL('../../fixtures/silicon/sm_90/fa4-forward.json', import.meta.url);
      const captured = JSON.parse(readFileSync(file, 'utf8')) as Record<
        string,
        { readonly sha256: Readonly<Record<string, string>> }
      >;
      const { problem, configuration } = await configuredCase(digits);
      for (const [lseFused, name] of [
        [false, 'fa4.lse'],
        [true, 'fa4.lse_fma'],
      ] as const) {
        const [lse] = runAll(problem, [everything], { ...configuration, lseFused }).lse;
        const digest = createHash('sha256').update(Float32Array.from(lse)).digest('hex');
        expect(digest).toBe(captured[digits].sha256[name]);
      }
    },
  );

  it('with none is exact, on any problem whose scores fp32 holds', () => {
    const problems = attentionProblem({
      ...sizes,
      formats: ['bf16', 'fp16'],
      scales: ['default', 'odd', 'zero'],
      // A maximum beyond 2^24, kept in fp32, is off by whole units.
      regimes: regimeNames.filter((name) => !['wide-exponents', 'near-overflow'].includes(name)),
    });
    fc.assert(
      fc.property(problems, configurations, (problem, configuration) => {
        const {
          maximum,
          quantities: {
            lse: { values: lse, radius: lseRadius },
          },
        } = attentionOracle(problem);
        const [exact] = runAll(problem, [nothing], configuration).lse;
        exact.forEach((x, row) => {
          if (x === lse[row]) return;
          const unit = Math.max(1, Math.abs(maximum[row]));
          expect(Math.abs(x - lse[row])).toBeLessThanOrEqual(1e-12 * unit + lseRadius[row]);
        });
      }),
      { numRuns: scaled(15) },
    );
  });

  it('does not depend on what other runs there are, nor does the output', () => {
    const problem = rescaleProblem('normal', 6, 300, 8, 4);
    fc.assert(
      fc.property(configurations, fc.nat(1023), (configuration, mask) => {
        // A choice and all that differ from it by one technique.
        const masks = [mask, ...techniques.map((_, bit) => mask ^ (1 << bit))];
        const choices = masks.map(
          (one): EmulatedTechniques => new Set(techniques.filter((_, bit) => (one >> bit) & 1)),
        );
        const together = runAll(problem, choices, configuration);
        choices.forEach((choice, run) => {
          const alone = runAll(problem, [choice], configuration);
          expect(together.lse[run]).toEqual(alone.lse[0]);
          expect(together.out[run]).toEqual(alone.out[0]);
        });
      }),
      { numRuns: scaled(3) },
    );
  });

  it('is the same with p-round, pv-accumulate and output-round as without', () => {
    const problem = problemOf([[1], [0.3], [-2.5]]);
    const withThree = new Set(['p-round', 'pv-accumulate', 'output-round'] as const);
    const { lse } = runAll(problem, [nothing, withThree]);
    expect(lse[1]).toEqual(lse[0]);
  });
});

/** One query, whose exponents are the keys. */
function problemOf(keys: Rows): Problem {
  const rows = { q: [[1]], k: keys, v: keys.map(() => [1]) };
  return singleHead('bf16', rows, { scale: 1 / Math.LOG2E });
}

const hardware = { exp2: { frequency: 0, reserve: 4, startFragment: 0, degree: 3 } } as const;
const log2 = (x: number): number => decode(fp32, lg2ApproxFtz(encode(fp32, x)));

describe('the finish of a row alone', () => {
  const alone: EmulatedTechniques = new Set(['normalise']);
  const scale = 1 / Math.LOG2E;

  it.each([
    [0, false],
    [8, false],
    [8, true],
    [0.3, true],
  ])('is the fp32 instructions at offset %d, fused: %s', (maxOffset, lseFused) => {
    // Three equal scores of 13.1875 and a scale whose product with log2 e is no fp32 number.
    const problem = { ...problemOf([[13.1875], [13.1875], [13.1875]]), scale: 0.301953125 };
    const c = fround(fround(0.301953125) * fround(Math.LOG2E));
    const offset = fround(maxOffset);
    const sum = 3 * 2 ** offset;
    // For sums that fp32 holds.
    const logarithm = fround(log2(fround(sum)) - offset);
    const product = 13.1875 * c;
    const total = fround((lseFused ? product : fround(product)) + logarithm);
    const expected = fround(total * fround(Math.LN2)) + Math.log(sum / fround(sum));
    const { lse } = runAll(problem, [alone, nothing], { ...hardware, maxOffset, lseFused });
    expect(Math.abs(lse[0][0] - expected)).toBeLessThan(2 ** -50);
    expect(Math.abs(lse[1][0] - (13.1875 * 0.301953125 + Math.log(3)))).toBeLessThan(2 ** -49);
    expect(lse[0][0]).not.toBe(lse[1][0]);
  });

  it('errs as at the nearest fp32 row sum, and by nothing more', () => {
    // l = 1 + 2^-40.5, whose nearest fp32 number is 1, at which lg2 is exact.
    const problem = { ...problemOf([[0], [-40.5]]), scale };
    const { lse } = runAll(problem, [alone, nothing], hardware);
    expect(lse[1][0]).toBeGreaterThan(0);
    expect(lse[0][0] / lse[1][0]).toBeCloseTo(1, 4);
  });

  it('of a row that sees no key is −∞, emulated or not', () => {
    const problem = { ...problemOf([[1]]), q: tensorOfRows('bf16', [[1], [1]]), causal: true };
    const { lse } = runAll(problem, [nothing, alone, everything]);
    for (const values of lse) expect(values[0]).toBe(-Infinity);
    expect(lse[0][1]).toBeCloseTo(1 / Math.LOG2E, 14);
  });
});

describe('settings that have no part in any technique', () => {
  const problem = problemOf([[1], [2]]);
  const attribute = (settings: Readonly<Record<string, string>>) =>
    findKernelModel('fa4').attribute(problem, new Map(Object.entries(settings)));

  it.each([
    [{ splits: '2' }, /splits is 2; the attribution of fa4 takes 1/],
    [{ variant: 'stale-zero-max' }, /variant is "stale-zero-max"; the attribution of fa4/],
    [{ nothing: '1' }, /fa4 model has no setting "nothing"/],
  ])('%o are refused', (settings, message) => {
    expect(() => attribute(settings)).toThrow(message);
  });

  it('are refused for fp8 inputs that were scaled', () => {
    const e4m3 = (of: Tensor): Tensor => ({
      format: 'e4m3',
      shape: of.shape,
      data: new Uint8Array(of.data.length),
    });
    const scaled = { ...problem, q: e4m3(problem.q), k: e4m3(problem.k), v: e4m3(problem.v) };
    const configuration = { descale: { q: 1, k: 2, v: 1 } };
    expect(() => createAttributedForward(scaled, [nothing], configuration)).toThrow(
      /descale\.k is 2; the attribution of fa4 takes 1/,
    );
  });
});
