import { quantities } from '../../src/problem/index.js';
import { describe, expect, it } from 'vitest';
import { gatherSketch, type AuditSketch } from '../../src/report/text/audit-sketch.js';
import { renderAudit } from '../../src/report/text/audit.js';
import { displayWidth } from '../../src/words/texts.js';
import { formats, ulp } from '../../src/formats/index.js';
import { judgedCases, reports } from './cases.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const [batch, heads, queries, vDim] = [1, 2, 100, 4];
const elements = batch * heads * queries * vDim;
/** The exact values, all 1 but for one that is infinite. */
const exact = new Float64Array(elements).fill(1);
const infinite = 4 * 99 + 1;
exact[infinite] = Infinity;

/** The sketch of the exact values with an error at some elements. */
function sketchOf(errors: Readonly<Record<number, number>>): AuditSketch {
  const out = Float64Array.from(exact, (value, i) => value + (errors[i] ?? 0));
  const shape = { batch, heads, queries, vDim };
  const reference = { shape, quantities: { out: { values: exact } } } as Parameters<
    typeof gatherSketch
  >[0]['reference'];
  return gatherSketch({
    reference,
    outputs: { out: { quantity: quantities[0], format: 'bf16', values: out } },
  });
}

const unit = ulp(formats.bf16, 1);
const { report } = judgedCases['pass'];
const linesOf = (sketch: AuditSketch, columns = 80) => {
  const lines = renderAudit(report, { full: true, sketch, columns }).split('\n');
  const first = lines.indexOf('Sketch');
  return lines.slice(first, lines.indexOf('', first));
};

describe('the sketch of an audit', () => {
  it('has the largest error of each query, over heads and columns', () => {
    const second = heads * queries * vDim - 1;
    const { queries: errors } = sketchOf({ 8: 0.25, 9: -0.5, [second]: 0.125 });
    expect(errors).toHaveLength(queries);
    expect(errors[2]).toBe(0.5);
    expect(errors[99]).toBe(0.125);
    expect(errors.filter((error) => error !== 0)).toHaveLength(2);
    const line = linesOf(sketchOf({ 8: 0.25, [4 * 60]: -0.5 }))[1];
    // Three queries a column.
    expect([...line.slice(12)].findIndex((character) => character === '▄')).toBe(0);
    expect([...line.slice(12)].findIndex((character) => character === '█')).toBe(20);
  });

  it('marks queries that are not finite', () => {
    const lines = linesOf(sketchOf({ 0: NaN, 40: 1 }));
    expect(lines[1]).toMatch(/^ {2}by query {2}× {2}█$/);
    expect(lines.join(' ').replace(/\s+/g, ' ')).toContain('× is not finite');
    // Both are infinite.
    expect(sketchOf({ [infinite]: 5 }).queries[99]).toBe(0);
  });

  it('counts every element that is finite in both, once', () => {
    const sketch = sketchOf({ 0: unit / 1024, 1: unit / 2, 2: unit, 3: 3 * unit, 4: 1e30, 5: NaN });
    const counted = sketch.ulps.reduce((sum, { elements }) => sum + elements, 0);
    expect(counted).toBe(5);
    expect(sketch.exact).toBe(elements - 1 - 6);
    expect(sketch.ulps.length).toBeLessThanOrEqual(40);
    for (const ulps of [2 ** -10, 0.5, 1, 3, 1e30 / unit]) {
      const bins = sketch.ulps.filter(({ low, high }) => low < ulps && ulps <= high);
      expect(bins).toHaveLength(1);
      expect(bins[0].elements).toBeGreaterThan(0);
    }
    for (const [i, { low }] of sketch.ulps.entries())
      expect(low).toBe(i === 0 ? 0 : sketch.ulps[i - 1].high);
  });

  it('of exact outputs has nothing to draw', () => {
    const sketch = sketchOf({});
    expect(sketch.ulps).toEqual([]);
    expect(linesOf(sketch)).toEqual(['Sketch', '  nothing  every element is exact']);
  });

  inTurn('fits every width, and is there only where it is wanted', () => {
    for (const sketch of [sketchOf({}), sketchOf({ 0: NaN, 4: 1e300, 9: 1e-300, 50: unit })])
      for (const [, of] of reports)
        for (const columns of [60, 61, 80, 100])
          for (const line of renderAudit(of, { full: true, sketch, columns }).split('\n'))
            expect(displayWidth(line)).toBeLessThanOrEqual(columns);
    const full = renderAudit(report, { full: true });
    expect(full).not.toContain('Sketch');
    expect(renderAudit(report, { full: true, sketch: null })).toBe(full);
    const sketch = sketchOf({ 4: 0.5 });
    expect(renderAudit(report, { sketch })).not.toContain('Sketch');
  });
});
