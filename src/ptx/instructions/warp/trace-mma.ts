import type { PatternArray } from '../../../formats/index.js';
import { clearTags, type TracedOperand, type TracedProduct } from '../../../machine/index.js';
import type { WarpRegisters } from '../warp-registers.js';
import {
  type FragmentLayout,
  type FragmentSource,
  gather,
  gatherFloat64,
  immediateWord,
  scatter,
  scatterFloat64,
} from './mma-fragment.js';
import type { MmaProduct, MmaRegisters } from './mma-product.js';

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
  if (followed === null || layout.elementBits < 8) return { patterns, tags: null };
  // Immediates have no tags.
  const tagged = sources.map((source) => ('words' in source ? immediateWord(0) : source));
  const tagsIn = (plane: WarpRegisters): PatternArray => {
    const tags = patternsOf(plane, tagged, layout, size);
    return tags instanceof Float64Array ? new Uint32Array(tags.buffer) : tags;
  };
  const [p, q, r, s] = followed.planes;
  return { patterns, tags: [tagsIn(p), tagsIn(q), tagsIn(r), tagsIn(s)] };
}

/** The product of an instruction, before it is executed: operands with their tags. */
function tracedProduct(
  registers: WarpRegisters,
  { shape: { m, k }, layouts, formats }: MmaProduct,
  { a, b, c }: MmaRegisters,
  place: Pick<TracedProduct, 'mnemonic' | 'site'>,
): Omit<TracedProduct, 'd'> {
  const plain = { isNegated: false, scales: null };
  const [aFormat, bFormat, accumulator] = formats ?? ['b8', 'b8', 's32'];
  const lost = formats === null ? { tags: null } : {};
  return {
    ...place,
    m,
    n: columns,
    k,
    a: { ...plain, format: aFormat, ...operandOf(registers, a, layouts.a, m * k), ...lost },
    b: { ...plain, format: bFormat, ...operandOf(registers, b, layouts.b, columns * k), ...lost },
    c: operandOf(registers, c, layouts.c, m * columns),
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
  product: MmaProduct,
  operands: MmaRegisters,
  place: Pick<TracedProduct, 'mnemonic' | 'site'>,
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
