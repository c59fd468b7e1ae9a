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
import { oneOf } from './one-of.js';
import {
  prologueNotes,
  prologueRounding,
  readInput,
  readNorm,
  readRotary,
  readSequences,
} from './prologue-notes.js';

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
    ...prologueNotes,
  ],
} as const;

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
  input: Tensor,
): Promise<Prologue | null> {
  if (name === 'v' || name === 'kv_c') return null;
  const norm = name === 'k' ? await readNorm(file, 'k_norm_gain', input) : null;
  const rotary = await readRotary(file, input);
  if (norm === null && rotary === null) return null;
  return { norm, rotary, rounding: prologueRounding(file) };
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
    prologue: await readPrologue(file, name, input),
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
