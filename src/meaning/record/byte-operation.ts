import type { LaneValue } from '../../isa/index.js';
import type { LaneOperation } from '../../ptx/program/index.js';
import type { TracedOperation } from '../../ptx/run/index.js';
import {
  type ByteMap,
  findByteMoves,
  fromNowhere,
  isChanged,
  type ProbedOperand,
} from '../rules/index.js';
import {
  byteSlots,
  type LanePlace,
  placeInSlot,
  type RegisterFile,
  valueBytes,
} from '../trace/index.js';
import { laneValueOf, staticOperands } from './lane-values.js';
import { followStaticMoves } from './static-moves.js';

const warpLanes = 32;

/** What an operation on bits does that moves no bytes, in one lane; it sets the tags of its results. */
export interface BitsOperation {
  /** Whether it takes an operation that moves bytes for something else: a number whose last bits are cut off by a mask. */
  readonly claims: (registers: number, lane: number, operands: readonly ProbedOperand[]) => boolean;
  /** Takes down the operands, before the operation runs. */
  readonly before: (registers: number, lane: number, values: readonly LaneValue[]) => void;
  readonly after: (registers: number, lane: number) => void;
}

/** Answers of `findByteMoves`, which is asked again and again for the same operands. */
class KnownMoves {
  readonly #instruction: LaneOperation['instruction'];
  readonly #known = new Map<string, ByteMap>();
  #lastOperands: readonly ProbedOperand[] = [];
  #last: ByteMap | null = null;

  constructor(instruction: LaneOperation['instruction']) {
    this.#instruction = instruction;
  }

  of(operands: readonly ProbedOperand[]): ByteMap {
    const before = this.#lastOperands;
    const isSame = ({ value, varying }: ProbedOperand, i: number) =>
      value === before[i].value && varying === before[i].varying;
    if (this.#last !== null && operands.every(isSame)) return this.#last;
    const key = operands.map(({ value, varying }) => `${value} ${varying}`).join(' ');
    let map = this.#known.get(key);
    if (map === undefined) {
      if (this.#known.size > 4096) this.#known.clear();
      this.#known.set(key, (map = findByteMoves(this.#instruction, operands)));
    }
    [this.#lastOperands, this.#last] = [operands, map];
    return map;
  }
}

/** The places of the bytes of an operand's register. */
function placesOf(slot: Parameters<typeof placeInSlot>[0], bytes: number): readonly LanePlace[] {
  return Array.from({ length: bytes }, (_, byte) => placeInSlot(slot, byte));
}

/** A value with zeros in place of some bytes. */
function without(value: LaneValue, bytes: number): LaneValue {
  if (bytes === 0) return value;
  let mask = 0n;
  for (let byte = 0; byte < 16; byte++)
    if (((bytes >>> byte) & 1) === 1) mask |= 0xffn << BigInt(8 * byte);
  return typeof value === 'bigint' ? value & ~mask : Number(BigInt(value) & ~mask);
}

/** The tags of an operation's operands in one lane, and those of its results. */
class LaneTags {
  readonly #file: RegisterFile;
  readonly #operation: LaneOperation;
  readonly #sources: readonly { readonly operand: number; readonly places: readonly LanePlace[] }[];
  readonly #results: readonly { readonly operand: number; readonly places: readonly LanePlace[] }[];
  readonly #tags: readonly Uint32Array[];
  /** The bytes of each operand that have tags. */
  readonly #varying: Uint16Array;

  constructor(file: RegisterFile, operation: LaneOperation) {
    const { instruction, sources, destinations } = operation;
    this.#file = file;
    this.#operation = operation;
    this.#sources = byteSlots(sources).map(({ operand, slot }) => {
      const bytes = Math.min(valueBytes(slot), valueBytes({ width: instruction.sources[operand] }));
      return { operand, places: placesOf(slot, bytes) };
    });
    this.#results = byteSlots(destinations).map(({ operand, slot }) => ({
      operand,
      places: placesOf(slot, Math.max(valueBytes(slot), 4)),
    }));
    this.#tags = sources.map(() => new Uint32Array(16));
    this.#varying = new Uint16Array(sources.length);
  }

  /** Takes down the tags of the operands; returns whether there are some. */
  take(registers: number, lane: number): boolean {
    let any = 0;
    for (const { operand, places } of this.#sources) {
      let varying = 0;
      const tags = this.#tags[operand];
      for (let byte = 0; byte < places.length; byte++) {
        const { first, stride } = places[byte];
        tags[byte] = this.#file.tagAt(registers + first + stride * lane);
        if (tags[byte] !== 0) varying |= 1 << byte;
      }
      this.#varying[operand] = varying;
      any |= varying;
    }
    return any !== 0;
  }

  /** The values of all operands. */
  values(registers: number, lane: number): readonly LaneValue[] {
    const { instruction, sources } = this.#operation;
    return sources.map((source, i) =>
      laneValueOf(this.#file, source, instruction.sources[i], registers, lane),
    );
  }

  /** The operands as they are probed: bytes with tags vary. */
  probed(values: readonly LaneValue[]): readonly ProbedOperand[] {
    return values.map((value, i) => ({
      value: without(value, this.#varying[i]),
      varying: this.#varying[i],
    }));
  }

  /** Gives the results the tags of the bytes that are moved there. */
  put(registers: number, lane: number, map: ByteMap | null): void {
    for (const { operand, places } of this.#results)
      for (let byte = 0; byte < places.length; byte++) {
        const { first, stride } = places[byte];
        const origin =
          map === null || byte >= map[operand].length ? fromNowhere : map[operand][byte];
        const tag = origin < 0 ? 0 : this.#tags[origin >> 4][origin & 15];
        this.#file.putTag(registers + first + stride * lane, tag);
      }
  }
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
  const always = findByteMoves(instruction, staticOperands(operation));
  // A mask that keeps whole bytes may cut a number.
  const isMask = bits !== null && instruction.name.startsWith('and.');
  if (!isMask && !always.some((bytes) => bytes.includes(isChanged)))
    return followStaticMoves(file, operation, run, always);
  const moves = new KnownMoves(instruction);
  const tags = new LaneTags(file, operation);
  const [slotsIn, slotsOut] = [sources, destinations].map((operands) =>
    byteSlots(operands).map(({ slot }) => slot),
  );
  const overwrites = slotsIn.some(({ offset }) => slotsOut.some((slot) => slot.offset === offset));

  const followLane = (registers: number, lane: number): void => {
    const values = tags.take(registers, lane) ? tags.values(registers, lane) : null;
    const probed = values && tags.probed(values);
    const map = probed && moves.of(probed);
    const isMove =
      map === null ||
      probed === null ||
      (!map.some((bytes) => bytes.includes(isChanged)) &&
        bits?.claims(registers, lane, probed) !== true);
    if (!isMove && values !== null) bits?.before(registers, lane, values);
    if (overwrites) run(registers, 1 << lane);
    tags.put(registers, lane, map);
    if (!isMove) bits?.after(registers, lane);
  };

  return (registers, lanes) => {
    const isAnyTagged = slotsIn.some((slot) => file.isTagged(registers, slot));
    // Lane by lane where a result takes the place of an operand.
    if (!isAnyTagged || !overwrites) run(registers, lanes);
    if (!isAnyTagged && !slotsOut.some((slot) => file.isTagged(registers, slot))) return;
    for (let lane = 0; lane < warpLanes; lane++) {
      if (((lanes >>> lane) & 1) === 0) continue;
      if (isAnyTagged) followLane(registers, lane);
      else tags.put(registers, lane, null);
    }
  };
}
