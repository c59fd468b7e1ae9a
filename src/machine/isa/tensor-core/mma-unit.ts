import type { TensorCoreArithmetic } from '../../../hardware/index.js';
import { RequestError } from '../../../request-error.js';
import { type MemoryViolation, rememberChunks, unpackElements } from '../../memory/index.js';
import {
  checkMma,
  layoutOf,
  mmaFootprint,
  type MmaFootprint,
  type MmaInstruction,
} from './mma-instruction.js';
import { gatherA, gatherB, loadRows, type MmaCta, scalesOf, storeRows } from './mma-operands.js';
import { type TraceProduct, traceRows } from './trace-product.js';
import {
  findProductArithmetic,
  floatArithmetic,
  type MachineArchitecture,
  type ProductArithmetic,
  type ProductCore,
  type ProductScales,
} from './product-cores.js';

/** Executes tcgen05.mma. */
export interface MmaUnit {
  /** The error in an instruction of these CTAs, in ascending rank, or null. */
  readonly check: (instruction: MmaInstruction, ctas: readonly MmaCta[]) => MemoryViolation | null;
  /**
   * Executes it at once: D in the tensor memory of each CTA. Throws a RequestError for errors that `check`
   * finds.
   *
   * @param trace is told of the products, and sets the tags of D; default: nothing follows them
   * @returns the error in the scale factors in tensor memory, in which case D stays as it is, or null
   */
  readonly execute: (
    instruction: MmaInstruction,
    ctas: readonly MmaCta[],
    trace?: TraceProduct | null,
  ) => MemoryViolation | null;
  /** The memory that a legal instruction touches: `mmaFootprint`. */
  readonly footprint: (instruction: MmaInstruction) => MmaFootprint;
}

/**
 * A tensor core of this arithmetic, with the bits of `tensorCoreProduct`: each element of D is one fused
 * sum of C and its products, with C = 0 where the instruction does not accumulate. Negation flips the
 * sign bits of an operand. The arithmetic may be another tensor core's, as that of Hopper's wgmma, with the
 * shapes of tcgen05.mma.
 */
export function createMmaUnit(arithmetic: TensorCoreArithmetic): MmaUnit {
  return createUnit(floatArithmetic(arithmetic));
}

/** A tensor core. It keeps the memory of one product for each shape and pair of formats. */
function createUnit(arithmetic: ProductArithmetic): MmaUnit {
  const cores = new Map<string, ProductCore>();
  const chunksOf = rememberChunks();
  const gathering = { chunksOf, unpack: unpackElements };
  // The tracker asks for the footprint of one instruction several times.
  let last: { readonly instruction: MmaInstruction; readonly footprint: MmaFootprint } | null =
    null;
  const coreOf = (instruction: MmaInstruction, rows: number): ProductCore => {
    const { a, b, shape, saturates = false } = instruction;
    const key = `${rows} ${shape.n} ${a} ${b} ${saturates}`;
    const core = cores.get(key) ?? arithmetic.createCore(instruction, rows);
    cores.set(key, core);
    return core;
  };
  const check: MmaUnit['check'] = (instruction, ctas) =>
    checkMma(
      arithmetic.problemOf,
      instruction,
      ctas.map(({ shared }) => shared),
    );
  return {
    check,
    footprint: (instruction) => {
      if (last?.instruction !== instruction)
        last = { instruction, footprint: mmaFootprint(instruction, chunksOf) };
      return last.footprint;
    },
    execute: (instruction, ctas, trace = null) => {
      const violation = check(instruction, ctas);
      if (violation !== null) throw new RequestError(violation.message);
      const layout = layoutOf(instruction);
      const factors = ctas.map(({ tensor }) => scalesOf(instruction, layout, tensor.store.words));
      for (const found of factors) if (found !== null && 'kind' in found) return found;
      const core = coreOf(instruction, layout.rowsPerCta);
      gatherB(core, instruction, ctas, gathering);
      ctas.forEach((cta, i) => {
        const { words } = cta.tensor.store;
        gatherA(core, instruction, layout, cta, gathering);
        if (instruction.accumulate) loadRows(layout, instruction, words, core.c);
        else core.c.fill(0);
        const scales = factors[i] as ProductScales | null;
        const tracing =
          trace && traceRows(trace, { core, instruction, layout, ctas, cta: i, scales, chunksOf });
        core.multiply(scales);
        storeRows(layout, instruction, core.c, words, i);
        tracing?.();
      });
      return null;
    },
  };
}

/** The tensor cores of an architecture, by the formats of their operands. */
export interface MmaUnits {
  /** The unit for an instruction, or the reason that there is none. */
  readonly find: (instruction: MmaInstruction) => MmaUnit | string;
}

/** Tensor cores with an architecture's arithmetic. They keep the memory of the products that they have executed. */
export function createMmaUnits(architecture: MachineArchitecture): MmaUnits {
  const units = new Map<string, MmaUnit | string>();
  const create = (instruction: MmaInstruction): MmaUnit | string => {
    try {
      return createUnit(findProductArithmetic(architecture, instruction));
    } catch (error) {
      if (error instanceof RequestError) return error.message;
      throw error;
    }
  };
  return {
    find: (instruction) => {
      const { a, b, accumulator = 'fp32', scales } = instruction;
      const { kind, format, block } = scales ?? {};
      const key = [a, b, accumulator, kind, format, block].join(' ');
      const unit = units.get(key) ?? create(instruction);
      units.set(key, unit);
      return unit;
    },
  };
}
