import { computedTables } from '../../../../oracles/index.js';
import { decodeTensor, encodeFromFloat64, formats, type Tensor } from '../../../formats/index.js';
import type { Rotary, RotaryFrequencies } from '../../../problem/index.js';
import { fault, mapped, withRotary, type Change, type PrologueFault } from './prologue-fault.js';

/** The rotation of other positions, as far as the tables have rows for them. */
function atPositions(rotary: Rotary, of: (position: number, token: number) => number): Rotary {
  const { positions, rows, tables } = rotary;
  const last = tables.cos.shape[0] - 1;
  const rowOf = (position: number) =>
    rows === undefined ? Math.min(last, Math.max(0, position)) : rows.indexOf(position);
  const moved = positions.map((row, token) => {
    const found = rowOf(of(rows?.[row] ?? row, token));
    return found < 0 ? row : found;
  });
  return { ...rotary, positions: moved };
}

function positionOf({ positions, rows }: Rotary, token: number): number {
  const row = positions[Math.min(positions.length - 1, Math.max(0, token))];
  return rows?.[row] ?? row;
}

/** Positions counted from the first token of each sequence in this batch, as without a cache before them. */
function fromFirst(rotary: Rotary): Rotary | null {
  const { sequences } = rotary;
  if (sequences === undefined) return null;
  const first = new Map<number, number>();
  for (const [token, sequence] of sequences.entries())
    first.set(sequence, Math.min(first.get(sequence) ?? Infinity, positionOf(rotary, token)));
  return atPositions(rotary, (position, token) => position - (first.get(sequences[token]) ?? 0));
}

function rounded(table: Tensor, format: 'bf16' | 'fp16'): Tensor {
  const data = encodeFromFloat64(formats[format], decodeTensor(table));
  return { format, shape: table.shape, data };
}

/** Tables stored in a shorter format than they have; null where they have it. */
function inFormat(format: 'bf16' | 'fp16'): Change {
  return withRotary((rotary) => {
    const { tables, rows, made } = rotary;
    if (made !== undefined && rows !== undefined)
      return made.format === 'fp32'
        ? { ...rotary, ...computedTables(rows, { ...made, format }) }
        : null;
    if (formats[tables.cos.format].precision <= formats[format].precision) return null;
    return {
      ...rotary,
      tables: { cos: rounded(tables.cos, format), sin: rounded(tables.sin, format) },
    };
  });
}

/** Tables of other frequencies; null of tables that are given. */
function atFrequencies(
  change: (of: RotaryFrequencies, columns: number) => RotaryFrequencies | null,
): Change {
  return withRotary((rotary, { input }) => {
    const { rows, made } = rotary;
    if (made === undefined || rows === undefined) return null;
    const frequencies = change(made.frequencies, input.shape[2] - (rotary.first ?? 0));
    return frequencies && { ...rotary, ...computedTables(rows, { ...made, frequencies }) };
  });
}

const positionFaults: readonly PrologueFault[] = [
  ...(
    [
      [1, 'behind'],
      [-1, 'before'],
    ] as const
  ).map(([by, word]) =>
    fault(
      'rope-position',
      `the rotation takes the position ${word}`,
      withRotary((rotary) => atPositions(rotary, (position) => position + by)),
    ),
  ),
  ...(
    [
      [-1, 'before'],
      [1, 'behind'],
    ] as const
  ).map(([by, word]) =>
    fault(
      'rope-position',
      `the rotation takes the position of the token ${word} in the batch`,
      withRotary((rotary) => atPositions(rotary, (_, token) => positionOf(rotary, token + by))),
    ),
  ),
  fault(
    'rope-position',
    'the rotation takes the number of the token in the batch as its position',
    withRotary((rotary) => atPositions(rotary, (_, token) => token)),
  ),
  fault(
    'rope-offset',
    'the rotation counts positions from the first new token of a sequence, without the keys before it',
    withRotary(fromFirst),
  ),
];

/** Rotations that are wrong. */
export const rotaryFaults: readonly PrologueFault[] = [
  fault(
    'rope-interleaved',
    'the rotation pairs neighbouring elements where it pairs halves, or the reverse',
    withRotary((rotary) => ({
      ...rotary,
      layout: rotary.layout === 'halves' ? 'neighbours' : 'halves',
    })),
  ),
  ...positionFaults,
  fault(
    'rope-missing',
    'the rotation is missing',
    withRotary(() => 'none'),
  ),
  fault(
    'rope-backwards',
    'the rotation turns backwards',
    withRotary((rotary) => {
      const { cos, sin } = rotary.tables;
      return { ...rotary, tables: { cos, sin: mapped(sin, (x) => -x) } };
    }),
  ),
  fault(
    'rope-twice',
    'the rotation is made twice',
    withRotary((rotary) => ({ ...rotary, times: 2 })),
  ),
  fault(
    'rope-cos-sin',
    'cosines and sines are exchanged',
    withRotary((rotary) => {
      const { cos, sin } = rotary.tables;
      const { errors } = rotary;
      return {
        ...rotary,
        tables: { cos: sin, sin: cos },
        ...(errors && { errors: { cos: errors.sin, sin: errors.cos } }),
      };
    }),
  ),
  fault(
    'rope-columns',
    'the last columns are rotated in place of the first, or the reverse',
    withRotary((rotary, { input }) => {
      const left = input.shape[2] - 2 * rotary.tables.cos.shape[1];
      if (left <= 0) return null;
      return { ...rotary, first: (rotary.first ?? 0) === 0 ? left : 0 };
    }),
  ),
  fault(
    'rope-dims',
    'all columns are rotated where only some are',
    atFrequencies((of, columns) =>
      2 * of.pairs >= columns ? null : { ...of, dims: columns, pairs: Math.floor(columns / 2) },
    ),
  ),
  fault(
    'rope-frequencies',
    'the frequencies are those of all columns where only some are rotated',
    atFrequencies((of, columns) => (of.dims >= columns ? null : { ...of, dims: columns })),
  ),
  ...[10000, 500000, 1e6, 1e7, 1e5].map((base) =>
    fault(
      'rope-base',
      `the base of the frequencies is ${base}`,
      atFrequencies((of) => (of.base === base ? null : { ...of, base })),
    ),
  ),
  fault(
    'rope-factor',
    'positions are not divided by their factor',
    atFrequencies((of) => (of.factor === 1 ? null : { ...of, factor: 1 })),
  ),
  fault('rope-table-format', 'the tables of the rotation are rounded to bf16', inFormat('bf16')),
  fault('rope-table-format', 'the tables of the rotation are rounded to fp16', inFormat('fp16')),
];
