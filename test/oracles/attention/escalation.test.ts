import { describe, expect, it } from 'vitest';
import { attentionOracle, levels, type Accuracy } from '../../../oracles/index.js';
import { formats, ulp } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { loadMpfr } from '../mpfr.js';
import { oracleSolver } from './oracle-levels.js';
import { scoredKeys, singleHead } from '../../setup/problems.js';
import { assertWithinRadii, RadiusUse } from './radius-check.js';
import { withReference } from './reference-attention.js';

const mpfr = await loadMpfr();

/** The first row of a problem at default accuracy, checked against MPFR and the accuracy asked for. */
function firstRow(problem: Problem) {
  withReference(mpfr, problem, (reference) =>
    assertWithinRadii(problem, reference, oracleSolver(), new RadiusUse()),
  );
  const {
    level,
    quantities: {
      out: { values: out, radius: outRadius },
      lse: { values: lse, radius: lseRadius },
    },
  } = attentionOracle(problem);
  out.forEach((value, i) =>
    expect(outRadius[i]).toBeLessThanOrEqual(
      Math.max(2 ** -10 * ulp(formats.fp32, value), 2 ** -52 * Math.abs(value)),
    ),
  );
  lse.forEach((value, i) =>
    expect(lseRadius[i]).toBeLessThanOrEqual(
      Math.max(2 ** -10 * ulp(formats.fp32, value), 2 ** -34),
    ),
  );
  return { out: out[0], radius: outRadius[0], level: levels[level[0]] };
}

describe('escalation at default accuracy', () => {
  it('stays in fp64 without cancellation', () => {
    expect(firstRow(scoredKeys('fp32', [0, 1, 2], [1, 2, 3])).level).toBe('fp64');
  });

  it('goes to double-double where values cancel to 2^-40', () => {
    const problem = scoredKeys('fp64', [0, 0], [1, -(1 - 2 ** -40)]);
    const { out, level } = firstRow(problem);
    expect(level).toBe('double-double');
    expect(out).toBe(2 ** -41);
  });

  it('goes to fixed point where values cancel beyond double-double', () => {
    // e^x · e^-x − 1 for x = 1 in fp64 against the value −fl(e^2): O is about 2^-53 of the values.
    const problem = scoredKeys('fp64', [1, -1], [1, -Math.exp(2)]);
    expect(firstRow(problem).level).toBe('double-double');
    const deeper = scoredKeys('fp64', [0, 0, 0], [1, -1, 2 ** -100]);
    const { out, level } = firstRow(deeper);
    expect(level).toBe('arbitrary');
    expect(out).toBeCloseTo(2 ** -100 / 3, 45);
  });

  it('goes to fixed point where O is exactly 0', () => {
    const { out, radius, level } = firstRow(scoredKeys('fp32', [3, 3, 1, 1], [5, -5, 7, -7]));
    expect({ out, level }).toEqual({ out: 0, level: 'arbitrary' });
    expect(radius).toBeLessThanOrEqual(2 ** -159);
  });

  it('raises the precision until a zero of large values is proven', () => {
    const { out, radius, level } = firstRow(scoredKeys('fp32', [3, 3], [3e38, -3e38]));
    expect({ out, level }).toEqual({ out: 0, level: 'arbitrary' });
    expect(radius).toBeLessThanOrEqual(2 ** -159);
  });

  it('goes on where the LSE cancels', () => {
    // ln(e^s + e^s) with s next to −ln 2.
    const problem = scoredKeys('fp64', [-Math.LN2, -Math.LN2], [1, 2]);
    firstRow(problem);
    expect(Math.abs(attentionOracle(problem).quantities.lse.values[0])).toBeLessThan(2 ** -52);
  });

  it('goes on where dot products of large norms cancel, unless the format makes them exact', () => {
    const big = 2 ** 15;
    const rows = {
      q: [[big, big, 1]],
      k: [
        [big, -big, 1],
        [-big, big, 2],
        [0, 0, 1],
      ],
      v: [[1], [2], [3]],
    };
    expect(firstRow(singleHead('bf16', rows)).level).toBe('fp64');
    const wide = rows.k.map((row) => row.map((x, c) => (c < 2 ? x * 2 ** 15 : x)));
    expect(firstRow(singleHead('fp32', { ...rows, k: wide })).level).toBe('double-double');
  });

  it('treats each row on its own', () => {
    const problem = singleHead('fp32', {
      q: [[0], [1]],
      k: [[0], [3]],
      v: [[1], [-1]],
    });
    const { level } = attentionOracle(problem);
    expect([...level].map((index) => levels[index])).toEqual(['arbitrary', 'fp64']);
  });
});

describe('the accuracy asked for', () => {
  it('may be loose enough that cancellation does not matter', () => {
    const accuracy: Accuracy = {
      outputFormat: 'bf16',
      ulpFraction: 0,
      magnitudeFraction: 2 ** -40,
    };
    const {
      level,
      quantities: {
        out: { radius: outRadius, magnitude },
      },
    } = attentionOracle(scoredKeys('fp32', [3, 3, 1, 1], [5, -5, 7, -7]), { accuracy });
    expect(levels[level[0]]).toBe('fp64');
    expect(outRadius[0]).toBeLessThanOrEqual(2 ** -40 * magnitude[0]);
  });

  it('may be as fine as fp64 itself', () => {
    const accuracy: Accuracy = { outputFormat: 'fp64', ulpFraction: 0, magnitudeFraction: 0 };
    const problem = scoredKeys('fp64', [0.1, 0.7, -2, 1], [1, -0.3, 1e-5, 0.02]);
    const {
      level,
      quantities: {
        out: { values: out, radius: outRadius },
      },
    } = attentionOracle(problem, { accuracy });
    expect(outRadius[0]).toBeLessThanOrEqual(2 ** -52 * Math.abs(out[0]));
    expect(levels[level[0]]).not.toBe('fp64');
  });
});
