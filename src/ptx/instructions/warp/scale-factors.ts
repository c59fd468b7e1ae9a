import { warpLanes, type TracedScales } from '../../../machine/index.js';
import { elementsOf } from '../operands.js';
import type { ResolvedOperand } from '../request.js';
import type { Slot } from '../slot.js';
import { operandNumber, type WarpRegisters } from '../warp-registers.js';

/** Rows of A and columns of B, and the threads of four that a thread-id can name. */
const sides = {
  a: { count: 16, threads: 2 },
  b: { count: 8, threads: 4 },
} as const;

/** A side of the product. */
export type Side = keyof typeof sides;

/** The scale factors of A or of B as operands: a register of all lanes, and which of its bytes they are. */
export interface FactorOperand {
  readonly slot: Slot;
  readonly byte: ResolvedOperand;
  readonly thread: ResolvedOperand;
}

/** The values of {byte-id, thread-id}. */
interface Selector {
  readonly byte: number;
  readonly thread: number;
}

/** The factors of A or of B from their operands; null where they are others. */
export function factorOperand(
  data: ResolvedOperand | undefined,
  selector: ResolvedOperand | undefined,
): FactorOperand | null {
  const [word, ...others] = data === undefined ? [] : elementsOf(data);
  const [byte, thread, ...more] = selector?.kind === 'vector' ? selector.elements : [];
  if (word?.kind !== 'register' || word.slot.width !== 32 || others.length > 0) return null;
  if (byte === undefined || thread === undefined || more.length > 0) return null;
  return { slot: word.slot, byte, thread };
}

/** The value that an operand has in all lanes; null where lanes differ. */
function commonNumber(registers: WarpRegisters, operand: ResolvedOperand): number | null {
  const value = operandNumber(registers, operand, 0);
  for (let lane = 1; lane < warpLanes; lane++)
    if (operandNumber(registers, operand, lane) !== value) return null;
  return value;
}

/**
 * The values of a selector, or their fault. Source: PTX ISA, "Block Scaling for mma.sync"; ptxas 13.4 takes these and no others.
 *
 * @param perRow number of factors of a row
 */
function selectorOf(
  registers: WarpRegisters,
  side: Side,
  { byte, thread }: FactorOperand,
  perRow: number,
): Selector | string {
  const [byteId, threadId] = [commonNumber(registers, byte), commonNumber(registers, thread)];
  const bytes = [0, 1, 2, 3].filter((at) => at % perRow === 0);
  const { threads } = sides[side];
  if (byteId === null || !bytes.includes(byteId))
    return `byte-id-${side} is ${byteId ?? 'not the same in all lanes'}; ${bytes.join(', ')} is due`;
  if (threadId === null || threadId >= threads)
    return `thread-id-${side} is ${threadId ?? 'not the same in all lanes'}; 0 to ${threads - 1} is due`;
  return { byte: byteId, thread: threadId };
}

/**
 * The factors [rows][perRow] in words of all lanes: those of row r of A in lane 4·(r mod 8) + 2·thread-id + ⌊r / 8⌋, those of column c of
 * B in lane 4·c + thread-id, in ascending k from byte byte-id on. Sources: PTX ISA, "Block Scaling for mma.sync", whose figures show it;
 * the layouts of CUTLASS' SM120 atoms and of Triton; others have probed the same on a GPU.
 */
function gatherFactors(
  words: ArrayLike<number>,
  side: Side,
  { byte, thread }: Selector,
  perRow: number,
): Uint8Array {
  const factors = new Uint8Array(sides[side].count * perRow);
  for (let i = 0; i < factors.length; i++) {
    const row = Math.floor(i / perRow);
    const holder = side === 'a' ? 2 * thread + (row >> 3) : thread;
    factors[i] = words[4 * (row % 8) + holder] >>> (8 * (byte + (i % perRow)));
  }
  return factors;
}

/**
 * The factors of a side [rows][perRow], with their tags where values are followed; or the fault of their selector.
 */
export function factorsOf(
  registers: WarpRegisters,
  side: Side,
  operand: FactorOperand,
  perRow: number,
): Pick<TracedScales, 'patterns' | 'tags'> | string {
  const selector = selectorOf(registers, side, operand, perRow);
  if (typeof selector === 'string') return selector;
  const inPlane = (plane: WarpRegisters) =>
    gatherFactors(plane.words(operand.slot), side, selector, perRow);
  const { followed } = registers;
  const [p, q, r, s] = followed?.planes.map(inPlane) ?? [];
  return { patterns: inPlane(registers), tags: followed && [p, q, r, s] };
}
