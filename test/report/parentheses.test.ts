import { describe, expect, it } from 'vitest';
import { describePlace, everywhere, placeInBrackets } from '../../src/audit/rows/index.js';
import { renderAudit } from '../../src/report/text/index.js';
import { sampled } from '../setup/effort.js';
import { reports } from './cases.js';

/** Pairs of parentheses within others, with what stands around them. */
function nested(text: string): string[] {
  const found: string[] = [];
  let depth = 0;
  [...text].forEach((letter, at) => {
    if (letter === ')') depth = Math.max(0, depth - 1);
    if (letter !== '(') return;
    if (++depth > 1) found.push(text.slice(Math.max(0, at - 60), at + 40));
  });
  return found;
}

describe('parentheses', () => {
  it('are found within others', () => {
    expect(nested('a (b) (c), d).')).toEqual([]);
    expect(nested('a (b (c)).')).toHaveLength(1);
  });

  it.each(sampled(reports, 20))('do not nest in the report of: %s', (_, report) => {
    for (const full of [false, true])
      expect(nested(renderAudit(report, { full, columns: 1000 }).replaceAll('\n', ' '))).toEqual(
        [],
      );
    expect(nested(JSON.stringify(report.verdict))).toEqual([]);
  });

  it('do not nest in places', () => {
    const some = { ranges: [{ first: 3, last: 7 }], of: 128, each: 32 };
    const rows = { count: 5, of: 40, sampled: true };
    const all = Object.keys(everywhere).map((axis) => [axis, axis === 'rows' ? rows : some]);
    const place = { ...everywhere, ...Object.fromEntries(all) };
    expect(describePlace(place)).toContain('5 of 40 sampled rows');
    expect(nested(placeInBrackets(place))).toEqual([]);
  });
});
