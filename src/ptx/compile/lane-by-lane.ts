import type { LaneValue, RegisterWidth } from '../instructions/index.js';
import type { LaneOperation, Slot, Source } from '../program/index.js';

const warpLanes = 32;
/** Distance from the low halves of a register of 128 bits to the high ones. */
const halfBytes = 8 * warpLanes;
const trueBits = 0xffffffff;

/** Bytes from a lane's value to the next lane's. */
function laneBytes(width: RegisterWidth): number {
  return width === 64 || width === 128 ? 8 : 4;
}

/** The bits of a lane in a register, up to `width`. */
function readSlot(view: DataView, at: number, slot: Slot, width: RegisterWidth): LaneValue {
  if (width === 'pred') return view.getUint32(at, true) === 0 ? 0 : 1;
  if (width <= 32) {
    const word = view.getUint32(at, true);
    return width === 16 ? word & 0xffff : word;
  }
  const low =
    laneBytes(slot.width) === 8 ? view.getBigUint64(at, true) : BigInt(view.getUint32(at, true));
  if (width === 64 || slot.width !== 128) return low;
  return (view.getBigUint64(at + halfBytes, true) << 64n) | low;
}

function constantBits(bits: bigint, width: RegisterWidth): LaneValue {
  if (width === 'pred') return bits === 0n ? 0 : 1;
  const cut = BigInt.asUintN(width, bits);
  return width <= 32 ? Number(cut) : cut;
}

function writeSlot(view: DataView, at: number, slot: Slot, value: LaneValue): void {
  if (slot.width === 'pred') return view.setUint32(at, Number(value) === 0 ? 0 : trueBits, true);
  if (slot.width <= 32) {
    const word = Number(BigInt.asUintN(slot.width, BigInt(value)));
    return view.setUint32(at, word, true);
  }
  const bits = BigInt(value);
  view.setBigUint64(at, BigInt.asUintN(64, bits), true);
  if (slot.width === 128) view.setBigUint64(at + halfBytes, bits >> 64n, true);
}

/**
 * Carries out one operation by the definition of its instruction, in the lanes of the mask; the others stay as they
 * are.
 *
 * @param view a view of the memory with the registers
 * @param registers the byte at which the registers of the warp begin
 */
export function runLaneByLane(
  view: DataView,
  { instruction, guard, destinations, sources }: LaneOperation,
  registers: number,
  lanes: number,
): void {
  const addressOf = (slot: Slot, lane: number): number =>
    registers + slot.offset + lane * laneBytes(slot.width);
  const read = (source: Source, width: RegisterWidth, lane: number): LaneValue =>
    'bits' in source
      ? constantBits(source.bits, width)
      : readSlot(view, addressOf(source, lane), source, width);
  for (let lane = 0; lane < warpLanes; lane++) {
    if (((lanes >>> lane) & 1) === 0) continue;
    if (guard !== null && (read(guard.slot, 'pred', lane) === 0) !== guard.isNegated) continue;
    const values = sources.map((source, i) => read(source, instruction.sources[i], lane));
    const evaluated = instruction.evaluate(...values);
    const results = typeof evaluated === 'object' ? evaluated : [evaluated];
    destinations.forEach((slot, i) => {
      if (slot !== null) writeSlot(view, addressOf(slot, lane), slot, results[i]);
    });
  }
}
