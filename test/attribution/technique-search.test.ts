import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AttributedKernel } from '../../kernels/index.js';
import { attentionOracle } from '../../oracles/index.js';
import {
  defaultCandidates,
  identifyKernel,
  type Candidate,
  type IdentificationOptions,
  type TechniqueSearch,
} from '../../src/attribution/index.js';
import { renderIdentification } from '../../src/report/text/attribution/index.js';
import { compareRuns, samplePieces } from '../../src/attribution/compare-runs.js';
import { readUnknown } from '../../src/attribution/match-meter.js';
import { encodeFromFloat64, formats } from '../../src/formats/index.js';
import type { Problem } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { rescaleProblem } from '../kernels/fa4/rescale-regimes.js';
import { scaled } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { configuredCase, firstQueries } from './captured-attribution.js';
import { filledProblem } from '../setup/problems.js';
import { dumpOf, kernelOf, runExact, tensorOf } from './attributed-runs.js';

const inTurn = turns(import.meta.url);

/** The rows' maxima grow over three blocks, so that thresholds matter. */
const problem = rescaleProblem('large', 30, 300, 16, 5);
const reference = attentionOracle(problem);
const fa4: Candidate = { model: 'fa4', settings: {} };

function search(
  of: ReturnType<typeof dumpOf>,
  options: IdentificationOptions,
  on: Problem = problem,
): TechniqueSearch {
  const known = on === problem ? { reference } : {};
  const { searches } = identifyKernel(on, of.out, { candidates: [], ...known, ...options });
  return searches[0];
}

/** Every subset, as `exact` lists. */
function subsets(names: readonly string[]): string[][] {
  return Array.from({ length: 2 ** names.length }, (_, mask) =>
    names.filter((_, bit) => (mask >> bit) & 1),
  );
}

describe('a search', () => {
  inTurn.each([
    [fa4, ['p-round']],
    [fa4, []],
    [{ model: 'naive-input', settings: {} }, ['score-round', 'qk-accumulate']],
  ] as const)(
    'of $0 lists those combinations, and no others, that make the bits of $1',
    (candidate, exact) => {
      const few = rescaleProblem('large', 12, 300, 16, 5);
      const dump = dumpOf(few, candidate, exact);
      const { matches, techniques, combinations } = search(dump, { search: [candidate] }, few);
      const kernel = kernelOf(few, candidate);
      expect(techniques).toEqual(kernel.techniques.filter((name) => name !== 'output-round'));
      const all = subsets(techniques);
      expect(combinations).toBe(all.length);
      const { outputs } = runExact(kernel, all);
      const same = all.filter((_, i) => {
        const { data } = tensorOf(kernel, 'out', 'bf16', outputs[i]);
        return Buffer.compare(Buffer.from(data.buffer), Buffer.from(dump.out.data.buffer)) === 0;
      });
      const [best, second] = matches;
      expect(best).toMatchObject({
        equal: best.elements,
        likeness: 1,
        correlation: expect.closeTo(1),
      });
      const sorted = (lists: readonly (readonly string[])[]) =>
        lists.map((list) => [...list].sort().join()).sort();
      expect(sorted(best.combinations)).toEqual(sorted(same));
      expect(second.equal).toBeLessThan(second.elements);
      expect(best.elements).toBe(12 * 16);
      // Fewest exact techniques first; what is in all of them, and in some.
      const sizes = best.combinations.map((list) => list.length);
      expect(sizes).toEqual([...sizes].sort((a, b) => a - b));
      for (const name of techniques) {
        const count = same.filter((list) => list.includes(name)).length;
        expect(best.exact.includes(name)).toBe(count === same.length);
        expect(best.either.includes(name)).toBe(count > 0 && count < same.length);
      }
    },
  );

  it('finds any combination of any kernel again, by outputs and LSEs', () => {
    const candidates = [
      fa4,
      { model: 'fa4', settings: { 'rescale.threshold': '0', 'exp2.frequency': '0' } },
      { model: 'naive-fp32', settings: {} },
      { model: 'naive-input', settings: {} },
    ];
    const small = rescaleProblem('large', 10, 140, 8, 9);
    const known = attentionOracle(small);
    fc.assert(
      fc.property(fc.constantFrom(...candidates), fc.nat(1023), (candidate, mask) => {
        const { techniques } = kernelOf(small, candidate);
        const exact = techniques.filter(
          (name, bit) => name !== 'output-round' && (mask >> bit) & 1,
        );
        const dump = dumpOf(small, candidate, exact);
        const options = { search: [candidate], reference: known, lse: dump.lse };
        const [best] = search(dump, options, small).matches;
        expect(best).toMatchObject({
          equal: best.elements,
          lse: { rows: 10, equal: 10, largestDifference: 0 },
        });
        const found = best.combinations.map((list) => [...list].sort().join());
        expect(found).toContain([...exact].sort().join());
      }),
      { numRuns: scaled(4) },
    );
  });

  inTurn('tells by the LSE what the output does not show', () => {
    const dump = dumpOf(problem, fa4, ['normalise']);
    const [byOutput] = search(dump, { search: [fa4] }).matches;
    expect(byOutput.either).toContain('normalise');
    const [byBoth, next] = search(dump, { search: [fa4], lse: dump.lse }).matches;
    expect(byBoth.exact).toEqual(['normalise']);
    expect(next.lse!.equal).toBeLessThan(next.lse!.rows);
  });

  it('tries the rounding of the output only where the output holds more', () => {
    const dump = dumpOf(problem, fa4, ['output-round'], 'fp32');
    const { techniques, matches } = search(dump, { search: [fa4] });
    expect(techniques).toContain('output-round');
    expect(matches[0].exact).toContain('output-round');
    expect(matches[0].equal).toBe(matches[0].elements);
    // All else shows in fp32.
    expect(matches[0].either.length).toBeLessThan(3);
  });

  inTurn('goes on to settings that a hidden technique does not show', () => {
    const hidden = rescaleProblem('large', 64, 300, 32, 3);
    const [right, ...others] = [
      ...[{}, { 'exp2.degree': '4' }, { 'exp2.frequency': '16' }].map((settings) => ({
        model: 'fa4',
        settings: { 'rescale.threshold': '0', ...settings },
      })),
      { model: 'fa4', settings: { 'rescale.threshold': '8' } },
    ] as const;
    const dump = dumpOf(hidden, right, ['p-round']);
    const candidates = [others[0], others[2], right, others[1]];
    const found = identifyKernel(hidden, dump.out, { candidates });
    // The other settings are as near as long as P is rounded.
    expect(found.matches[0]).toMatchObject(others[0]);
    const [best] = found.searches;
    expect(best.candidate).toEqual(right);
    expect(best.nearest.combinations[0]).toEqual(['p-round']);
    // The frequency that it has by default.
    expect(best.alike).toEqual([{ candidate: others[1], exact: ['p-round'] }]);
    const text = renderIdentification(found);
    expect(text).toContain('These bits: p-round exact.');
    expect(text).toContain(
      'The same bits: fa4 rescale.threshold=0 exp2.frequency=16, p-round exact.',
    );
  });

  it('says that no combination makes the bits, and which is nearest', () => {
    const dump = dumpOf(problem, fa4, ['p-round']);
    const data = (dump.out.data as Uint16Array).slice();
    for (let i = 0; i < 20; i++) data[i * 23] ^= 1;
    const out = { ...dump.out, data };
    const candidates = [fa4];
    const found = identifyKernel(problem, out, { reference, candidates });
    const [{ matches, nearest }] = found.searches;
    expect(nearest.combinations[0]).toEqual(['p-round']);
    expect(nearest.equal).toBe(30 * 16 - 20);
    // The most equal first, as no likeness is beyond chance, and the kernel itself among them.
    const counts = matches.map(({ equal }) => equal);
    expect(counts).toEqual([...counts].sort((a, b) => b - a));
    expect(matches.some(({ combinations }) => combinations[0].length === 0)).toBe(true);
    const text = renderIdentification(found);
    expect(text).toContain('No combination gives these bits, nor explains what is misrounded');
    expect(text).toContain('Nearest: p-round exact, with 460 of 480 elements, ');
    for (const { equal } of matches) expect(text).toContain(` ${equal} `);
  });

  inTurn(
    'finds no technique to blame in a kernel with the same ones in another order',
    async () => {
      // cuDNN never lets a maximum lag and has no polynomial; its blocks of keys are others.
      const { problem: whole, outputs } = await configuredCase('02');
      const cut = firstQueries(whole, 32);
      const { format, data } = outputs.torch_cudnn.out;
      const out = { format, shape: [1, 32, 128], data: data.slice(0, 32 * 128) };
      const settings = { 'rescale.threshold': '0', 'exp2.frequency': '0' };
      const candidates = [{ model: 'fa4', settings }];
      const found = identifyKernel(cut, out, { candidates });
      const [{ nearest, matches }] = found.searches;
      expect(nearest.combinations[0]).toEqual([]);
      expect(nearest.likeness).toBeGreaterThan(0.1);
      expect(renderIdentification(found)).toContain(
        'No combination gives these bits.\nNearest: every technique emulated, with ',
      );
      // All that come near round P.
      for (const { combinations } of matches)
        for (const exact of combinations) expect(exact).not.toContain('p-round');
    },
  );

  it('is left out where it is not wanted, and refuses what it cannot search', () => {
    const { out, lse } = dumpOf(problem, fa4, []);
    const identify = (options: IdentificationOptions) =>
      identifyKernel(problem, out, { reference, candidates: [], ...options });
    expect(identify({ search: [] }).searches).toEqual([]);
    const unknown = { model: 'fa4', settings: { 'exp2.degree': '9' } };
    expect(() => identify({ search: [unknown] })).toThrow(RequestError);
    expect(() => identify({ search: [], lse: { ...lse, shape: [1, 2, 15] } })).toThrow(
      /LSE has shape \[1, 2, 15\] but the problem makes \[1, 1, 30\]/,
    );
    expect(identify({ search: [], lse: { ...lse, shape: [30, 1] } }).searches).toEqual([]);
  });
});

/** A kernel of so many keys and rows, in pieces of 128 rows. */
function kernelOfSize(queries: number, keys: number): AttributedKernel {
  return kernelOf(rescaleProblem('normal', queries, keys, 8, 1), fa4);
}

describe('a comparison of runs', () => {
  it('counts what is equal in one of two runs only', () => {
    const dump = dumpOf(problem, fa4, []);
    const unknown = readUnknown(problem, reference, dump.out, undefined);
    const kernel = kernelOf(problem, fa4);
    const exact = [['qk-accumulate'], ['exp2-polynomial']];
    const choices = exact.map(
      (names) => new Set(kernel.techniques.filter((name) => !names.includes(name))),
    );
    const { discordant } = compareRuns(unknown, kernel, choices, [0]);
    const { outputs } = runExact(kernel, exact);
    const [isEqualA, isEqualB] = outputs.map((out) =>
      [...out].map((x, i) => x === unknown.out.values[i]),
    );
    const expected = isEqualA.filter((isEqual, i) => isEqual !== isEqualB[i]).length;
    expect(discordant(0, 1)).toBe(expected);
    expect(discordant(1, 0)).toBe(expected);
    expect(expected).toBeGreaterThan(0);
    expect(discordant(0, 0)).toBe(0);
  });
});

describe('a sample', () => {
  it('is everything that fits, else whole pieces spread evenly, one at least', () => {
    expect(samplePieces(kernelOfSize(300, 10), 3000)).toEqual([0, 1, 2]);
    expect(samplePieces(kernelOfSize(300, 10), 2999)).toEqual([0, 1]);
    expect(samplePieces(kernelOfSize(130, 10), 10)).toEqual([0]);
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 900 }),
        fc.integer({ min: 1, max: 9 }),
        (queries, share) => {
          const kernel = kernelOfSize(queries, 16);
          const whole = Math.floor(queries / 128);
          const pairs = (queries * 16 * share) / 10;
          const pieces = samplePieces(kernel, pairs);
          const rows = pieces.map((piece) => kernel.rowsOf(piece).rows);
          const total = rows.reduce((a, b) => a + b, 0);
          expect(total * 16 <= pairs || pieces.length === 1).toBe(true);
          // As many as fit, and gaps that differ by one at most.
          expect(pieces.length === whole || (total + 128) * 16 > pairs).toBe(true);
          const gaps = pieces.slice(1).map((piece, i) => piece - pieces[i]);
          expect(Math.max(...gaps, 0) - Math.min(...gaps, 99)).toBeLessThanOrEqual(1);
          expect(rows.every((count) => count === rows[0])).toBe(true);
        },
      ),
      { numRuns: 50 },
    );
  });

  inTurn('of a long problem is what was compared, and no more', () => {
    const long = rescaleProblem('large', 1300, 160, 8, 3);
    const dump = dumpOf(long, fa4, ['p-round']);
    const options = { search: [fa4], lse: dump.lse };
    const { rows, totalRows, nearest } = search(dump, options, long);
    expect(totalRows).toBe(1300);
    expect(rows).toBeLessThan(totalRows);
    expect(rows % 128).toBe(0);
    expect(nearest).toMatchObject({ elements: rows * 8, equal: rows * 8, lse: { rows } });
  });

  it('of no rows has nothing to search', () => {
    const empty = {
      ...problem,
      q: {
        ...problem.q,
        shape: [1, 0, 16],
        data: encodeFromFloat64(formats.bf16, new Float64Array()),
      },
    };
    const { matches } = search(dumpOf(empty, fa4, []), { search: [fa4] }, empty);
    expect(matches[0]).toMatchObject({ elements: 0, equal: 0 });
  });
});

describe('the default candidates', () => {
  it('can be searched, or say that they split keys or take no such problem', () => {
    // So many heads that no kernel splits the keys to have more work to share.
    const wide = filledProblem({ heads: 128, queries: 1, keys: 16, dim: 16 }, Math.sin);
    const searched = defaultCandidates.filter((candidate) => {
      try {
        expect(kernelOf(wide, candidate).techniques.length).toBeGreaterThan(5);
        return true;
      } catch (error) {
        if (!(error instanceof RequestError)) throw error;
        expect(error.message).toMatch(/splits|head dimensions/);
        return false;
      }
    });
    const models = new Set(searched.map(({ model }) => model));
    expect([...models]).toEqual(expect.arrayContaining(['fa4', 'fa2', 'naive-fp32']));
  });
});
