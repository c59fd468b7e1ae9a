import type { PatternArray } from '../../../formats/index.js';
import { type descriptorChunks, planeOfShared, spreadBytes, tagsOf } from '../../memory/index.js';
import {
  type ElementTags,
  gatherTags,
  type PlaneOf,
  type TracedOperand,
  type TracedScales,
  type ValueTracer,
} from '../../value-tracer.js';
import { memoryBits, patternBits } from './mma-elements.js';
import type { MmaInstruction } from './mma-instruction.js';
import type { MmaLayout } from './mma-layout.js';
import { gatherA, gatherB, loadRows, type MmaCta, scalesOf, storeRows } from './mma-operands.js';
import { negate, type ProductCore, type ProductScales } from './product-cores.js';

/** Is told of the products of an instruction at a place in the program. */
export interface TraceProduct extends Pick<ValueTracer, 'product'> {
  readonly site: string;
}

/** The rows of one CTA with their operands, before they are multiplied. */
interface Rows {
  readonly core: ProductCore;
  readonly instruction: MmaInstruction;
  readonly layout: MmaLayout;
  readonly ctas: readonly MmaCta[];
  /** The number of the CTA that has these rows. */
  readonly cta: number;
  readonly scales: ProductScales | null;
  readonly chunksOf: typeof descriptorChunks;
}

/** A CTA's memories with a plane of tags in place of their bytes. */
function planeOfCta({ shared, tensor }: MmaCta, planeOf: PlaneOf): MmaCta {
  return {
    shared: { ...shared, ...planeOfShared(shared, planeOf) },
    tensor: { store: planeOf(tensor.store) as typeof tensor.store },
  };
}

/** Whether elements are bytes, or two of them are one. In tensor memory those of 4 bits may have a byte each. */
function haveBytes(instruction: MmaInstruction, side: 'a' | 'b'): boolean {
  const bits = patternBits(instruction[side]);
  if (bits >= 8) return true;
  const isShared = side === 'b' || instruction.aOperand.space === 'shared';
  return bits === 4 && (isShared || memoryBits(instruction, instruction[side]) === 4);
}

/** The tags of A's rows or of all of B, each that of its element's byte; null where elements are of several bytes. */
function tagsOfMatrix(rows: Rows, side: 'a' | 'b'): ElementTags | null {
  const { core, ctas, layout, cta, chunksOf } = rows;
  const { instruction } = rows;
  if (!haveBytes(instruction, side)) return null;
  const gathering = { chunksOf, unpack: spreadBytes };
  const asTheyLie = { ...instruction, negateA: false, negateB: false };
  return gatherTags(
    () => core[side].slice().fill(0) as PatternArray,
    (planeOf, target) => {
      const planes = ctas.map((one) => planeOfCta(one, planeOf));
      const into = { ...core, [side]: target, packB: () => undefined };
      if (side === 'a') gatherA(into, asTheyLie, layout, planes[cta], gathering);
      else gatherB(into, asTheyLie, planes, gathering);
    },
  );
}

/** The factors of an operand with their tags; those of B lie in each CTA. */
function scalesOfOperand(
  { instruction, layout, ctas, cta, scales }: Rows,
  side: 'a' | 'b',
): TracedScales | null {
  if (scales === null || instruction.scales === undefined) return null;
  const { format, block } = instruction.scales;
  const found = tagsOf(ctas[cta].tensor.store).map(({ words }) => {
    const plane = scalesOf(instruction, layout, words);
    return plane === null || 'kind' in plane ? null : plane[side];
  });
  const tags = found.includes(null) ? null : (found as unknown as ElementTags);
  return { patterns: scales[side].slice(), tags, format, block };
}

function operandOf(rows: Rows, side: 'a' | 'b'): TracedOperand {
  const { core, instruction } = rows;
  const { [side]: format, negateA = false, negateB = false } = instruction;
  const isNegated = side === 'a' ? negateA : negateB;
  const patterns = core[side].slice();
  if (isNegated && format !== 's8' && format !== 'u8') negate(patterns, format);
  const [tags, scales] = [tagsOfMatrix(rows, side), scalesOfOperand(rows, side)];
  return { format, patterns, tags, isNegated, scales };
}

/**
 * Takes down the operands of a CTA's rows, with the tags of their elements.
 *
 * @returns tells `trace` of the product and sets the tags of D, once D is in tensor memory
 */
export function traceRows({ product, site }: TraceProduct, rows: Rows): () => void {
  const { core, instruction, layout, ctas, cta } = rows;
  const { shape, accumulate, accumulator = 'fp32' } = instruction;
  const { store } = ctas[cta].tensor;
  const c = accumulate
    ? {
        patterns: core.c.slice(),
        tags: gatherTags(
          () => new Uint32Array(core.c.length),
          (planeOf, target) => loadRows(layout, instruction, planeOf(store).words, target),
        ),
      }
    : null;
  const operands = { a: operandOf(rows, 'a'), b: operandOf(rows, 'b'), c };
  return () => {
    const mnemonic = 'tcgen05.mma';
    const place = { mnemonic, site, ...shape, m: layout.rowsPerCta };
    const tags = product({ ...place, ...operands, accumulator, d: core.c.slice() });
    const none = new Uint32Array(core.c.length);
    tagsOf(store).forEach(({ words }, i) =>
      storeRows(layout, instruction, tags === null ? none : tags[i], words, cta),
    );
  };
}
