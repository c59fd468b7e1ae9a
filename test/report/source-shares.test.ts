import { describe, expect, it } from 'vitest';
import { sourceShares, sourceTable } from '../../src/report/html/launch/source-shares.js';

const line = (file: string, number: number) => ({ file, line: number, column: 1 });
/** A text of so many lines, each of which says which it is. */
const lined = (count: number, what: string) =>
  Array.from({ length: count }, (_, i) => `\t${what} ${i + 1};\r`).join('\n');
const texts = {
  ptx: [lined(44, 'instruction')],
  sources: new Map([['kernel.py', lined(12, 'x')]]),
};
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
    expect(sourceShares(shares, texts)).toEqual([
      { place: 'kernel.py:9', share: -0.125, text: 'x 9;' },
      { place: 'kernel.py:12', share: 0.75, text: 'x 12;' },
      // The source that is given ends before.
      { place: 'kernel.py:20', share: 1e-5, text: 'PTX line 44: instruction 44;' },
    ]);
  });

  it('are told with the instruction that has most of them, where no source is given', () => {
    const bare = sourceShares(shares, { ...texts, sources: new Map() });
    expect(bare.map(({ text }) => text)).toEqual([
      'PTX line 42: instruction 42;',
      'PTX line 41: instruction 41;',
      'PTX line 44: instruction 44;',
    ]);
  });

  it('are bars as long as their shares, and nothing without a source', () => {
    const { html } = sourceTable('out', shares, texts);
    const widths = [...html.matchAll(/<rect[^>]* width="([^"]*)"/g)].map(([, width]) => width);
    expect(widths.map(Number)).toEqual([33.3, 200]);
    expect(html).toContain('<code>x 12;</code>');
    expect(html).toContain('-12.5 %');
    expect(sourceTable('out', shares.slice(3, 4), texts).html).toBe('');
  });
});
