import { formats, encode, decode } from '../../../formats/index.js';
import type { Fragment } from '../../../machine/index.js';
import type { ResolvedOperand } from '../request.js';
import type { Slot } from '../slot.js';
import { hasLane, operandBits, type WarpRegisters } from '../warp-registers.js';
import type { ElementType } from './access.js';

const warpLanes = 32;

/** Number of words of a lane's elements in their layout in memory. */
export function wordsOfLane(elements: number, { bytes }: ElementType): number {
  return Math.ceil((elements * bytes) / 4);
}

/** The bits of an operand in the type's format: a constant of f64 is converted to f32 where the type needs it. */
function bitsOf(
  registers: WarpRegisters,
  operand: ResolvedOperand,
  { name }: ElementType,
  lane: number,
): bigint {
  if (operand.kind === 'constant' && operand.format === 'f64' && name === 'f32')
    return BigInt(encode(formats.fp32, decode(formats.fp64, BigInt.asUintN(64, operand.bits))));
  return operandBits(registers, operand, lane);
}

/** Puts the low bytes of `bits` at an element's place among the words of a lane. */
function put(words: Uint32Array, first: number, byte: number, bytes: number, bits: bigint): void {
  if (bytes < 4) {
    const mask = 2 ** (8 * bytes) - 1;
    words[first + (byte >> 2)] |= (Number(bits & 0xffffffffn) & mask) << (8 * (byte & 3));
    return;
  }
  for (let i = 0; i < bytes / 4; i++)
    words[first + byte / 4 + i] = Number((bits >> BigInt(32 * i)) & 0xffffffffn);
}

/** The data that lanes store, in its layout in memory ([lane][word]): the low bits of registers, or constants. */
export function packLanes(
  registers: WarpRegisters,
  elements: readonly ResolvedOperand[],
  type: ElementType,
  lanes: number,
): Fragment {
  const perLane = wordsOfLane(elements.length, type);
  const data: Fragment = new Uint32Array(perLane * warpLanes);
  elements.forEach((element, i) => {
    const byte = i * type.bytes;
    const isPlain = element.kind === 'register' && element.slot.width !== 128;
    if (isPlain && (type.bytes === 4 || (type.bytes === 8 && element.slot.width === 64))) {
      const words = registers.words(element.slot);
      const count = element.slot.width === 64 ? 2 : 1;
      for (let lane = 0; lane < warpLanes; lane++)
        for (let word = 0; word < type.bytes / 4; word++)
          data[lane * perLane + byte / 4 + word] = words[lane * count + word];
      return;
    }
    if (isPlain && type.bytes < 4) {
      const words = registers.words(element.slot);
      const count = element.slot.width === 64 ? 2 : 1;
      const mask = 2 ** (8 * type.bytes) - 1;
      for (let lane = 0; lane < warpLanes; lane++)
        data[lane * perLane + (byte >> 2)] |= (words[lane * count] & mask) << (8 * (byte & 3));
      return;
    }
    for (let lane = 0; lane < warpLanes; lane++)
      if (hasLane(lanes, lane))
        put(data, lane * perLane, byte, type.bytes, bitsOf(registers, element, type, lane));
  });
  return data;
}

/** The words of a register that hold a value of a lane, the lowest first. */
function placesOf({ width }: Slot, lane: number): readonly number[] {
  if (width === 128)
    return [2 * lane, 2 * lane + 1, 2 * warpLanes + 2 * lane, 2 * warpLanes + 2 * lane + 1];
  return width === 64 ? [2 * lane, 2 * lane + 1] : [lane];
}

/**
 * Writes loaded values of lanes into registers. A register wider than the element gets the element extended, by
 * its sign where the type has one. Source: PTX ISA, "Operand Size Exceeding Instruction-Type Size".
 */
export function unpackLanes(
  registers: WarpRegisters,
  elements: readonly ResolvedOperand[],
  type: ElementType,
  { data, lanes }: { readonly data: Fragment; readonly lanes: number },
): void {
  const perLane = wordsOfLane(elements.length, type);
  elements.forEach((element, i) => {
    if (element.kind !== 'register') return;
    const { slot } = element;
    const words = registers.words(slot);
    const byte = i * type.bytes;
    if (type.bytes === 4 && slot.width === 32) {
      for (let lane = 0; lane < warpLanes; lane++)
        if (hasLane(lanes, lane)) words[lane] = data[lane * perLane + byte / 4];
      return;
    }
    const unused = 32 - 8 * Math.min(type.bytes, 4);
    for (let lane = 0; lane < warpLanes; lane++) {
      if (!hasLane(lanes, lane)) continue;
      const first = lane * perLane + (byte >> 2);
      // The element's low word, shifted up and down again to drop its neighbours and extend its sign.
      const raised = (data[first] >>> (8 * (byte & 3))) << unused;
      const low = type.isSigned ? raised >> unused : raised >>> unused;
      const extension = type.isSigned && low < 0 ? -1 : 0;
      placesOf(slot, lane).forEach((place, word) => {
        words[place] = word === 0 ? low : word < type.bytes / 4 ? data[first + word] : extension;
      });
      if (slot.width === 16) words[lane] &= 0xffff;
    }
  });
}
