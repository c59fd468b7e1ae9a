import type { ResolvedOperand } from '../request.js';
import { elementsOf } from '../operands.js';
import type { Slot } from '../slot.js';
import { type FragmentLayout, type FragmentSource, immediateWord } from './mma-fragment.js';
import type { MmaRegisters } from './mma-product.js';
import { maskText } from './operands.js';

const wordMask = 0xffffffffn;

/** A register, or an immediate in place of a register of 32 bits; null for other operands. */
function sourceOf(operand: ResolvedOperand, type: string): FragmentSource | null {
  if (operand.kind === 'register') return operand.slot;
  if (operand.kind !== 'constant' || type === 'f64') return null;
  const { format, bits } = operand;
  if (format === 'integer') return type === 'f32' ? null : immediateWord(Number(bits & wordMask));
  if (type !== 'f32') return null;
  return immediateWord(Number(format === 'f32' ? bits : float32Bits(bits)));
}

/** A constant of fp64 rounded to fp32, as PTX reads `0.` in the place of an f32. */
function float32Bits(bits: bigint): number {
  const wide = new Float64Array(BigUint64Array.of(bits).buffer)[0];
  return new Uint32Array(Float32Array.of(wide).buffer)[0];
}

/** The matrix of an operand; null where an element is not a source. */
function sourcesOf(operand: ResolvedOperand, type: string): readonly FragmentSource[] | null {
  const sources = elementsOf(operand).map((element) => sourceOf(element, type));
  return sources.every((source) => source !== null) ? sources : null;
}

/** The types of the elements in the text: `f32`, `bf16`, `s8`. */
type Types = Readonly<Record<'a' | 'b' | 'c', string>>;

/**
 * The registers of the operands D, A, B and C of an `mma`, or the operands that it takes where these are others.
 *
 * @param operands those of the instruction, of which the first four are D to C
 */
export function matricesOf(
  operands: readonly ResolvedOperand[],
  types: Types,
  { a, b, c }: Readonly<Record<'a' | 'b' | 'c', FragmentLayout>>,
): MmaRegisters | string {
  const found = registersOf(operands, types);
  const fits =
    found !== null &&
    found.a.length === a.registers &&
    found.b.length === b.registers &&
    found.c.length === c.registers &&
    found.d.length === c.registers;
  if (fits) return found;
  return `D of ${c.registers}, A of ${a.registers}, B of ${b.registers} and C of ${c.registers} registers`;
}

function registersOf(
  operands: readonly ResolvedOperand[],
  { a: aType, b: bType, c: cType }: Types,
): MmaRegisters | null {
  if (operands.length < 4) return null;
  const elements = elementsOf(operands[0]);
  const d = elements.flatMap((element) =>
    element.kind === 'register' ? [element.slot] : element.kind === 'sink' ? [null] : [],
  );
  if (d.length !== elements.length) return null;
  const [a, b, c] = [aType, bType, cType].map((type, i) => sourcesOf(operands[i + 1], type));
  return a && b && c ? { d, a, b, c } : null;
}

/** The registers among sources and destinations. */
export function slotsIn(sources: readonly (FragmentSource | null)[]): Slot[] {
  return sources.flatMap((source) => (source !== null && 'offset' in source ? [source] : []));
}

const allLanes = 0xffffffff;

/** The fault of a matrix product that not all lanes execute; null where they do. */
export function faultOfLanes(lanes: number): string | null {
  return lanes >>> 0 === allLanes
    ? null
    : `only the lanes ${maskText(lanes)} execute it, and it takes all 32`;
}
