import { computedTables } from '../../../../oracles/index.js';
import type { Tensor } from '../../../formats/index.js';
import { parseBlockSize, type LinkFile } from '../../../io/tensors/index.js';
import {
  normFormats,
  type MadeTables,
  type Prologue,
  type RootMeanSquareNorm,
  type Rotary,
  type RotaryLayout,
} from '../../../problem/index.js';
import { RequestError } from '../../../request-error.js';
import { parseWhole } from '../../../words/index.js';
import { positive } from './cache-factors.js';
import { oneOf } from './one-of.js';

/** The settings of a norm and a rotation. */
export const prologueNotes = [
  ...['rope_layout', 'rope_base', 'rope_dims', 'rope_first', 'rope_factor', 'table_format'],
  ...['norm_epsilon', 'norm_offset', 'norm_format', 'prologue_format'],
] as const;

/** Formats that a prologue rounds to. */
const roundedFormats = ['fp32', 'bf16', 'fp16'] as const;

/** Tokens as [tokens, heads, columns]: a batch in front is joined to the tokens, and a head is put in where there is none. */
export async function readInput(file: LinkFile, name: string): Promise<Tensor> {
  const tensor = await file.numbers(name);
  const { shape } = tensor;
  if (tensor.scales !== undefined)
    return file.refuse(`${name} has factors of its own; give plain numbers`);
  const isLatent = name === 'kv_c' || name === 'k_pe';
  if (shape.length === 2 && isLatent) return { ...tensor, shape: [shape[0], 1, shape[1]] };
  if (shape.length === 3) return tensor;
  if (shape.length === 4) return { ...tensor, shape: [shape[0] * shape[1], shape[2], shape[3]] };
  return file.refuse(
    `${name} has shape [${shape.join(', ')}]; give it as [tokens, ${isLatent ? '' : 'heads, '}columns]`,
  );
}

/** The sequence of each token, from its number or from where sequences begin. */
export async function readSequences(file: LinkFile, tokens: number): Promise<Int32Array> {
  if (file.has('token_sequences')) return (await file.integers('token_sequences')).data;
  if (!file.has('cu_seqlens_q')) return Int32Array.from({ length: tokens }, (_, token) => token);
  const { data } = await file.integers('cu_seqlens_q');
  return Int32Array.from({ length: tokens }, (_, token) =>
    data.findLastIndex((first) => first <= token),
  );
}

/** The format that products, sums and results of a prologue are rounded to. */
export function prologueRounding(file: LinkFile): Prologue['rounding'] {
  return file.note('prologue_format', oneOf(roundedFormats)) ?? 'fp32';
}

/** Zero or a positive number. */
function parseEpsilon(text: string, where: string): number {
  return text.trim() === '0' ? 0 : positive(text, where);
}

/** The norm of a tensor; null without `norm_epsilon`. @throws RequestError for a gain that does not fit */
export async function readNorm(
  file: LinkFile,
  gainName: string,
  { shape }: Tensor,
): Promise<RootMeanSquareNorm | null> {
  const epsilon = file.note('norm_epsilon', parseEpsilon);
  if (epsilon === undefined) return null;
  const [, heads, columns] = shape;
  const gain = file.has(gainName) ? await file.numbers(gainName) : null;
  if (gain !== null && gain.shape.length === 2 && gain.shape[0] !== heads)
    return file.refuse(
      `${gainName} has ${gain.shape[0]} heads, and its tensor has ${heads}; make them fit`,
    );
  if (gain !== null && gain.shape.at(-1) !== columns)
    return file.refuse(
      `${gainName} has shape [${gain.shape.join(', ')}], and its tensor has ${columns} columns; make them fit`,
    );
  const offset = file.note('norm_offset', oneOf(['0', '1'] as const)) === '1' ? 1 : 0;
  const format = file.note('norm_format', oneOf(normFormats));
  return { gain, epsilon, offset, ...(format !== undefined && { format }) };
}

const layoutWords: Readonly<Record<'halves' | 'neighbours' | 'interleaved', RotaryLayout>> = {
  halves: 'halves',
  neighbours: 'neighbours',
  interleaved: 'neighbours',
};

function readLayout(file: LinkFile): RotaryLayout {
  const word = file.note('rope_layout', oneOf(['halves', 'neighbours', 'interleaved'] as const));
  if (word === undefined)
    return file.refuse(
      'has a rotation, and nothing says which elements are pairs; give --note rope_layout=halves or neighbours',
    );
  return layoutWords[word];
}

/** The most of a base: as many as fixed-point numbers hold beside their places. */
const largestBase = 2 ** 32;

function parseBase(text: string, where: string): number {
  const base = positive(text, where);
  if (base < 1 || base > largestBase || !Number.isInteger(base * 2 ** 20))
    throw new RequestError(`${where} is ${text}; give a number from 1 to 2^32, such as 10000`);
  return base;
}

/** How a kernel makes its tables; null where it is given some. */
function readMade(file: LinkFile, columns: number): MadeTables | null {
  const base = file.note('rope_base', parseBase);
  if (base === undefined) return null;
  const dims = file.note('rope_dims', parseBlockSize) ?? columns;
  if (dims % 2 === 1 || dims > columns)
    return file.refuse(`rope_dims is ${dims}; give an even number up to ${columns}`);
  const factor = file.note('rope_factor', positive) ?? 1;
  const format = file.note('table_format', oneOf(roundedFormats)) ?? 'fp32';
  return { frequencies: { base, dims, pairs: dims / 2, factor }, format };
}

/** The rows of tables that a kernel makes: the positions of tokens, and those that it may take by mistake. */
function rowsOf(positions: Int32Array, sequences: Int32Array): Int32Array {
  const first = new Map<number, number>();
  for (const [token, sequence] of sequences.entries())
    first.set(sequence, Math.min(first.get(sequence) ?? Infinity, positions[token]));
  const all = new Set<number>();
  for (const [token, position] of positions.entries())
    for (const one of [
      ...[position, position + 1, position - 1, token],
      position - (first.get(sequences[token]) ?? 0),
    ])
      if (one >= 0) all.add(one);
  return Int32Array.from(all).sort();
}

/**
 * The rotation of a tensor: by the tables `rope_cos` and `rope_sin`, or by tables that the kernel makes of `rope_base`; null without
 * either.
 * @throws RequestError for tables and positions that do not fit
 */
export async function readRotary(file: LinkFile, { shape }: Tensor): Promise<Rotary | null> {
  const hasTables = file.has('rope_cos') && file.has('rope_sin');
  const first = file.note('rope_first', (text, where) => parseWhole(text, where, 0)) ?? 0;
  const [tokens, , columns] = shape;
  const made = hasTables ? null : readMade(file, columns - first);
  if (!hasTables && made === null) return null;
  if (!file.has('positions'))
    return file.refuse('has a rotation without positions; name them with --tensor');
  const layout = readLayout(file);
  const { data: positions } = await file.integers('positions');
  if (positions.length !== tokens)
    return file.refuse(
      `positions are ${positions.length}, and there are ${tokens} tokens; give one for each`,
    );
  const isSaid = file.has('token_sequences') || file.has('cu_seqlens_q');
  const sequences = await readSequences(file, tokens);
  const common = { layout, first, ...(isSaid && { sequences }) };
  if (made !== null) {
    if (positions.some((one) => one < 0))
      return file.refuse('positions have a number below 0; give those of the tokens');
    const rows = rowsOf(positions, sequences);
    const own = positions.map((position) => rows.indexOf(position));
    return { ...common, ...computedTables(rows, made), positions: own, rows, made };
  }
  const [cos, sin] = [await file.numbers('rope_cos'), await file.numbers('rope_sin')];
  const outside = positions.find((one) => one < 0 || one >= cos.shape[0]);
  if (outside !== undefined)
    return file.refuse(
      `positions have ${outside}, and rope_cos has ${cos.shape[0]} rows; give a row for each`,
    );
  return { ...common, tables: { cos, sin }, positions };
}
