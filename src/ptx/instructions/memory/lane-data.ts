import { formats, encode, decode } from '../../../formats/index.js';
import { createByteStore, type Fragment } from '../../../machine/index.js';
import type { ResolvedOperand } from '../request.js';
import {
  hasLane,
  moveFromRegister,
  moveToRegister,
  operandBits,
  type LaneValues,
  type WarpRegisters,
} from '../warp-registers.js';
import type { ElementType } from './access.js';

const warpLanes = 32;
const wordBytes = 4;

/** Number of words of a lane's elements in their layout in memory. */
function wordsOfLane(elements: number, { bytes }: ElementType): number {
  return Math.ceil((elements * bytes) / wordBytes);
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

/** Calls `visit` with each element and its place in the data of lanes, in its layout in memory ([lane][word]). */
function forEachElement(
  elements: readonly ResolvedOperand[],
  { bytes }: ElementType,
  store: Fragment,
  visit: (element: ResolvedOperand, values: LaneValues) => void,
): void {
  const stride = store.bytes.length / warpLanes;
  elements.forEach((element, i) => visit(element, { store, offset: i * bytes, stride, bytes }));
}

/** The data that lanes store, in its layout in memory: the low bits of registers, or constants. */
export function packLanes(
  registers: WarpRegisters,
  elements: readonly ResolvedOperand[],
  type: ElementType,
  lanes: number,
): Fragment {
  const perLane = wordsOfLane(elements.length, type);
  const data = createByteStore(wordBytes * perLane * warpLanes);
  forEachElement(elements, type, data, (element, values) => {
    if (element.kind === 'register') moveFromRegister(registers, element.slot, values);
    else
      for (let lane = 0; lane < warpLanes; lane++)
        if (hasLane(lanes, lane))
          put(
            data.words,
            lane * perLane,
            values.offset,
            type.bytes,
            bitsOf(registers, element, type, lane),
          );
  });
  return data;
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
  const { isSigned } = type;
  forEachElement(elements, type, data, (element, values) => {
    if (element.kind === 'register')
      moveToRegister(registers, element.slot, { ...values, isSigned }, lanes);
  });
}
