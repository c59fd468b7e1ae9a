import { describe, expect, it } from 'vitest';
import { sourceShares, sourceTable } from '../../src/report/html/launch/source-shares.js';

const line = (file: string, number: number) => ({ file, line: number, column: 1 });
const place = (number: number) => ({ launch: null, site: `line ${number}: fma.rn.f32` });

describe('shares of an error by lines of the source', () => {
  const shares = [
    { ...place(40), source: { ...line('/a/kernel.py', 12), inlinedAt: null }, share: 0.25 },
    // What a library's function does, counts for the line that calls it.
    {
      ...place(41),
      source: { ...line('/lib/standard.py', 300), inlinedAt: line('/a/kernel.py', 12) },
      share: 0.5,
    },
    { ...place(42), source: { ...line('/a/kernel.py', 9), inlinedAt: null }, share: -0.125 },
    { ...place(43), source: null, share: 0.375 },
    { ...place(44), source: { ...line('/a/kernel.py', 20), inlinedAt: null }, share: 1e-5 },
  ];

  it('sum what a line and the functions inlined in it do, in the order of the source', () => {
    expect(sourceShares(shares).map(({ place: of, share }) => [of, share])).toEqual([
      ['kernel.py:9', -0.125],
      ['kernel.py:12', 0.75],
      ['kernel.py:20', 1e-5],
    ]);
  });

  it('are bars as long as their shares, and nothing without a source', () => {
    const { html } = sourceTable('out', shares);
    const widths = [...html.matchAll(/<rect[^>]* width="([^"]*)"/g)].map(([, width]) => width);
    expect(widths.map(Number)).toEqual([33.3, 200]);
    expect(html).toContain('-12.5 %');
    expect(sourceTable('out', shares.slice(3, 4)).html).toBe('');
  });
});
