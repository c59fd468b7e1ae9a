import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { displayWidth, plainText } from '../../src/words/texts.js';
import { formatCosine, formatPowerOfTwo, formatShare, shareUsed } from '../../src/words/numbers.js';
import { layoutTable } from '../../src/report/layout/table.js';
import { wrapText } from '../../src/report/layout/wrap-text.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

describe('plain text', () => {
  test('leaves what can be shown and writes the rest as code points', () => {
    expect(plainText('héllo 漢字 😀 −±')).toBe('héllo 漢字 😀 −±');
    expect(plainText('a\nb\x1b\u202e\u{e0001}\ud83d')).toBe(
      'a\\u{a}b\\u{1b}\\u{202e}\\u{e0001}\\u{d83d}',
    );
  });

  inTurn('never holds a character that acts, whatever it is made of', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(plainText(text)).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
      }),
    );
  });

  test('has its width in terminal columns', () => {
    expect(displayWidth('plain √ Σ')).toBe(9);
    expect(displayWidth('漢字')).toBe(4);
    expect(displayWidth('ｆｕｌｌ')).toBe(8);
    expect(displayWidth('한글')).toBe(4);
    expect(displayWidth('e\u0301')).toBe(1);
    expect(displayWidth('😀')).toBe(2);
  });
});

describe('wrapped text', () => {
  const words = fc
    .array(fc.string({ unit: fc.constantFrom('a', 'é', '漢', '/', '%', '±'), maxLength: 30 }))
    .map((parts) => parts.join(' '));

  test('fits, and loses nothing but the spaces at the ends of lines', () => {
    fc.assert(
      fc.property(words, fc.integer({ min: 2, max: 50 }), (text, width) => {
        const lines = wrapText(text, width);
        expect(lines.length).toBeGreaterThan(0);
        for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(width);
        expect(lines.join('').replaceAll(' ', '')).toBe(text.replaceAll(' ', ''));
      }),
    );
  });

  test('breaks as late as it can, and no word that fits a line', () => {
    const short = fc.array(
      fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1, maxLength: 9 }),
    );
    fc.assert(
      fc.property(short, fc.integer({ min: 9, max: 40 }), (parts, width) => {
        const lines = wrapText(parts.join(' '), width);
        expect(lines.flatMap((line) => line.split(' ')).filter((word) => word !== '')).toEqual(
          parts,
        );
        lines.slice(1).forEach((line, i) => {
          const next = line.split(' ')[0];
          expect(displayWidth(`${lines[i]} ${next}`)).toBeGreaterThan(width);
        });
      }),
    );
  });

  test('keeps numbers and their units together', () => {
    expect(wrapText('uses 54.4 % of it', 9)).toEqual(['uses', '54.4 % of', 'it']);
    expect(wrapText('explains 1 ± 0.005', 14)).toEqual(['explains', '1 ± 0.005']);
  });

  test('cuts a long path behind a slash', () => {
    expect(wrapText('in folder/other/name.npz', 14)).toEqual(['in', 'folder/other/', 'name.npz']);
    expect(wrapText('aaaaaaaaaa', 4)).toEqual(['aaaa', 'aaaa', 'aa']);
    expect(wrapText('', 10)).toEqual(['']);
  });
});

describe('a table', () => {
  const paint = (_: string, text: string) => `<${text}>`;
  const options = { alignments: ['left', 'right'] as const, width: 24, paint };

  test('aligns its columns and wraps the last', () => {
    const rows = [
      ['a', '1.5', 'short'],
      ['漢字', '10', 'a text that is too long'],
      ['c', '100'],
    ];
    expect(layoutTable(rows, options)).toEqual([
      'a     1.5  short',
      '漢字   10  a text that',
      '           is too long',
      'c     100',
    ]);
  });

  test('paints what is visible and keeps it aligned', () => {
    const rows = [
      ['a', { text: '1', tone: 'failure' as const }, 'x'],
      ['b', '22', { text: 'y', tone: 'heading' as const }],
    ];
    expect(layoutTable(rows, options)).toEqual(['a   <1>  x', 'b  22  <y>']);
  });
});

describe('numbers for reading', () => {
  test('shares', () => {
    expect([0, 0.1234, 1, 9.99, 10, 12345].map(formatShare)).toEqual([
      '0 %',
      '12.3 %',
      '100 %',
      '999 %',
      '10 ×',
      '12300 ×',
    ]);
    expect([NaN, Infinity].map(formatShare)).toEqual(['NaN', 'Infinity']);
  });

  test('what is used of what is allowed', () => {
    expect(shareUsed(0, 0)).toBe(0);
    expect(shareUsed(-2, 4)).toBe(0.5);
    expect(shareUsed(1, 0)).toBe(Infinity);
    expect(shareUsed(1, Infinity)).toBe(0);
  });

  test('powers of two and cosines', () => {
    expect([2 ** -40, 3 * 2 ** -44, 0, Infinity].map(formatPowerOfTwo)).toEqual([
      '2^-40',
      '2^-42.4',
      '0',
      'Infinity',
    ]);
    expect([1, 1 - 2 ** -20, 1 + 2 ** -20, 0.5, -1, NaN].map(formatCosine)).toEqual([
      '1',
      '1 - 9.54e-7',
      '1 + 9.54e-7',
      '0.5',
      '-1',
      'NaN',
    ]);
  });
});
