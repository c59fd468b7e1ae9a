import type { RotaryTables } from '../features.js';
import type { RotaryLayout } from '../rotary.js';
import type { FormatName, Tensor } from '../../formats/index.js';
import { RequestError } from '../../request-error.js';
import { codes, type CodeRounding } from './codes.js';
import { extentOfField, type Field } from './field.js';

/** An RMS norm: x / √(mean(x²) + ε) · (gain + offset). */
export interface RootMeanSquareNorm {
  /** [columns], or [heads, columns]; null for none. */
  readonly gain: Tensor | null;
  readonly epsilon: number;
  /** What is added to the gain: 1 in models whose gains are differences from 1. */
  readonly offset: 0 | 1;
  /** The format that a normed number, its gain included, is rounded to once before anything else; left out: none. */
  readonly format?: NormFormat | undefined;
  /**
   * Left out: as above. Of kernels with a fault: ε added to the root; the sum of squares in place of their mean; the mean of all heads
   * of a token; the mean subtracted first.
   */
  readonly form?: 'epsilon-outside' | 'sum' | 'token' | 'centred';
  /** The sum of squares, where it is not that of the vector. */
  readonly squares?: number;
}

/** Formats that normed numbers are rounded to. */
export const normFormats = ['bf16', 'fp16'] as const;
/** One of {@link normFormats}. */
export type NormFormat = (typeof normFormats)[number];

/** The most by which the numbers of a right kernel's own tables differ from the exact ones, element by element. */
export interface TableErrors {
  readonly cos: Float64Array;
  readonly sin: Float64Array;
}

/** Frequencies of pairs: base^(−2t/dims) / factor. */
export interface RotaryFrequencies {
  /** At least 1, with 20 binary places at most. */
  readonly base: number;
  /** The number that exponents are divided by: the columns that are rotated. */
  readonly dims: number;
  /** The number of pairs. */
  readonly pairs: number;
  /** What positions are divided by; 1 for none. */
  readonly factor: number;
}

/** Tables that a kernel makes by itself. */
export interface MadeTables {
  readonly frequencies: RotaryFrequencies;
  /** The format that it stores them in before it rotates. */
  readonly format: Extract<FormatName, 'fp32' | 'bf16' | 'fp16'>;
}

/** A rotation of pairs of elements, by the tables' row of each token's position. */
export interface Rotary {
  readonly tables: RotaryTables;
  readonly layout: RotaryLayout;
  /** The row of the tables for each token: its position, where tables have a row for each. */
  readonly positions: Int32Array;
  /** The position of each row of tables that a kernel makes itself; left out where row and position are one. */
  readonly rows?: Int32Array;
  /** Of tables that a kernel makes itself; left out for tables that it is given; so `made`, how it makes them. */
  readonly errors?: TableErrors;
  readonly made?: MadeTables;
  /** The sequence of each token; left out where nobody says it. */
  readonly sequences?: Int32Array;
  /** The first of the columns that are rotated; default 0. */
  readonly first?: number;
  /** How often vectors are turned; default once. */
  readonly times?: number;
}

/** What a kernel does to its input before attention, or before it stores it: a norm, a rotation, and a factor. */
export interface Prologue {
  readonly norm: RootMeanSquareNorm | null;
  readonly rotary: Rotary | null;
  /** The format that products, sums and the result are rounded to; the sum of squares is in fp32. */
  readonly rounding: Extract<FormatName, 'fp32' | 'bf16' | 'fp16'>;
  /** Default `norm-rope`. */
  readonly order?: 'norm-rope' | 'rope-norm';
  /** What every number is multiplied by at the end; default 1. */
  readonly factor?: number;
}

/** Rules by which factors follow from the largest size of the numbers that share one. */
export const factorRules = ['given', 'amax', 'power-up', 'mx-floor', 'mx-ceil', 'mx-even'] as const;
/**
 * One of {@link factorRules}. `given`: the factor is an input. `amax`: amax / maximum. `power-up`: the power of two at or above that.
 * Of MX, with e the exponent of the code's largest number: `mx-floor` 2^(⌊log2 amax⌋ − e), `mx-ceil` 2^(⌈log2 amax⌉ − e), and `mx-even`
 * like floor after amax is rounded to the digits of the code.
 */
export type FactorRule = (typeof factorRules)[number];

/** The least that a kernel takes for the largest size, or for the factor. */
export interface FactorFloor {
  readonly of: 'amax' | 'factor';
  readonly least: number;
}

/** How a kernel divides: by one division, or by the product with a reciprocal. */
export type Division = 'divide' | 'reciprocal';

/** What is known of the factors of a part; what is null is not declared. */
export interface Scaling {
  /** Of which `column` is a block of columns. */
  readonly factors: Field;
  /** Columns that share a factor. */
  readonly columns: number;
  /** A number that every element is multiplied by too when it is read; 1 for none. */
  readonly global: number;
  readonly rule: FactorRule | null;
  /** The number that amax is divided by; null for the code's largest, or where no rule is declared for one that fits. */
  readonly maximum: number | null;
  readonly floor: FactorFloor | 'none' | null;
  readonly division: Division | null;
}

/** One tensor of a write: K, V, or a part of a latent row. */
export interface CachePart {
  readonly name: string;
  /** [tokens, heads, columns]. */
  readonly input: Tensor;
  readonly prologue: Prologue | null;
  readonly numbers: Field;
  readonly scaling: Scaling | null;
  readonly rounding: CodeRounding;
}

/** The pages of sequences, from which slots follow. */
export interface PageTable {
  /** [sequences, pages]: the block of each page. */
  readonly pages: Int32Array;
  readonly perSequence: number;
  /** The sequence of each token, and its position there. */
  readonly sequences: Int32Array;
  readonly positions: Int32Array;
}

/** A write of new tokens into a cache, and the cache after it. */
export interface CacheWrite {
  readonly tokens: number;
  readonly parts: readonly CachePart[];
  /** The slot of each token; −1 for a token that is not stored. */
  readonly slots: Int32Array;
  readonly blockSize: number;
  readonly table: PageTable | null;
  /** The bytes of each buffer after the write. */
  readonly after: ReadonlyMap<string, Uint8Array>;
  /** Those before it; null where they are not known. */
  readonly before: ReadonlyMap<string, Uint8Array> | null;
}

/** The sizes of a part. */
export function cachePartShape({ input }: Pick<CachePart, 'input'>): {
  readonly heads: number;
  readonly columns: number;
} {
  const [, heads, columns] = input.shape;
  return { heads, columns };
}

function checkBuffer(field: Field, write: CacheWrite, what: string): void {
  const bytes = write.after.get(field.buffer);
  const needed = Math.ceil(extentOfField(field) / 8);
  if (bytes === undefined || bytes.length < needed)
    throw new RequestError(
      `${what}: ${field.buffer} has ${bytes?.length ?? 0} bytes, and ${needed} are needed for the layout '${field.layout}'; give the layout that it has`,
    );
  const before = write.before?.get(field.buffer);
  if (before !== undefined && before.length !== bytes.length)
    throw new RequestError(
      `${field.buffer} has ${bytes.length} bytes, and ${before.length} before the write; give the same buffer`,
    );
}

/**
 * Checks a write: its sizes, slots and buffers.
 * @throws RequestError for what does not fit together
 */
export function checkCacheWrite(write: CacheWrite): void {
  const { tokens, slots, parts } = write;
  if (slots.length !== tokens)
    throw new RequestError(
      `slot_mapping has ${slots.length} slots for ${tokens} tokens; give one a token`,
    );
  for (const part of parts) {
    const { name, input, numbers, scaling, rounding } = part;
    if (input.shape.length !== 3 || input.shape[0] !== tokens)
      throw new RequestError(
        `${name} has shape [${input.shape.join(', ')}]; give it as [${tokens} tokens, heads, columns]`,
      );
    if (input.format === 'fp64')
      throw new RequestError(
        `${name} is fp64, which no writer of caches reads; give it in the format that the kernel read`,
      );
    const most = numbers.sizes.slots;
    const wrong = slots.findIndex((slot) => slot >= most);
    if (wrong >= 0)
      throw new RequestError(
        `slot_mapping has ${slots[wrong]} at token ${wrong}, and the cache has ${most} slots; give slots below that`,
      );
    if (rounding.mode === 'nearest-away' && numbers.code !== 'int8')
      throw new RequestError(
        `${name}: ties go away from zero in int8 alone; leave the rounding out`,
      );
    checkBuffer(numbers, write, name);
    if (scaling !== null) {
      checkBuffer(scaling.factors, write, `factors of ${name}`);
      if (!(scaling.columns > 0 && scaling.global > 0 && scaling.global < Infinity))
        throw new RequestError(`${name}: give a positive number of columns and a positive factor`);
    }
    if (codes[numbers.code].name === 'e8m0')
      throw new RequestError(`${name}: e8m0 is a code of factors; give the code of the numbers`);
  }
}
