import type { PatternArray } from '../../../formats/index.js';
import {
  clearTags,
  type TracedOperand,
  type TracedProduct,
  type TracedScales,
} from '../../../machine/index.js';
import type { WarpRegisters } from '../warp-registers.js';
import {
  type FragmentLayout,
  type FragmentSource,
  gather,
  gatherFloat64,
  gatherPairs,
  immediateWord,
  scatter,
  scatterFloat64,
} from './mma-fragment.js';
import { type MmaProduct, type MmaRegisters, unpad } from './mma-product.js';

const columns = 8;

/** The patterns of a matrix in registers, [row][column]; those of 64 bits as fp64 numbers. */
function patternsOf(
  registers: WarpRegisters,
  sources: readonly FragmentSource[],
  layout: FragmentLayout,
  size: number,
): PatternArray | Float64Array {
  if (layout.elementBits === 64) {
    const matrix = new Float64Array(size);
    gatherFloat64(registers, sources, layout, matrix);
    return matrix;
  }
  const matrix = new Uint32Array(size);
  gather(registers, sources, layout, matrix);
  return matrix;
}

/** A matrix in registers with the tags of its elements. */
function operandOf(
  registers: WarpRegisters,
  sources: readonly FragmentSource[],
  layout: FragmentLayout,
  size: number,
): Pick<TracedOperand, 'patterns' | 'tags'> {
  const patterns = patternsOf(registers, sources, layout, size);
  const { followed } = registers;
  if (followed === null || layout.elementBits === 1) return { patterns, tags: null };
  // Immediates have no tags.
  const tagged = sources.map((source) => ('words' in source ? immediateWord(0) : source));
  const tagsIn = (plane: WarpRegisters): PatternArray => {
    if (layout.elementBits === 4) {
      const pairs = new Uint8Array(size);
      gatherPairs(plane, tagged, layout, pairs);
      return pairs;
    }
    const tags = patternsOf(plane, tagged, layout, size);
    return tags instanceof Float64Array ? new Uint32Array(tags.buffer) : tags;
  };
  const [p, q, r, s] = followed.planes;
  return { patterns, tags: [tagsIn(p), tagsIn(q), tagsIn(r), tagsIn(s)] };
}

/** What of a product is traced: its shape, and the places and formats of its matrices. */
type TracedMma = Pick<MmaProduct, 'shape' | 'layouts' | 'formats'>;

/** The place of a product in the program, and the scale factors of its operands, if it has any. */
interface TracedPlace extends Pick<TracedProduct, 'mnemonic' | 'site'> {
  readonly scales?: Readonly<Record<'a' | 'b', TracedScales>>;
}

/** Formats of less than 8 bits that have a byte for each element: nothing in memory is known to be of them. */
const paddedFormats: readonly string[] = ['e2m3', 'e3m2', 'e2m1'];

/** The product of an instruction, before it is executed: operands with their tags. */
function tracedProduct(
  registers: WarpRegisters,
  { shape: { m, k }, layouts, formats }: TracedMma,
  matrices: MmaRegisters,
  { scales, ...place }: TracedPlace,
): Omit<TracedProduct, 'd'> {
  const [aFormat, bFormat, accumulator] = formats ?? ['b8', 'b8', 's32'];
  const factor = (side: 'a' | 'b', format: string, rows: number): TracedOperand => {
    const found = operandOf(registers, matrices[side], layouts[side], rows * k);
    const isPadded = layouts[side].elementBits === 8 && paddedFormats.includes(format);
    if (isPadded) unpad(format, found.patterns as PatternArray);
    const tags = formats === null || isPadded ? null : found.tags;
    return {
      format,
      isNegated: false,
      scales: scales?.[side] ?? null,
      patterns: found.patterns,
      tags,
    };
  };
  return {
    ...place,
    m,
    n: columns,
    k,
    a: factor('a', aFormat, m),
    b: factor('b', bFormat, columns),
    c: operandOf(registers, matrices.c, layouts.c, m * columns),
    accumulator,
  };
}

/**
 * Takes down the operands of an `mma` with their tags, where values are followed.
 *
 * @returns tells the tracer of the product and sets the tags of D, once D has been computed; null where nobody follows
 */
export function traceMma(
  registers: WarpRegisters,
  product: TracedMma,
  operands: MmaRegisters,
  place: TracedPlace,
): (() => void) | null {
  const { followed } = registers;
  if (followed === null) return null;
  const traced = tracedProduct(registers, product, operands, place);
  return () => {
    const layout = product.layouts.c;
    // A register that nobody keeps has no value to look at: its elements are zeros here.
    const kept = operands.d.map((slot) => slot ?? immediateWord(0));
    const d = patternsOf(registers, kept, layout, product.shape.m * columns);
    const tags = followed.tracer.product({ ...traced, d });
    if (tags === null) {
      for (const slot of operands.d)
        if (slot !== null)
          for (const part of registers.parts(slot)) clearTags(part, 0, part.bytes.length);
      return;
    }
    followed.planes.forEach((plane, i) => {
      if (layout.elementBits === 64)
        scatterFloat64(plane, operands.d, layout, new Float64Array(tags[i].buffer));
      else scatter(plane, operands.d, layout, tags[i]);
    });
  };
}
