import { describe, expect, it } from 'vitest';
import {
  createTensorCoreTile,
  decodeOperand,
  findTensorCoreArithmetic,
  fusedDotProduct,
  operandFormats,
} from '../../../src/hardware/index.js';
import {
  arithmeticOf,
  capturedInstructions,
  columns,
  publishedWords,
  readCapture,
} from './captures.js';
import { compareDefinition, compareTiles } from './executions.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

describe.each(capturedInstructions)('$name on an H200', (instruction) => {
  const executions = readCapture(instruction);
  const results = executions.length * instruction.rows * columns;

  it('is what the table says silicon', () => {
    expect(arithmeticOf(instruction).evidence).toBe('silicon');
    expect(results).toBe(128 * columns * instruction.rows);
  });

  inTurn('gives every captured result by definition', () => {
    expect(compareDefinition(instruction, executions)).toEqual({ compared: results, different: 0 });
  });

  it('gives every captured result by tiles, B in either order', () => {
    expect(compareTiles(instruction, executions)).toEqual({ compared: 2 * results, different: 0 });
  });
});

describe('tcgen05.mma on a B200, as published', () => {
  const words = publishedWords();

  it('has all 39 words', () => {
    expect(words.length).toBe(39);
  });

  it.each(words)('$name', ({ format, a, b, c, d }) => {
    const arithmetic = findTensorCoreArithmetic({
      instruction: 'tcgen05.mma',
      architecture: 'sm_100',
      a: format,
    });
    expect(arithmetic.evidence).toBe('published-words');
    expect(a.length).toBe(arithmetic.productsPerSum);
    const operands = (patterns: readonly number[]) =>
      patterns.map((bits) => decodeOperand(operandFormats[format], bits));
    expect(fusedDotProduct(arithmetic, operands(a), operands(b), c)).toBe(d);

    const tile = createTensorCoreTile(arithmetic, {
      rows: 1,
      columns: 8,
      inner: a.length,
      aFormat: format,
      bFormat: format,
    });
    tile.a.set(a);
    for (let column = 0; column < 8; column++) tile.b.set(b, column * b.length);
    tile.packA();
    tile.packTransposedB();
    tile.cBits.fill(c);
    tile.multiplyAccumulate();
    expect([...tile.cBits]).toEqual(Array.from({ length: 8 }, () => d));
  });
});
