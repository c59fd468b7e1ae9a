import { RequestError } from '../../request-error.js';
import { codes, type CodeName } from './codes.js';

/**
 * What an element of a cache is counted by: its slot (block · block size + offset), its head, its column (of factors the block
 * of columns); `row` is slot · heads + head, and `part` is 0 for K and 1 for V.
 */
export const coordinates = ['slot', 'head', 'column', 'row', 'part'] as const;
/** One of {@link coordinates}. */
export type Coordinate = (typeof coordinates)[number];

/** A step from a coordinate to a digit of it. */
interface Step {
  readonly sign: '/' | '%';
  readonly by: number;
}

/** An axis of memory: it counts a digit of a coordinate. */
interface Axis {
  readonly of: Coordinate;
  readonly steps: readonly Step[];
  readonly count: number;
  /** Bits from one to the next. */
  readonly stride: number;
}

/** The elements of one kind in a buffer of a cache: their code, and where each is. */
export interface Field {
  readonly buffer: string;
  readonly code: CodeName;
  /** Bits before the first element. */
  readonly base: number;
  readonly axes: readonly Axis[];
  readonly sizes: FieldSizes;
  /** The bits that each column adds to the place of its row. */
  readonly columnBits: Float64Array;
  /** The layout in words, as it was given. */
  readonly layout: string;
}

/** Numbers of slots, heads and columns, and whether the field is of K (0) or V (1). */
export interface FieldSizes {
  readonly slots: number;
  readonly heads: number;
  readonly columns: number;
  readonly part: number;
}

/** Numbers that a layout names by letters, such as the block size B. */
export type LayoutLetters = Readonly<Record<string, number>>;

function extentOf(of: Coordinate, { slots, heads, columns }: FieldSizes): number {
  return { slot: slots, head: heads, column: columns, row: slots * heads, part: 2 }[of];
}

function stepsOf(text: string, word: string, letters: LayoutLetters): Step[] {
  return [...text.matchAll(/([/%])([A-Za-z]|[0-9]+)/g)].map(([, sign, by]) => {
    const value = Object.hasOwn(letters, by) ? letters[by] : Number(by);
    if (!(Number.isSafeInteger(value) && value > 0))
      throw new RequestError(
        `layout word '${word}': ${by} is no positive whole number; use digits or one of ${Object.keys(letters).join(', ')}`,
      );
    return { sign: sign as Step['sign'], by: value };
  });
}

function digitOf(value: number, steps: readonly Step[]): number {
  let digit = value;
  for (const { sign, by } of steps) digit = sign === '/' ? Math.floor(digit / by) : digit % by;
  return digit;
}

function countOf(extent: number, steps: readonly Step[]): number {
  let count = extent;
  // A remainder counts to its end, so that tiles that are not full are padded.
  for (const { sign, by } of steps) count = sign === '/' ? Math.ceil(count / by) : by;
  return count;
}

/** Where a field lies besides the order of its axes. */
export interface FieldPlace {
  readonly buffer: string;
  readonly code: CodeName;
  /** Bytes before the first element; default 0. */
  readonly baseBytes?: number;
  /** Bytes from one member of the first axis to the next, where other data lie between; default none do. */
  readonly firstAxisBytes?: number;
}

/**
 * The field that a layout in words gives: its axes from the slowest to the fastest, each a coordinate and the digit of it, as
 * `slot/16 head slot%16 column` for [blocks, heads, 16, columns]. A step divides (`/n`) or takes the remainder (`%n`), from left to
 * right; an axis is as long as the sizes make it, rounded up.
 * @throws RequestError for words that are none, with the grammar
 */
export function fieldOf(
  layout: string,
  sizes: FieldSizes,
  place: FieldPlace,
  letters: LayoutLetters = {},
): Field {
  const { buffer, code, baseBytes = 0, firstAxisBytes } = place;
  const words = layout.trim() === '' ? [] : layout.trim().split(/\s+/);
  let stride: number = codes[code].bits;
  const axes: Axis[] = [];
  for (const [index, word] of [...words.entries()].reverse()) {
    const found = /^(slot|head|column|row|part)((?:[/%](?:[A-Za-z]|[0-9]+))*)$/.exec(word);
    if (found === null)
      throw new RequestError(
        `layout word '${word}' is none; give slot, head, column, row or part, each with steps such as /16 or %16`,
      );
    const of = found[1] as Coordinate;
    const steps = stepsOf(found[2], word, letters);
    const count = countOf(extentOf(of, sizes), steps);
    if (index === 0 && firstAxisBytes !== undefined) stride = 8 * firstAxisBytes;
    axes.unshift({ of, steps, count, stride });
    stride *= count;
  }
  const columnBits = Float64Array.from({ length: sizes.columns }, (_, column) =>
    axes.reduce(
      (sum, axis) => sum + (axis.of === 'column' ? digitOf(column, axis.steps) * axis.stride : 0),
      0,
    ),
  );
  return { buffer, code, base: 8 * baseBytes, axes, sizes, columnBits, layout };
}

/** Whether elements of different slots, heads or columns have different places. */
export function tells(field: Field, coordinate: 'slot' | 'head' | 'column'): boolean {
  return field.axes.some(
    ({ of, count }) =>
      count > 1 && (of === coordinate || (of === 'row' && coordinate !== 'column')),
  );
}

/** The bit at which the elements of a head of a slot are counted from; `columnBits` has what their columns add. */
export function rowBitOf({ base, axes, sizes }: Field, slot: number, head: number): number {
  let bit = base;
  for (const { of, steps, stride } of axes) {
    if (of === 'column') continue;
    const value =
      of === 'slot'
        ? slot
        : of === 'head'
          ? head
          : of === 'part'
            ? sizes.part
            : slot * sizes.heads + head;
    bit += digitOf(value, steps) * stride;
  }
  return bit;
}

/** The bit at which an element begins. */
export function bitOf(field: Field, slot: number, head: number, column: number): number {
  return rowBitOf(field, slot, head) + field.columnBits[column];
}

/** Bits from the first element of a field to the end of its last. */
export function extentOfField({ base, axes, code }: Field): number {
  return (
    axes.reduce((sum, { count, stride }) => sum + (count - 1) * stride, base) + codes[code].bits
  );
}

/**
 * Whether no two elements share a place, among those that the layout tells apart.
 * @throws RequestError for a layout in which they do, with the two
 */
export function checkPlaces(field: Field): void {
  const { slots, heads, columns } = field.sizes;
  const counts = [
    tells(field, 'slot') ? slots : 1,
    tells(field, 'head') ? heads : 1,
    tells(field, 'column') ? columns : 1,
  ];
  const taken = new Map<number, string>();
  // A digit that is wrong is wrong early: long caches are tried as far as a layout's tiles reach.
  const mostSlots = Math.min(counts[0], 1024);
  for (let slot = 0; slot < mostSlots; slot++)
    for (let head = 0; head < counts[1]; head++)
      for (let column = 0; column < counts[2]; column++) {
        const bit = bitOf(field, slot, head, column);
        const here = `slot ${slot}, head ${head}, column ${column}`;
        const there = taken.get(bit);
        if (there !== undefined)
          throw new RequestError(
            `layout '${field.layout}' puts ${there} and ${here} in one place; name every digit`,
          );
        taken.set(bit, here);
      }
}

/** The code at a bit of a buffer, least significant byte first. */
export function codeAt(bytes: Uint8Array, bit: number, bits: number): number {
  const byte = Math.floor(bit / 8);
  if (bits === 4) return (bytes[byte] >> (bit % 8)) & 0xf;
  let code = bytes[byte];
  for (let i = 1; i < bits / 8; i++) code += bytes[byte + i] * 2 ** (8 * i);
  return code;
}
