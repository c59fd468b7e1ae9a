import { auditCacheWrite } from '../../../audit/index.js';
import {
  factorRules,
  type CachePart,
  type CacheWrite,
  type Division,
  type FactorFloor,
  type PageTable,
  type Prologue,
  type Scaling,
} from '../../../problem/index.js';
import type { Tensor } from '../../../formats/index.js';
import { parseBlockSize, quoted, type LinkFile } from '../../../io/tensors/index.js';
import { RequestError } from '../../../request-error.js';

import {
  cacheBuffers,
  partNames,
  placedNumbers,
  type CacheBuffers,
  type PartName,
  type PlacedPart,
} from './cache-fields.js';
import { placedFactors, positive } from './cache-factors.js';
import type { LinkReader } from './link-reader.js';

const buffers = [
  'key_cache',
  'value_cache',
  'kv_cache',
  'k_scale',
  'v_scale',
  'kv_c_scale',
] as const;

/** The names of tensors and settings of a write. */
const names = {
  tensors: [
    ...partNames,
    ...['slot_mapping', 'block_table', 'positions', 'token_sequences', 'cu_seqlens_q'],
    ...buffers,
    ...buffers.map((name) => `${name}_before`),
    ...['rope_cos', 'rope_sin', 'k_norm_gain'],
  ],
  notes: [
    ...['block_size', 'cache_layout', 'k_layout', 'v_layout', 'cache_format'],
    ...['scale_layout', 'k_scale_layout', 'v_scale_layout', 'scale_format', 'scale_columns'],
    ...['scale_rule', 'scale_maximum', 'scale_floor', 'division', 'rounding', 'overflow'],
    ...['k_scale', 'v_scale', 'kv_c_scale', 'k_global_scale', 'v_global_scale'],
    ...['rope_layout', 'norm_epsilon', 'norm_offset', 'prologue_format'],
  ],
} as const;

/** A word of a list. @throws RequestError for another */
function oneOf<Word extends string>(words: readonly Word[]) {
  return (text: string, where: string): Word => {
    const word = words.find((known) => known === text.trim().toLowerCase().replaceAll('_', '-'));
    if (word === undefined)
      throw new RequestError(`${where} is ${quoted(text)}; give one of ${words.join(', ')}`);
    return word;
  };
}

/** "amax:1e-10", "factor:1e-12", "none". */
function parseFloor(text: string, where: string): FactorFloor | 'none' {
  if (text.trim() === 'none') return 'none';
  const found = /^(amax|factor):(.+)$/.exec(text.trim());
  if (found === null)
    throw new RequestError(
      `${where} is ${quoted(text)}; give none, amax:<least amax> or factor:<least factor>`,
    );
  return { of: found[1] as FactorFloor['of'], least: positive(found[2], where) };
}

/** New tokens as [tokens, heads, columns]: a batch in front is joined to the tokens, and a head is put in where there is none. */
async function readInput(file: LinkFile, name: PartName): Promise<Tensor> {
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
async function readSequences(file: LinkFile, tokens: number): Promise<Int32Array> {
  if (file.has('token_sequences')) return (await file.integers('token_sequences')).data;
  if (!file.has('cu_seqlens_q')) return Int32Array.from({ length: tokens }, (_, token) => token);
  const { data } = await file.integers('cu_seqlens_q');
  return Int32Array.from({ length: tokens }, (_, token) =>
    data.findLastIndex((first) => first <= token),
  );
}

async function readTable(file: LinkFile, tokens: number): Promise<PageTable | null> {
  if (!file.has('block_table')) return null;
  if (!file.has('positions'))
    return file.refuse('has block_table without positions; name them with --tensor');
  const table = await file.integers('block_table');
  const { data: positions } = await file.integers('positions');
  const sequences = await readSequences(file, tokens);
  const [count, perSequence] = table.shape;
  if (table.shape.length !== 2)
    return file.refuse(
      `block_table has shape [${table.shape.join(', ')}]; give it as [sequences, pages]`,
    );
  if (positions.length !== tokens || sequences.length !== tokens)
    return file.refuse(
      `positions and sequences are not one for each of ${tokens} tokens; make them fit`,
    );
  if (sequences.some((one) => one < 0 || one >= count))
    return file.refuse(`there are tokens of other sequences than the ${count} of block_table`);
  return { pages: table.data, perSequence, sequences, positions };
}

/** The prologue of a part: what is done to K before it is stored; V and latent rows have none but the rotation of k_pe. */
async function readPrologue(
  file: LinkFile,
  name: PartName,
  heads: number,
): Promise<Prologue | null> {
  if (name === 'v' || name === 'kv_c') return null;
  const epsilon = name === 'k' ? file.note('norm_epsilon', positive) : undefined;
  const hasRope = file.has('rope_cos') && file.has('rope_sin');
  if (epsilon === undefined && !hasRope) return null;
  const gain =
    epsilon !== undefined && file.has('k_norm_gain') ? await file.numbers('k_norm_gain') : null;
  if (gain !== null && gain.shape.length === 2 && gain.shape[0] !== heads)
    return file.refuse(`k_norm_gain has ${gain.shape[0]} heads, and k has ${heads}; make them fit`);
  const rounding = file.note('prologue_format', oneOf(['fp32', 'bf16', 'fp16'] as const)) ?? 'fp32';
  const offset = file.note('norm_offset', oneOf(['0', '1'] as const)) === '1' ? 1 : 0;
  if (!hasRope) return { norm: { gain, epsilon: epsilon ?? 0, offset }, rotary: null, rounding };
  if (!file.has('positions'))
    return file.refuse('has rope_cos without positions; name them with --tensor');
  const [cos, sin] = [await file.numbers('rope_cos'), await file.numbers('rope_sin')];
  const layout = file.note('rope_layout', oneOf(['halves', 'neighbours'] as const));
  if (layout === undefined)
    return file.refuse(
      'has rope_cos, and nothing says which elements are pairs; give --note rope_layout=halves or neighbours',
    );
  const { data: positions } = await file.integers('positions');
  const rows = cos.shape[0];
  const outside = positions.find((one) => one < 0 || one >= rows);
  if (outside !== undefined)
    return file.refuse(
      `positions have ${outside}, and rope_cos has ${rows} rows; give a row for each`,
    );
  return {
    norm: epsilon === undefined ? null : { gain, epsilon, offset },
    rotary: { tables: { cos, sin }, layout, positions },
    rounding,
  };
}

async function readPart(
  file: LinkFile,
  found: CacheBuffers,
  placed: PlacedPart,
): Promise<CachePart> {
  const { name, input, numbers } = placed;
  const factors = placedFactors(file, found, placed);
  const scaling: Scaling | null =
    factors === null
      ? null
      : {
          factors: factors.factors,
          columns: factors.columns,
          global: factors.global,
          rule: factors.isGiven ? 'given' : (file.note('scale_rule', oneOf(factorRules)) ?? null),
          maximum: file.note('scale_maximum', positive) ?? null,
          floor: file.note('scale_floor', parseFloor) ?? null,
          division: file.note('division', oneOf<Division>(['divide', 'reciprocal'])) ?? null,
        };
  return {
    name,
    input,
    prologue: await readPrologue(file, name, input.shape[1]),
    numbers,
    scaling,
    rounding: {
      mode:
        file.note('rounding', oneOf(['nearest-even', 'nearest-away'] as const)) ?? 'nearest-even',
      overflow: file.note('overflow', oneOf(['saturate', 'special'] as const)) ?? 'saturate',
    },
  };
}

/** The slots of tokens: given, else those of the page table. */
async function readSlots(
  file: LinkFile,
  table: PageTable | null,
  blockSize: number,
): Promise<Int32Array> {
  if (file.has('slot_mapping')) return (await file.integers('slot_mapping')).data;
  if (table === null)
    return file.refuse(
      'has neither slot_mapping nor block_table with positions; name one with --tensor',
    );
  const { pages, perSequence, sequences, positions } = table;
  return positions.map((position, token) => {
    const page = pages[sequences[token] * perSequence + Math.floor(position / blockSize)];
    return page * blockSize + (position % blockSize);
  });
}

/** The write that a file poses. @throws RequestError for a file that holds none */
export async function readWrite(file: LinkFile): Promise<CacheWrite> {
  const given = partNames.filter((name) => file.has(name));
  const isLatent = given.includes('kv_c');
  if (!given.includes('k') && !isLatent)
    return file.refuse('has no k and no kv_c, the new tokens; name them with --tensor');
  const inputs = await Promise.all(
    given.map(async (name) => ({ name, input: await readInput(file, name) })),
  );
  const found = await cacheBuffers(file, buffers, file.note('block_size', parseBlockSize));
  const placed = placedNumbers(file, found, inputs);
  const [{ input, blockSize }] = placed;
  const [tokens] = input.shape;
  const table = await readTable(file, tokens);
  const read: CachePart[] = [];
  for (const one of placed) read.push(await readPart(file, found, one));
  return {
    tokens,
    parts: read,
    slots: await readSlots(file, table, blockSize),
    blockSize,
    table,
    after: new Map([...found.after].map(([name, { bytes }]) => [name, bytes])),
    before: found.before,
  };
}

/** The contract of a write into a cache as files pose it: new tokens, their slots, and the cache after it. */
export const cacheWriteLink: LinkReader = {
  names,
  judge: async (file) => auditCacheWrite(await readWrite(file)),
};
