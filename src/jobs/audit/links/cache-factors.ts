import {
  checkPlaces,
  codes,
  factorLayouts,
  fieldOf,
  type CodeName,
  type Field,
  type Scaling,
} from '../../../problem/index.js';
import type { LinkFile } from '../../../io/tensors/index.js';
import { RequestError } from '../../../request-error.js';
import { codeOf, type CacheBuffer, type CacheBuffers, type PlacedPart } from './cache-fields.js';

/** Factors of a part, as far as their place says. */
export interface PlacedFactors extends Pick<Scaling, 'factors' | 'columns' | 'global'> {
  /** Whether they are an input of the write, and not made by it. */
  readonly isGiven: boolean;
}

/** @throws RequestError for what is no positive number */
export function positive(text: string, where: string): number {
  const value = Number(text);
  if (text.trim() === '' || !(value > 0 && value < Infinity))
    throw new RequestError(`${where} is '${text}'; give a positive number`);
  return value;
}

/** Columns that share a factor in the formats that say so: MX and NVFP4. */
function usualColumns(numbers: CodeName, factors: CodeName): number | undefined {
  if (factors === 'e8m0') return 32;
  return numbers === 'e2m1' ? 16 : undefined;
}

/** A layout in words, and the number of blocks of columns, by the number of factors. */
function usualFactors(
  elements: number,
  { numbers: { sizes } }: PlacedPart,
  groups: number | undefined,
): readonly [layout: string, groups: number] | null {
  const { slots, heads, columns } = sizes;
  if (elements === 1) return ['', 1];
  if (elements === heads) return ['head', 1];
  if (elements === slots * heads && (groups ?? 1) === 1) return ['slot head', 1];
  if (elements === slots && (groups ?? 1) === 1) return ['slot', 1];
  const ofRow = elements / (slots * heads);
  const fits = (count: number) => Number.isInteger(count) && columns % count === 0;
  if (fits(ofRow) && ofRow === (groups ?? ofRow)) return ['slot head column', ofRow];
  const ofSlot = elements / slots;
  return fits(ofSlot) && ofSlot === (groups ?? ofSlot) ? ['slot column', ofSlot] : null;
}

/** A factor that is given as a number: a buffer of one. */
function numberBuffer(value: number): CacheBuffer {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setFloat32(0, value, true);
  return { bytes, dtype: 'F32', shape: [] };
}

function tensorField(
  file: LinkFile,
  label: string,
  buffer: CacheBuffer,
  placed: PlacedPart,
): { readonly factors: Field; readonly columns: number } {
  const { sizes, code: numberCode } = placed.numbers;
  const code = codeOf(file, 'scale_format', label, buffer);
  const perGroup = file.note('scale_columns', positive) ?? usualColumns(numberCode, code);
  const groups = perGroup === undefined ? undefined : Math.ceil(sizes.columns / perGroup);
  const elements = (buffer.bytes.length * 8) / codes[code].bits;
  const said =
    file.note(`${label}_layout`, (text) => text) ?? file.note('scale_layout', (text) => text);
  const usual = usualFactors(elements, placed, groups);
  if (said === undefined && usual === null)
    return file.refuse(
      `${label} has ${elements} factors, and the cache ${sizes.slots} slots, ${sizes.heads} heads and ${sizes.columns} columns; give --note scale_layout=<name>, one of ${Object.keys(factorLayouts).join(', ')}, or in words such as "slot head column", and scale_columns`,
    );
  const count = groups ?? usual?.[1] ?? 1;
  const layout = said?.trim() ?? usual?.[0] ?? '';
  const words = Object.hasOwn(factorLayouts, layout) ? factorLayouts[layout as 'linear'] : layout;
  const letters = {
    B: placed.blockSize,
    ...(count % 4 === 0 && { G: count / 4 }),
  };
  const factors = fieldOf(words, { ...sizes, columns: count }, { buffer: label, code }, letters);
  if (!Object.hasOwn(factorLayouts, layout)) checkPlaces(factors);
  return { factors, columns: perGroup ?? Math.ceil(sizes.columns / count) };
}

/** The tensor of factors of a part: its own, of latent rows one for all. */
function labelOf(file: LinkFile, { name }: PlacedPart): string {
  if (name === 'k' || name === 'v') return `${name}_scale`;
  return name === 'kv_c' &&
    (file.has('kv_c_scale') || file.note('kv_c_scale', positive) !== undefined)
    ? 'kv_c_scale'
    : 'k_scale';
}

/**
 * The factors of a part; null where it has none.
 * @throws RequestError for factors whose place is not known
 */
export function placedFactors(
  file: LinkFile,
  found: CacheBuffers,
  placed: PlacedPart,
): PlacedFactors | null {
  const { numbers, record, name } = placed;
  if (record !== null && record.factors !== null) {
    const { at, columns } = record.factors;
    const sizes = { ...numbers.sizes, columns: Math.ceil(numbers.sizes.columns / columns) };
    const place = {
      buffer: numbers.buffer,
      code: 'fp32',
      baseBytes: at,
      firstAxisBytes: record.bytes,
    } as const;
    return { factors: fieldOf('slot column', sizes, place), columns, global: 1, isGiven: false };
  }
  // The rotated stretch of DeepSeek's rows has none.
  if (record !== null && numbers.code === 'bf16') return null;
  const label = labelOf(file, placed);
  const global = file.note(`${name === 'v' ? 'v' : 'k'}_global_scale`, positive) ?? 1;
  const tensor = found.after.get(label);
  const number = tensor === undefined ? file.note(label, positive) : undefined;
  if (tensor !== undefined)
    return { ...tensorField(file, label, tensor, placed), global, isGiven: false };
  if (number === undefined) return null;
  const buffer = numberBuffer(number);
  found.after.set(label, buffer);
  const sizes = { ...numbers.sizes, columns: 1 };
  const factors = fieldOf('', sizes, { buffer: label, code: 'fp32' });
  return { factors, columns: numbers.sizes.columns, global, isGiven: true };
}
