import { computedTables } from '../../../../oracles/index.js';
import { decodeTensor, encodeFromFloat64, formats, type Tensor } from '../../../formats/index.js';
import type {
  Prologue,
  RootMeanSquareNorm,
  Rotary,
  RotaryFrequencies,
} from '../../../problem/index.js';

/** A tensor with its prologue, as a fault may change it. */
export interface ProloguePart {
  readonly name: string;
  /** [tokens, heads, columns] */
  readonly input: Tensor;
  readonly prologue: Prologue | null;
}

/** A prologue with a fault; null where a part's own cannot have it. */
export interface PrologueFault {
  readonly id: string;
  readonly sentence: string;
  readonly change: (part: ProloguePart, all: readonly ProloguePart[]) => Prologue | null;
}

type Change = PrologueFault['change'];

function fault(id: string, sentence: string, change: Change): PrologueFault {
  return { id, sentence, change };
}

function withRotary(
  change: (rotary: Rotary, part: ProloguePart) => Rotary | null | 'none',
): Change {
  return (part) => {
    const { prologue } = part;
    if (prologue === null || prologue.rotary === null) return null;
    const rotary = change(prologue.rotary, part);
    if (rotary === null) return null;
    return { ...prologue, rotary: rotary === 'none' ? null : rotary };
  };
}

function withNorm(
  change: (
    norm: RootMeanSquareNorm,
    part: ProloguePart,
    all: readonly ProloguePart[],
  ) => RootMeanSquareNorm | null | 'none',
): Change {
  return (part, all) => {
    const { prologue } = part;
    if (prologue === null || prologue.norm === null) return null;
    const norm = change(prologue.norm, part, all);
    if (norm === null) return null;
    return { ...prologue, norm: norm === 'none' ? null : norm };
  };
}

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

/** A table whose numbers are others, in its own format. */
function mapped(table: Tensor, change: (x: number, i: number) => number): Tensor {
  const data = encodeFromFloat64(formats[table.format], decodeTensor(table).map(change));
  return { ...table, data };
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

const rotaryFaults: readonly PrologueFault[] = [
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

/** The gain of each head, moved by one head. */
function movedGain(by: number): Change {
  return withNorm((norm, { input }) => {
    const { gain } = norm;
    if (gain === null || gain.shape.length !== 2 || input.shape[1] < 2) return null;
    const [heads, columns] = gain.shape;
    const values = decodeTensor(gain);
    const from = (i: number) => (i + by * columns + heads * columns) % (heads * columns);
    return { ...norm, gain: mapped(gain, (_, i) => values[from(i)]) };
  });
}

function withForm(form: NonNullable<RootMeanSquareNorm['form']>): Change {
  return withNorm((norm) => ({ ...norm, form }));
}

const normFaults: readonly PrologueFault[] = [
  ...[0, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3].map((epsilon) =>
    fault(
      'norm-epsilon',
      `the norm takes ${epsilon} as epsilon`,
      withNorm((norm) => (norm.epsilon === epsilon ? null : { ...norm, epsilon })),
    ),
  ),
  fault(
    'norm-epsilon-outside',
    'epsilon is added to the root and not under it',
    withForm('epsilon-outside'),
  ),
  fault(
    'norm-missing',
    'the norm is missing',
    withNorm(() => 'none'),
  ),
  fault(
    'gain-missing',
    'the gain of the norm is missing',
    withNorm((norm) => (norm.gain === null ? null : { ...norm, gain: null, offset: 0 })),
  ),
  fault(
    'gain-offset',
    'the norm multiplies by the gain where it is 1 + gain, or the reverse',
    withNorm((norm) =>
      norm.gain === null ? null : { ...norm, offset: norm.offset === 1 ? 0 : 1 },
    ),
  ),
  fault('gain-of-other-head', 'the gain is of the head before', movedGain(-1)),
  fault('gain-of-other-head', 'the gain is of the head behind', movedGain(1)),
  fault(
    'gain-of-other-tensor',
    'the gain is that of the other of q and k',
    withNorm((norm, { name }, all) => {
      const other = all.find((one) => one.name !== name && one.prologue?.norm?.gain);
      const gain = other?.prologue?.norm?.gain ?? null;
      return gain === null || String(gain.shape) !== String(norm.gain?.shape)
        ? null
        : { ...norm, gain };
    }),
  ),
  fault(
    'norm-sum',
    'the norm divides by the root of the sum of squares and not of their mean',
    withForm('sum'),
  ),
  fault('norm-over-heads', 'the norm is over all heads of a token', withForm('token')),
  fault('norm-centred', 'the norm subtracts the mean, as a layer norm does', withForm('centred')),
  fault(
    'norm-order',
    'the norm is made behind the rotation where it is before it, or the reverse',
    ({ prologue }) =>
      prologue === null || prologue.norm === null || prologue.rotary === null
        ? null
        : { ...prologue, order: prologue.order === 'rope-norm' ? 'norm-rope' : 'rope-norm' },
  ),
];

function withFactor(change: (factor: number) => number | null): Change {
  return ({ prologue }) => {
    const factor = prologue === null ? null : change(prologue.factor ?? 1);
    return prologue === null || factor === null ? null : { ...prologue, factor };
  };
}

const ifScaled = (change: (factor: number) => number) => (factor: number) =>
  factor === 1 ? null : change(factor);

const factorFaults: readonly PrologueFault[] = [
  fault('scale-missing', 'the softmax scale is missing', withFactor(ifScaled(() => 1))),
  fault('scale-twice', 'the softmax scale is applied twice', withFactor(ifScaled((x) => x * x))),
  fault('scale-root', 'the softmax scale is applied as its root', withFactor(ifScaled(Math.sqrt))),
  fault('scale-inverse', 'the softmax scale is divided by', withFactor(ifScaled((x) => 1 / x))),
  fault(
    'scale-log2e',
    'the softmax scale is multiplied by log2 e',
    withFactor(ifScaled((x) => x * Math.LOG2E)),
  ),
  fault(
    'scale-of-other-tensor',
    'the softmax scale is applied to a tensor that has none',
    ({ prologue }, all) => {
      const factor = all.find((one) => (one.prologue?.factor ?? 1) !== 1)?.prologue?.factor;
      return prologue === null || (prologue.factor ?? 1) !== 1 || factor === undefined
        ? null
        : { ...prologue, factor };
    },
  ),
];

/** Faults of a tensor that a prologue leaves as it is, of what it does to another: values that are rotated or normed. */
const untouchedFaults: readonly PrologueFault[] = (
  [
    ['rope-on-values', 'values are rotated as keys are', { norm: null }],
    ['norm-on-values', 'values are normed as keys are', { rotary: null }],
    ['prologue-on-values', 'values are normed and rotated as keys are', {}],
  ] as const
).map(([id, sentence, without]) =>
  fault(id, sentence, (part, all) => {
    const keys = all.find(({ name }) => name === 'k')?.prologue;
    if (part.prologue !== null || !keys) return null;
    const made = { ...keys, ...without, factor: 1 };
    return made.norm === null && made.rotary === null ? null : made;
  }),
);

/** Prologues whose norm, rotation or factor is wrong. */
export const prologueFaults: readonly PrologueFault[] = [
  ...rotaryFaults,
  // A norm by the sum of squares is a second scale of 1 / √columns, and scales are the usual fault.
  ...factorFaults,
  ...normFaults,
  ...untouchedFaults,
];
