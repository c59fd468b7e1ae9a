import { describe, expect, it } from 'vitest';
import { fa4Evidence } from '../../kernels/index.js';
import { evidenceTables } from './evidence-tables.js';
import { readDocument } from './shell-document.js';

/** A table without the blanks and dashes that align it. */
function unaligned(table: string): string {
  return table
    .trim()
    .split('\n')
    .map((line) =>
      line
        .trim()
        .replaceAll(/ *\| */g, '|')
        .replaceAll(/-{3,}:?/g, '---'),
    )
    .join('\n');
}

describe('docs/reference/emulation.md', () => {
  const text = readDocument('docs/reference/emulation.md');

  it.each(Object.keys(evidenceTables))('has the table %s as the code has it', (name) => {
    const table = evidenceTables[name]();
    const shown = text.split(`<!-- ${name} -->`)[1].split(`<!-- /${name} -->`)[0];
    expect(unaligned(shown), `put between its marks:\n${table}`).toBe(unaligned(table));
  });

  it('may speak of formats by their width', () => {
    for (const architecture of ['sm_90', 'sm_100', 'sm_103'] as const)
      for (const [one, other] of [
        ['bf16', 'fp16'],
        ['e4m3', 'e5m2'],
      ] as const)
        expect(fa4Evidence(architecture, one)).toEqual(fa4Evidence(architecture, other));
  });
});
