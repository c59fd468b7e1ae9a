import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, expect, it } from 'vitest';
import { emulate } from '../../../src/emulate/index.js';
import { formats, patternsOf } from '../../../src/formats/index.js';
import type { Tensor } from '../../../src/problem/index.js';
import { casePaths, readCase } from '../../audit/captured-cases.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** How many of a tensor's elements have the same bits in another. */
function equalBits(actual: Tensor, expected: Tensor): number {
  const [a, b] = [actual, expected].map(({ data, format }) => patternsOf(data, formats[format]));
  return Array.from(a).filter((bits, i) => bits === b[i]).length;
}

const document = readFileSync(
  new URL('../../../docs/reference/emulation.md', import.meta.url),
  'utf8',
);
/** The rows of the table, cells by the case. */
const documented = new Map(
  document
    .split('<!-- fa2 -->')[1]
    .split('<!-- /fa2 -->')[0]
    .split('\n')
    .filter((line) => /^\| \d\d-/.test(line))
    .map((line) => {
      const [name, ...cells] = line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim());
      return [name, cells] as const;
    }),
);

const count = (n: number): string => n.toLocaleString('en-US');

describe('FlashAttention-2 in PyTorch on an H200', () => {
  it('is documented for every captured case', () => {
    const names = casePaths.map((path) => basename(path, '.safetensors'));
    expect([...documented.keys()]).toEqual(names);
  });

  inTurn.each(casePaths.map((path) => [basename(path, '.safetensors'), path]))(
    '%s: output and LSE equal bit for bit',
    async (name, path) => {
      const { problem, outputs } = await readCase(path);
      const emulated = await emulate(problem, 'fa2', { settings: new Map([['splits', 'auto']]) });
      const { out, lse } = outputs.torch_flash;
      const cells = [
        String(emulated.settings.splits),
        `${count(equalBits(emulated.out, out))} of ${count(out.data.length)}`,
        `${count(equalBits(emulated.lse, lse!))} of ${count(lse!.data.length)}`,
      ];
      console.log(`${name}: splits ${cells[0]}, output ${cells[1]}, LSE ${cells[2]}`);
      expect(equalBits(emulated.out, out)).toBe(out.data.length);
      expect(equalBits(emulated.lse, lse!)).toBe(lse!.data.length);
      expect(cells).toEqual(documented.get(name));
    },
  );
});
