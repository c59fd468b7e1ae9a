import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { emptyEnvelope } from '../../src/profile/envelope.js';
import { profileDocument } from '../../src/report/json/index.js';
import {
  profileExp2,
  profileRangeReduction,
  profileSplit,
  profileUnit,
  profileWeightRounding,
  techniqueNamed,
  type Plot,
} from '../../src/profile/index.js';
import { renderProfile } from '../../src/report/text/profile/index.js';
import { renderSvg } from '../../src/report/svg/index.js';
import { envelopePaths } from '../../src/report/svg/svg-plot.js';
import {
  formatCertainDigits,
  formatDigits,
  formatFloat32,
  formatPercentage,
} from '../../src/words/numbers.js';
import { alignColumns } from '../../src/report/layout/table.js';
import { linearPanel, logarithmicPanel } from '../../src/profile/techniques/profile.js';
import { anyBits, float32 } from '../profile/random-results.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const finite = fc.double({ noNaN: true, min: -1e300, max: 1e300 });

describe('numbers as text', () => {
  it('of fp32 read back as themselves', () => {
    fc.assert(
      fc.property(anyBits.map(float32), (value) => {
        expect(Math.fround(Number(formatFloat32(value)))).toBe(value);
      }),
      { numRuns: 2000 },
    );
  });

  it('with formatDigits are within half of the last', () => {
    fc.assert(
      fc.property(finite, fc.integer({ min: 1, max: 15 }), (value, count) => {
        const error = Math.abs(Number(formatDigits(value, count)) - value);
        expect(error).toBeLessThanOrEqual(Math.abs(value) * 0.5000001 * 10 ** (1 - count));
      }),
    );
  });

  it('has no digit that the certainty does not allow', () => {
    fc.assert(
      fc.property(fc.double({ min: 1e-9, max: 1, noNaN: true }), (value) => {
        const text = formatCertainDigits(value, 2 ** -51);
        const count = text.replace(/e.*$/, '').replace(/^0\.0*|\.|-/g, '').length;
        // The last digit weighs more than the certainty.
        expect(10 ** (Math.floor(Math.log10(value)) - count + 1)).toBeGreaterThan(2 ** -51);
        expect(Math.abs(Number(text) - value)).toBeLessThan(value);
      }),
    );
  });

  it('never calls a share all or nothing that is not', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, noNaN: true }), (share) => {
        const text = formatPercentage(share);
        expect(text === '0 %').toBe(share === 0);
        if (share < 1 - 2 ** -27) expect(text).not.toBe('100 %');
      }),
    );
    expect([formatPercentage(1), formatPercentage(null)]).toEqual(['100 %', '-']);
  });
});

describe('a table', () => {
  it('aligns its columns', () => {
    expect(
      alignColumns([
        ['', 'a', 'bcd'],
        ['name', '12', '3'],
      ]),
    ).toEqual(['         a  bcd', '  name  12    3']);
  });

  it('goes on below itself where it is wider than a terminal, and loses nothing', () => {
    const cell = fc.string({ minLength: 1, maxLength: 30, unit: fc.constantFrom(...'ab0.-') });
    const tables = fc
      .tuple(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 6 }))
      .chain(([columns, rows]) =>
        fc.array(fc.array(cell, { minLength: columns, maxLength: columns }), {
          minLength: rows,
          maxLength: rows,
        }),
      );
    fc.assert(
      fc.property(tables, (rows) => {
        const lines = alignColumns(rows, 80);
        for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
        // The rows come in turn, in one part or several, each part with the names before its numbers.
        rows.forEach((row, index) => {
          const parts = lines.filter((_, place) => place % rows.length === index);
          const cells = parts.map((line) => line.trim().split(/ {2,}/));
          for (const [name] of cells) expect(name).toBe(row[0]);
          expect([row[0], ...cells.flatMap(([, ...numbers]) => numbers)]).toEqual(row);
        });
      }),
    );
  });
});

it('an unknown name of any length is refused in a short line', () => {
  const refusal = (name: string) => {
    try {
      techniqueNamed(name);
      return '';
    } catch (error) {
      return (error as Error).message;
    }
  };
  expect(refusal('exp3')).toContain('no profile of "exp3"; known are exp2');
  expect(refusal('x'.repeat(5000)).length).toBeLessThan(300);
});

describe('every profile', () => {
  const ranges = { from: -1, to: -0.9999 };
  inTurn.each(['exp2', 'range-reduction', 'split', 'rcp', 'log2', 'rsqrt', 'p-round'])(
    'is text of 80 columns: %s',
    async (name) => {
      const isPositive = !['exp2', 'range-reduction', 'split'].includes(name);
      const range = isPositive ? { from: 0.9999, to: 1 } : ranges;
      const lines = renderProfile(await techniqueNamed(name).run({ range })).split('\n');
      expect(lines.filter((line) => [...line].length > 80)).toEqual([]);
    },
  );
});

/** Throws unless the text is one well-formed element after an optional declaration. */
function checkXml(text: string): string[] {
  const names: string[] = [];
  const open: string[] = [];
  const rest = text
    .replace(/^<\?xml version="1\.0" encoding="UTF-8"\?>\n/, '')
    .replace(/<(\/?)([a-z]+)((?: [a-zA-Z0-9-]+="[^"<&]*")*)(\/?)>/g, (_, end, name, __, empty) => {
      names.push(name as string);
      if (end === '/') expect(open.pop()).toBe(name);
      else if (empty !== '/') open.push(name as string);
      return '';
    });
  expect(open).toEqual([]);
  expect(rest.replace(/&(amp|lt|gt);/g, '')).not.toMatch(/[<>&]/);
  return names;
}

describe('a plot', () => {
  const panel = linearPanel('x & y', -1, 1);
  const columns = panel.boundaries.length - 1;
  const envelope = (value: (i: number) => readonly [number, number]) => ({
    least: Float64Array.from({ length: columns }, (_, i) => value(i)[0]),
    most: Float64Array.from({ length: columns }, (_, i) => value(i)[1]),
  });
  const plot: Plot = {
    panel,
    quantity: 'error < 1',
    curves: [
      { name: 'small', envelope: envelope((i) => [-1e-7, 1e-8 * (i % 5)]) },
      { name: 'large & <wide>', envelope: envelope(() => [-0.05, 0.04]) },
      { name: 'none', envelope: envelope(() => [Infinity, -Infinity]) },
    ],
  };

  it('is well-formed XML without a script', () => {
    const names = checkXml(renderSvg('a & b', [plot, plot]));
    expect(names[0]).toBe('svg');
    expect(names).not.toContain('script');
    expect(names.filter((name) => name === 'path')).toHaveLength(4);
    checkXml(renderSvg('empty', [{ ...plot, curves: [] }]));
    const powers = logarithmicPanel('x', 2 ** -100, 2 ** 100);
    const curve = { name: 'c', envelope: emptyEnvelope(powers.boundaries.length - 1) };
    curve.envelope.least.fill(1);
    curve.envelope.most.fill(2);
    expect(renderSvg('p', [{ ...plot, panel: powers, curves: [curve] }])).toContain(
      '>2^-100</text>',
    );
  });

  it('shows curves of every size on its axis', () => {
    const svg = renderSvg('t', [plot]);
    const paths = [...svg.matchAll(/<path d="([^"]*)"/g)].map(([, d]) => d);
    for (const path of paths) {
      const heights = [...path.matchAll(/V([\d.]+)/g)].map(([, y]) => Number(y));
      // Neither out of the panel nor squeezed to a line.
      expect(Math.min(...heights)).toBeGreaterThanOrEqual(0);
      expect(Math.max(...heights)).toBeLessThanOrEqual(348);
      expect(Math.max(...heights) - Math.min(...heights)).toBeGreaterThan(10);
    }
  });

  it('draws a run of columns around its errors, and a gap as two runs', () => {
    const least = Float64Array.of(0, 1, Infinity, 3);
    const most = Float64Array.of(2, 4, -Infinity, 5);
    const paths = envelopePaths({ least, most }, [0, 10, 20, 30, 40], (value) => 100 - value);
    expect(paths).toEqual(['M0 98V98H10V96H20V99H10V100H0Z', 'M30 95V95H40V97H30Z']);
  });
});

describe('profiles as text and JSON', () => {
  const range = { from: -0.5, to: -0.4999 };

  it('hold the figures of the profile', async () => {
    const profile = await profileExp2({ range, degrees: [3] });
    const text = renderProfile(profile);
    const [domain] = profile.domains;
    const degree3 = domain.functions[2].measures;
    const { error, inputBits } = degree3[0].largest[0];
    expect(text).toContain(inputBits);
    expect(text).toContain(formatDigits(error, 6));
    expect(text).toContain(`only those from ${range.from} to ${range.to}`);
    expect(text).toContain(
      `differs from ex2.approx.ftz.f32 at ${degree3[1].differing.toLocaleString('en-US')} of ${domain.inputs.toLocaleString('en-US')}`,
    );
    expect(text).not.toMatch(/undefined|\[object|NaN to/);
  });

  it('exist for every technique, without holes', async () => {
    const profiles = [
      await profileExp2({ range, degrees: [1] }),
      await profileRangeReduction({ range }),
      await profileUnit('rcp', { range }),
      await profileUnit('log2', { range: { from: 0.5, to: 0.5001 } }),
      await profileUnit('rsqrt', { range: { from: 0.5, to: 0.5001 } }),
      await profileWeightRounding({ range: { from: 0.5, to: 0.5001 } }),
      await profileSplit({ range, tuning: 'd128-causal-1cta-sm_100' }),
    ];
    for (const profile of profiles) {
      const text = renderProfile(profile);
      expect(text).not.toMatch(/undefined|\[object|NaN/);
      for (const line of text.split('\n')) expect(line).toBe(line.trimEnd());
      const json = JSON.stringify(profileDocument(profile));
      // A number that JSON has no word for would have become null without a trace.
      expect(JSON.parse(json)).toEqual(profileDocument(profile));
      expect(json).not.toContain('"plots"');
      if ('plots' in profile) checkXml(renderSvg(profile.title, profile.plots));
    }
  });

  it('have strings for what is not finite', async () => {
    const profile = await profileUnit('rcp', { range: { from: -1e-45, to: 2 ** -126 } });
    const { corners } = profileDocument(profile) as {
      corners: { results: { least: unknown }[] }[];
    };
    expect(corners[0].results[0].least).toBe('-Infinity');
  });
});
