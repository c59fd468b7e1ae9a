import type { LaneValue, RegisterWidth } from '../../isa/index.js';
import type { LaneOperation } from '../../ptx/program/index.js';
import type { TracedOperation } from '../../ptx/run/index.js';
import { type ByteMap, findByteMoves, fromNowhere, isChanged } from '../rules/index.js';
import {
  byteSlots,
  type LanePlace,
  placeInSlot,
  type RegisterFile,
  valueBytes,
} from '../trace/index.js';

const warpLanes = 32;

/** What an operation on bits does that moves no bytes, in one lane; it sets the tags of its results. */
export interface BitsOperation {
  /** Whether it takes an operation that moves bytes for something else: a number whose last bits are cut off by a mask. */
  readonly claims: (registers: number, lane: number, fixed: readonly (LaneValue | null)[]) => boolean;
  /** Takes down the operands, before the operation runs. */
  readonly before: (registers: number, lane: number, values: readonly LaneValue[]) => void;
  readonly after: (registers: number, lane: number) => void;
}

/** The value of a source in a lane, as the definition takes it. */
export function laneValueOf(
  file: RegisterFile,
  source: LaneOperation['sources'][number],
  width: RegisterWidth,
  registers: number,
  lane: number,
): LaneValue {
  const bits = width === 'pred' ? 1 : width;
  if (!('offset' in source))
    return bits <= 32
      ? Number(BigInt.asUintN(bits, source.bits))
      : BigInt.asUintN(bits, source.bits);
  const word = (byte: number): number => {
    const { first, stride } = placeInSlot(source, byte);
    return file.words[(registers + first + stride * lane) >>> 2];
  };
  if (width === 'pred') return word(0) === 0 ? 0 : 1;
  if (bits <= 32) return bits === 32 ? word(0) : word(0) & (2 ** bits - 1);
  const count = Math.min(bits, valueBytes(source) * 8) / 32;
  let value = 0n;
  for (let i = count - 1; i >= 0; i--) value = (value << 32n) | BigInt(word(4 * i));
  return value;
}

/** The last answer of `findByteMoves`, which is asked again and again with the same fixed values. */
class KnownMoves {
  readonly #instruction: LaneOperation['instruction'];
  readonly #known = new Map<string, ByteMap>();
  #lastFixed: readonly (LaneValue | null)[] = [];
  #last: ByteMap | null = null;

  constructor(instruction: LaneOperation['instruction']) {
    this.#instruction = instruction;
  }

  of(fixed: readonly (LaneValue | null)[]): ByteMap {
    if (this.#last !== null && fixed.every((value, i) => value === this.#lastFixed[i]))
      return this.#last;
    const key = fixed.map(String).join(' ');
    let map = this.#known.get(key);
    if (map === undefined) {
      if (this.#known.size > 4096) this.#known.clear();
      this.#known.set(key, (map = findByteMoves(this.#instruction, fixed)));
    }
    [this.#lastFixed, this.#last] = [fixed, map];
    return map;
  }
}

/** The places of the bytes of an operand's register. */
function placesOf(slot: Parameters<typeof placeInSlot>[0], bytes: number): readonly LanePlace[] {
  return Array.from({ length: bytes }, (_, byte) => placeInSlot(slot, byte));
}

/**
 * Follows an operation on bits: bytes that it moves take their tags along; what else it does is `bits`.
 *
 * @param bits null where every byte of a result that is not moved comes from nowhere
 */
export function followBytes(
  file: RegisterFile,
  operation: LaneOperation,
  run: TracedOperation,
  bits: BitsOperation | null,
): TracedOperation {
  const { instruction, sources, destinations } = operation;
  const moves = new KnownMoves(instruction);
  const registersIn = byteSlots(sources).map(({ operand, slot }) => {
    const bytes = Math.min(valueBytes(slot), valueBytes({ width: instruction.sources[operand] }));
    return { operand, slot, places: placesOf(slot, bytes) };
  });
  const registersOut = byteSlots(destinations).map(({ operand, slot }) => ({
    operand,
    places: placesOf(slot, Math.max(valueBytes(slot), slot.width === 16 ? 4 : 0)),
  }));
  const tagsIn = sources.map(() => new Uint32Array(16));
  const written = new Set(byteSlots(destinations).map(({ slot }) => slot.offset));
  const overwrites = sources.some((source) => 'offset' in source && written.has(source.offset));

  const takeTags = (registers: number, lane: number): number[] => {
    const tagged: number[] = [];
    for (const { operand, places } of registersIn) {
      let any = 0;
      const tags = tagsIn[operand];
      for (let byte = 0; byte < places.length; byte++) {
        const { first, stride } = places[byte];
        any |= tags[byte] = file.tagAt(registers + first + stride * lane);
      }
      if (any !== 0) tagged.push(operand);
    }
    return tagged;
  };
  const putTags = (registers: number, lane: number, map: ByteMap | null): void => {
    for (const { operand, places } of registersOut)
      for (let byte = 0; byte < places.length; byte++) {
        const { first, stride } = places[byte];
        const origin =
          map === null || byte >= map[operand].length ? fromNowhere : map[operand][byte];
        const tag = origin < 0 ? 0 : tagsIn[origin >> 4][origin & 15];
        file.putTag(registers + first + stride * lane, tag);
      }
  };

  const valuesAt = (registers: number, lane: number): readonly LaneValue[] =>
    sources.map((source, i) => laneValueOf(file, source, instruction.sources[i], registers, lane));

  return (registers, lanes) => {
    const isAnyTagged = registersIn.some(({ slot }) => file.isTagged(registers, slot));
    if (!isAnyTagged) {
      run(registers, lanes);
      if (registersOut.some(({ operand }) => file.isTagged(registers, destinations[operand]!)))
        for (let lane = 0; lane < warpLanes; lane++)
          if (((lanes >>> lane) & 1) === 1) putTags(registers, lane, null);
      return;
    }
    // Lane by lane where a result takes the place of an operand.
    if (!overwrites) run(registers, lanes);
    for (let lane = 0; lane < warpLanes; lane++) {
      if (((lanes >>> lane) & 1) === 0) continue;
      const tagged = takeTags(registers, lane);
      const fixed = sources.map((source, i) =>
        tagged.includes(i)
          ? null
          : laneValueOf(file, source, instruction.sources[i], registers, lane),
      );
      const map = tagged.length === 0 ? null : moves.of(fixed);
      const isMove =
        map === null ||
        (!map.some((bytes) => bytes.includes(isChanged)) &&
          bits?.claims(registers, lane, fixed) !== true);
      if (!isMove) bits?.before(registers, lane, valuesAt(registers, lane));
      if (overwrites) run(registers, 1 << lane);
      putTags(registers, lane, map);
      if (!isMove) bits?.after(registers, lane);
    }
  };
}
