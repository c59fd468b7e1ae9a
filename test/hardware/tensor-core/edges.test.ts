import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { formats } from '../../../src/formats/index.js';
import {
  allEdgeOperands,
  arithmeticOf,
  edgeInstructions,
  readEdges,
  splitEdges,
} from './captures.js';
import { compareDefinition, compareTiles } from './executions.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const edges = readEdges();
const total = edges.flat().reduce((sum, { d }) => sum + d.length, 0);

it('covers 194,304 results', () => {
  expect(total).toBe(194_304);
});

const indexed = edgeInstructions.map((instruction, index) => ({ ...instruction, index }));

describe.each(indexed)('$name on an H200, operands at the edges', ({ index, ...instruction }) => {
  const executions = edges[index];
  const results = executions.reduce((sum, { d }) => sum + d.length, 0);
  const arithmetic = arithmeticOf(instruction);

  inTurn('gives every captured result by definition', () => {
    expect(arithmetic.evidence).toBe('silicon');
    const expected = { compared: results, different: 0 };
    expect(compareDefinition(instruction, executions)).toEqual(expected);
  });

  if (arithmetic.accumulator === 'fp32' && arithmetic.sequence === 'chain')
    it('gives every captured result by tiles, B in either order', () => {
      const expected = { compared: 2 * results, different: 0 };
      expect(compareTiles(instruction, executions)).toEqual(expected);
    });
});

/** A folder for results of your own GPU; fixtures/silicon/sm_90/mma/README.md tells how. */
const ownFolder = process.env.TENSOR_CORE_EDGES;
const patternArrays = { 8: Uint8Array, 16: Uint16Array, 32: Uint32Array } as const;

/** Writes the operands to the folder or, when results are there, compares them. */
function captureYourOwn(ownFolder: string, index: number): void {
  const instruction = edgeInstructions[index];
  const path = (array: string) => join(ownFolder, `${instruction.name}.${array}.bin`);
  const operands = allEdgeOperands(index);
  const { a, b, accumulator } = instruction;
  const arrays = { a, b, c: accumulator, d: accumulator };
  const arrayOf = (name: keyof typeof arrays) =>
    patternArrays[formats[arrays[name]].storageBits as 8 | 16 | 32];
  if (!existsSync(path('d'))) {
    mkdirSync(ownFolder, { recursive: true });
    for (const name of ['a', 'b', 'c'] as const)
      writeFileSync(path(name), new Uint8Array(new (arrayOf(name))(operands[name]).buffer));
    return;
  }
  const bytes = new Uint8Array(readFileSync(path('d')));
  const d = Uint32Array.from(new (arrayOf('d'))(bytes.buffer));
  const executions = splitEdges(index, operands, d);
  expect(compareDefinition(instruction, executions).different).toBe(0);
}

if (ownFolder !== undefined)
  it.each(indexed)('$name on your own GPU', ({ index }) => captureYourOwn(ownFolder, index));
