import { describe, expect, it } from 'vitest';
import { techniques } from '../../kernels/index.js';
import { attentionOracle } from '../../oracles/index.js';
import { attributeError, attributeLag, type Attribution } from '../../src/attribution/index.js';
import { renderAttribution, renderShares } from '../../src/report/text/attribution/index.js';
import { emulate } from '../../src/emulate/index.js';
import { decodeToFloat64, encodeFromFloat64, formats, ulp } from '../../src/formats/index.js';
import type { Problem } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { rescaleProblem } from '../kernels/fa4/rescale-regimes.js';
import { everything, runAttributed } from '../kernels/online-softmax/attributed/run-attributed.js';
import { configuredCase } from './captured-attribution.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

function partOf(attribution: Attribution, name: string) {
  return attribution.techniques.find(({ technique }) => technique === name)!;
}

const problem = rescaleProblem('large', 150, 300, 32, 5);
const reference = attentionOracle(problem);
const attribution = attributeError(problem, { reference });

describe('the whole', () => {
  it("is the kernel model's error against the oracle", async () => {
    const { out } = await emulate(problem, 'fa4');
    const values = decodeToFloat64(out.data, formats.bf16);
    const errors = values.map((x, i) => x - reference.quantities.out.values[i]);
    const relative = errors.map((error, i) => error / reference.quantities.out.magnitude[i]);
    const ulps = errors.map(
      (error, i) => error / ulp(formats.bf16, reference.quantities.out.values[i]),
    );
    const sum = (of: Float64Array) => of.reduce((a, b) => a + b, 0);
    const largest = (of: Float64Array) => of.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
    const { total } = attribution;
    expect(total.elements).toBe(values.length);
    for (const [measure, of] of [
      [total.absolute, errors],
      [total.relative, relative],
      [total.ulps, ulps],
    ] as const) {
      expect(measure.max).toBeCloseTo(largest(of), 12);
      expect(measure.mean).toBeCloseTo(sum(of) / of.length, 12);
      expect(measure.rms).toBeCloseTo(Math.sqrt(sum(of.map((x) => x * x)) / of.length), 12);
    }
    const outward =
      sum(relative.map((x, i) => x * Math.sign(reference.quantities.out.values[i]))) /
      errors.length;
    expect(total.outward).toBeCloseTo(outward, 12);
    const { query, column, error } = total.worst!;
    const at = query * 32 + column;
    expect(Math.abs(relative[at])).toBe(largest(relative));
    expect(error).toBe(errors[at]);
  });

  it('is nothing when every technique is exact', () => {
    expect(attribution.exact.relative.max).toBeLessThan(1e-13);
  });

  it.each(['whole', 'beforeRounding'] as const)('is the sum of its shares (%s)', (error) => {
    const sum = (name: 'share' | 'shareAlone'): number =>
      attribution.techniques.reduce((total, part) => total + (part[error]?.[name] ?? 0), 0);
    expect(sum('share')).toBeCloseTo(1, 9);
    expect(sum('shareAlone') + attribution.interaction[error]).toBeCloseTo(1, 12);
  });

  it('has the projection of each error alone as the share that it has alone', () => {
    const { outputs } = runAttributed(problem, [everything, new Set(['p-round'])]);
    const error = (run: number, i: number): number =>
      (outputs[run][i] - reference.quantities.out.values[i]) /
      reference.quantities.out.magnitude[i];
    let [cross, squares] = [0, 0];
    for (let i = 0; i < reference.quantities.out.values.length; i++) {
      cross += error(0, i) * error(1, i);
      squares += error(0, i) ** 2;
    }
    expect(partOf(attribution, 'p-round').whole.shareAlone).toBeCloseTo(cross / squares, 12);
  });

  it('has the techniques in the order of the kernel', () => {
    expect(attribution.techniques.map(({ technique }) => technique)).toEqual(techniques);
  });
});

describe('a technique', () => {
  it('leaves, when it is exact, what its last step adds to', () => {
    const { total, beforeRounding } = attribution;
    for (const part of attribution.techniques)
      for (const [error, of] of [
        [part.whole, total],
        [part.beforeRounding, beforeRounding],
      ] as const) {
        if (error === null) continue;
        const sum = error.without.absolute.mean + error.last.absolute.mean;
        expect(sum).toBeCloseTo(of.absolute.mean, 12);
      }
    const rounding = partOf(attribution, 'output-round');
    expect(rounding.whole.without).toEqual(beforeRounding);
    expect(rounding.beforeRounding).toBe(null);
  });

  it('leaves what its own run leaves, with the output rounded or not', () => {
    const runs = ['p-round', 'normalise'].flatMap((left) =>
      [[left], [left, 'output-round']].map(
        (exact) => new Set(techniques.filter((name) => !exact.includes(name))),
      ),
    );
    const { outputs } = runAttributed(problem, runs);
    const expected = outputs.map((out) =>
      out.reduce((max, x, i) => Math.max(max, Math.abs(x - reference.quantities.out.values[i])), 0),
    );
    const measured = ['p-round', 'normalise'].flatMap((left) => {
      const { whole, beforeRounding } = partOf(attribution, left);
      return [whole.without.absolute.max, beforeRounding!.without.absolute.max];
    });
    expect(measured).toEqual(expected);
  });

  it('rounds the output by at most half an ulp', () => {
    const { alone } = partOf(attribution, 'output-round');
    expect(alone.ulps.max).toBeLessThanOrEqual(0.5);
    expect(alone.ulps.max).toBeGreaterThan(0.49);
  });

  it('does nothing where the kernel does not use it', () => {
    const configuration = {
      rescaleThreshold: 0,
      exp2: { frequency: 0, reserve: 4, startFragment: 1, degree: 3 as const },
    };
    const hardware = attributeError(problem, { reference, configuration });
    const polynomial = partOf(hardware, 'exp2-polynomial');
    for (const measure of [polynomial.alone, polynomial.whole.last])
      expect(measure.absolute.max).toBeLessThan(1e-14);
    // One block: nothing is rescaled.
    const short = rescaleProblem('large', 20, 100, 32, 6);
    expect(partOf(attributeError(short), 'rescale').whole.last.absolute.max).toBe(0);
  });

  it('truncates in the tensor cores, so that outputs shrink', () => {
    const { alone } = partOf(attribution, 'pv-accumulate');
    expect(alone.outward).toBeLessThan(-0.2 * alone.relative.rms);
  });
});

describe('a lagging maximum', () => {
  inTurn(
    'doubles the error of case 02 by rounding the largest weight, and by nothing else',
    async () => {
      const { problem: large, configuration } = await configuredCase('02');
      const { lagging, alwaysRescaled } = attributeLag(large, { configuration });
      const relative = ({ total, largestOutput }: Attribution) =>
        total.absolute.max / largestOutput;
      expect(relative(lagging) / relative(alwaysRescaled)).toBeGreaterThan(1.7);

      expect(lagging.lag!.lagging).toBeGreaterThan(0);
      expect(alwaysRescaled.lag).toMatchObject({ lagging: 0, max: 0 });
      const rms = (of: Attribution, part: 'largestWeight' | 'otherWeights') =>
        of.weightRounding![part].relative.rms;
      expect(rms(lagging, 'largestWeight')).toBeGreaterThan(
        50 * rms(alwaysRescaled, 'largestWeight'),
      );
      const others = rms(lagging, 'otherWeights') / rms(alwaysRescaled, 'otherWeights');
      expect(Math.abs(others - 1)).toBeLessThan(0.1);
      const mended = lagging.weightRounding!.largestUnrounded.absolute.max / lagging.largestOutput;
      expect(Math.abs(mended / relative(alwaysRescaled) - 1)).toBeLessThan(0.1);
      for (const { technique, alone } of lagging.techniques) {
        const always = partOf(alwaysRescaled, technique).alone;
        const growth = alone.relative.rms - always.relative.rms;
        // All that grows but the rounding of P is below a hundredth of what that grows by.
        if (technique === 'p-round') expect(growth).toBeGreaterThan(3e-4);
        else expect(Math.abs(growth)).toBeLessThan(3e-6);
      }
    },
  );

  it('splits the rounding of P in two parts that sum to it', () => {
    const { largestWeight, otherWeights } = attribution.weightRounding!;
    const whole = partOf(attribution, 'p-round').alone;
    for (const unit of ['absolute', 'relative', 'ulps'] as const)
      expect(largestWeight[unit].mean + otherWeights[unit].mean).toBeCloseTo(whole[unit].mean, 12);
    expect(otherWeights.relative.rms).toBeLessThan(whole.relative.rms);
  });
});

describe('techniques together', () => {
  inTurn(
    'err more than alone: P rounds off what the polynomial gives to the row sum too',
    async () => {
      // Equal scores: x is 0 or a tiny negative number, where the polynomial gives 0.99991, which P rounds
      // to 1 and the row sum keeps.
      const { problem: constant, configuration } = await configuredCase('06');
      const oracle = attentionOracle(constant);
      const {
        techniques: parts,
        beforeRounding,
        interaction,
      } = attributeError(constant, {
        configuration,
        reference: oracle,
      });
      for (const { technique, alone } of parts)
        if (technique !== 'output-round')
          expect(alone.relative.rms).toBeLessThan(beforeRounding.relative.rms / 8);
      expect(interaction.beforeRounding).toBeGreaterThan(0.8);
      const three = new Set(['scale-subtract', 'exp2-polynomial', 'p-round'] as const);
      const [out] = runAttributed(constant, [three], configuration).outputs;
      const squares = out.reduce(
        (sum, x, i) =>
          sum + ((x - oracle.quantities.out.values[i]) / oracle.quantities.out.magnitude[i]) ** 2,
        0,
      );
      const rms = Math.sqrt(squares / out.length);
      expect(Math.abs(rms / beforeRounding.relative.rms - 1)).toBeLessThan(0.1);
    },
  );
});

describe('any problem', () => {
  const base = rescaleProblem('normal', 6, 5, 8, 1);

  it('has its worst element where batch, head and query are', () => {
    // Only the last query of batch 1, head 0 sees the one value that is not zero.
    const flat = rescaleProblem('normal', 12, 20, 8, 1);
    const place = ((1 * 2 + 0) * 5 + 4) * 8 + 6;
    const values = Float64Array.from({ length: 160 }, (_, i) => (i === place ? 1 : 0));
    const { total } = attributeError({
      ...flat,
      q: { ...flat.q, shape: [2, 2, 3, 8] },
      k: { ...flat.k, shape: [2, 2, 5, 8] },
      v: { format: 'bf16', shape: [2, 2, 5, 8], data: encodeFromFloat64(formats.bf16, values) },
      causal: true,
    });
    expect(total.worst).toMatchObject({ batch: 1, head: 0, query: 2, column: 6 });
  });

  it('has no error of P but that of the largest weight where each query sees one key', () => {
    const flat = rescaleProblem('normal', 2 * 4 * 3, 2 * 2 * 3, 8, 7);
    const grouped: Problem = {
      ...flat,
      q: { ...flat.q, shape: [2, 4, 3, 8] },
      k: { ...flat.k, shape: [2, 2, 3, 8] },
      v: { ...flat.v, shape: [2, 2, 3, 8] },
      window: { left: 0, right: 0 },
    };
    // Weights of 2^0.3, which are not in the format.
    const single = attributeError(grouped, { configuration: { maxOffset: 0.3 } });
    const { largestWeight, otherWeights } = single.weightRounding!;
    expect(largestWeight.relative.rms).toBeGreaterThan(1e-4);
    expect(otherWeights.relative.max).toBeLessThan(1e-14);
  });

  it('may have rows without keys', () => {
    const empty = attributeError(rescaledCausal(12, 4));
    expect(empty.total).toMatchObject({ elements: 12 * 8, nonFinite: 0 });
    expect(empty.lag!.rows).toBe(12);
    expect(Number.isFinite(empty.weightRounding!.largestWeight.relative.rms)).toBe(true);
  });

  it('may hold special values, which are counted and left out', () => {
    const data = (base.v.data as Uint16Array).slice();
    data[0] = 0x7f80;
    const special = attributeError({ ...base, v: { ...base.v, data } });
    expect(special.total).toMatchObject({ nonFinite: 6, elements: 6 * 7 });
    expect(Number.isFinite(special.interaction.whole)).toBe(true);
  });

  it('refuses what the kernel does not take', () => {
    expect(() =>
      attributeError({
        ...base,
        dropout: { kept: { shape: [1], data: Uint8Array.of(1) }, probability: 0.5 },
      }),
    ).toThrow(RequestError);
    expect(() => attributeError(base, { configuration: { blockKeys: 7 } })).toThrow(
      /multiple of 32|from 32/,
    );
  });
});

function rescaledCausal(queries: number, keys: number): Problem {
  return { ...rescaleProblem('normal', queries, keys, 8, 2), causal: true };
}

describe('an attribution', () => {
  it('survives JSON', () => {
    expect(JSON.parse(JSON.stringify(attribution))).toEqual(attribution);
    const configuration = { rescaleThreshold: Infinity };
    const infinite = attributeError(rescaledCausal(3, 4), { configuration });
    expect(JSON.parse(JSON.stringify(infinite))).toEqual(infinite);
  });

  it('is rendered with a line for each technique, and its numbers', () => {
    const text = renderAttribution(attribution);
    for (const { technique, alone, whole, beforeRounding } of attribution.techniques) {
      const lines = text.split('\n').filter((line) => line.trim().startsWith(`${technique} `));
      expect(lines).toHaveLength(beforeRounding === null ? 2 : 3);
      expect(lines[0]).toContain(alone.relative.rms.toExponential(1));
      expect(lines[1]).toContain(whole.without.relative.rms.toExponential(1));
      if (beforeRounding !== null)
        expect(lines[2]).toContain(beforeRounding.without.relative.rms.toExponential(1));
    }
    const { lagging, rows } = attribution.lag!;
    expect(text).toContain(`lags in ${lagging} of ${rows} rows`);
    expect(text).not.toMatch(/NaN|undefined|Infinity/);
  });

  it('is rendered beside others, a line for each', () => {
    for (const share of ['share', 'shareAlone'] as const) {
      const choice = { error: 'whole', share } as const;
      const lines = renderShares([['one problem', attribution]], choice).split('\n');
      expect(lines).toHaveLength(2);
      expect(lines[0]).toHaveLength(lines[1].length);
      const cells = lines[1].trim().split(/ {2,}/);
      expect(cells[0]).toBe('one problem');
      const shares = cells.slice(3).map(Number);
      expect(shares).toHaveLength(techniques.length + (share === 'shareAlone' ? 1 : 0));
      expect(Math.abs(shares.reduce((a, b) => a + b) - 100)).toBeLessThan(1);
    }
  });
});
