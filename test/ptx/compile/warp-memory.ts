import type { LaneInstruction, RegisterWidth } from '../../../src/ptx/instructions/index.js';
import type {
  Constant,
  LaneOperation,
  RunOperations,
  Slot,
  Source,
} from '../../../src/ptx/program/index.js';
import { createCompiler, runLaneByLane, type Compiler } from '../../../src/ptx/compile/index.js';
import { specialWords } from '../../machine/arithmetic/patterns.js';

const warpLanes = 32;
const pageBytes = 65536;
const tablePages = 8;

/** A memory with room for registers at its begin, and a compiler whose tables lie behind them. */
export function compilerWithMemory(registerBytes: number): {
  readonly memory: WebAssembly.Memory;
  readonly compiler: Compiler;
} {
  const registerPages = Math.ceil(registerBytes / pageBytes);
  const memory = new WebAssembly.Memory({ initial: registerPages + tablePages });
  let next = registerPages * pageBytes;
  const compiler = createCompiler(memory, (table) => {
    const address = next;
    const bytes = new Uint8Array(table.buffer, table.byteOffset, table.byteLength);
    new Uint8Array(memory.buffer).set(bytes, address);
    next = Math.ceil((next + bytes.length) / 16) * 16;
    return address;
  });
  return { memory, compiler };
}

/** Bytes of a register of a warp. */
export function slotBytes(width: RegisterWidth): number {
  if (width === 128) return 16 * warpLanes;
  return (width === 64 ? 8 : 4) * warpLanes;
}

/** Slots of these widths one behind another. */
export function slotsOf(widths: readonly RegisterWidth[]): {
  readonly slots: Slot[];
  readonly bytes: number;
} {
  let offset = 0;
  const slots = widths.map((width): Slot => {
    const slot = { offset, width };
    offset += slotBytes(width);
    return slot;
  });
  return { slots, bytes: offset };
}

/** Numbers from 0 to 2^32 − 1, the same for one seed (xorshift32). */
export function createRandom(seed: number): () => number {
  let state = (Math.imul(seed, 0x9e3779b1) ^ 0x6a09e667) >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>>= 0);
  };
}

/** Zeros, ends of subnormal and normal numbers, infinities, NaNs of fp16 and bf16; without signs. */
const specialHalves = [
  ...[0x0000, 0x0001, 0x007f, 0x0080, 0x03ff, 0x0400, 0x3c00, 0x3f80, 0x7bff, 0x7c00, 0x7c01],
  ...[0x7e00, 0x7f7f, 0x7f80, 0x7f81, 0x7fc0, 0x7fff],
];
/** High words of fp64: the same, ends of integer ranges and of fp32's. */
const specialHighWords = [
  ...[0x00000000, 0x00000001, 0x000fffff, 0x00100000, 0x36900000, 0x380fffff, 0x38100000],
  ...[0x3fe00000, 0x3ff00000, 0x3ff80000, 0x41dfffff, 0x41e00000, 0x41f00000, 0x43300000],
  ...[0x47efffff, 0x47f00000, 0x7fefffff, 0x7ff00000, 0x7ff00001, 0x7ff80000, 0x7fffffff],
];

function drawHalf(random: () => number): number {
  const [word, kind] = [random(), random() % 3];
  if (kind === 0) return word & 0xffff;
  if (kind === 1) return specialHalves[word % specialHalves.length] | ((word >>> 16) & 0x8000);
  // Near 1 as fp16, or as bf16.
  return ((word & 0x81ff) | (word & 0x10000 ? 0x3e00 : 0x3a00)) & 0xffff;
}

function drawHighWord(random: () => number): number {
  const [word, kind] = [random(), random() % 4];
  const special = specialHighWords[word % specialHighWords.length];
  if (kind === 0) return word;
  if (kind === 1) return (special | (word & 0x80000000)) >>> 0;
  // Of the size of integers, or of fp32's numbers.
  const exponent = kind === 2 ? 0x3fc + ((word >>> 20) % 70) : 0x360 + ((word >>> 20) % 0x120);
  return ((word & 0x800fffff) | (exponent << 20)) >>> 0;
}

/** A word that is special, small, near 1 as fp32, of a close exponent, or anything. */
export function drawWord(random: () => number): number {
  const [word, kind] = [random(), random() % 11];
  if (kind < 2) return (specialWords[word % specialWords.length] | (word & 0x80000000)) >>> 0;
  if (kind === 2) return word % 70;
  if (kind === 3) return ((word & 0x807fffff) | ((0x70 + ((word >>> 23) % 0x20)) << 23)) >>> 0;
  if (kind === 4) return (word & 0x80ffffff) >>> 0;
  if (kind < 7) return ((drawHalf(random) << 16) | drawHalf(random)) >>> 0;
  // Halfway between numbers of tf32, bf16 or fp16.
  if (kind === 7) return ((word & 0xffff8000) | (word & 1 ? 0x1000 : 0x8000)) >>> 0;
  return word;
}

/** A word that has to do with another: equal, its opposite or its complement, or next to them. */
function drawRelated(other: number, random: () => number): number {
  const kind = random() % 5;
  if (kind === 0) return other;
  if (kind === 1) return ~other;
  if (kind === 2) return -other;
  return kind === 3 ? other ^ 0x80000000 : other + 1;
}

function halfOf(word: number, random: () => number): number {
  return random() % 4 === 0 ? word & 0xffff : drawHalf(random);
}

/** Fills registers with patterns that their widths allow. */
export function fill(
  view: DataView,
  registers: number,
  slots: readonly Slot[],
  random: () => number,
): void {
  slots.forEach(({ offset, width }, i) => {
    const before = i === 0 ? null : slots[i - 1];
    for (let at = 0; at < slotBytes(width); at += 4) {
      const isHigh = slotBytes(width) > 128 && at % 8 === 4;
      let word = isHigh && random() % 2 === 0 ? drawHighWord(random) : drawWord(random);
      if (before?.width === width && random() % 6 === 0)
        word = drawRelated(view.getUint32(registers + before.offset + at, true), random);
      const stored = width === 'pred' ? -(word & 1) : width === 16 ? halfOf(word, random) : word;
      view.setUint32(registers + offset + at, stored >>> 0, true);
    }
  });
}

/** An operation on these slots. */
export function operation(
  instruction: LaneInstruction,
  destinations: readonly (Slot | null)[],
  sources: readonly Source[],
  guard: LaneOperation['guard'] = null,
): LaneOperation {
  return { instruction, destinations, sources, guard, line: 1 };
}

/** A constant of a width. */
export function constant(bits: number | bigint, width: RegisterWidth): Constant {
  if (width === 'pred') return { bits: BigInt(bits) & 1n ? 0xffffffffn : 0n, width };
  return { bits: BigInt.asUintN(width, BigInt(bits)), width };
}

/** The first word in which two stretches of memory differ; null where none does. */
function firstDifference(a: Uint8Array, b: Uint8Array): number | null {
  if (Buffer.compare(a, b) === 0) return null;
  return a.findIndex((byte, i) => byte !== b[i]);
}

/** A register as one line for messages. */
function described({ offset, width }: Slot): string {
  return `${width === 'pred' ? 'predicate' : `b${width}`} at ${offset}`;
}

/** What a stretch does in WebAssembly against what its definition says, on one warp. */
export function compareWithDefinition(
  memory: WebAssembly.Memory,
  run: RunOperations,
  operations: readonly LaneOperation[],
  { slots, bytes }: { readonly slots: readonly Slot[]; readonly bytes: number },
  lanes: number,
): string | null {
  const before = memory.buffer.slice(0, bytes);
  const expected = new DataView(before.slice(0));
  for (const one of operations) runLaneByLane(expected, one, 0, lanes);
  run(0, lanes);
  const actual = new Uint8Array(memory.buffer, 0, bytes);
  const place = firstDifference(new Uint8Array(expected.buffer), actual);
  if (place === null) return null;
  const slot = slots.findLast(({ offset }) => offset <= place) ?? slots[0];
  const step = slotBytes(slot.width) / warpLanes;
  const lane = Math.floor((place - slot.offset) / Math.min(step, 8)) % warpLanes;
  const word = (view: DataView, { offset, width }: Slot): string =>
    `0x${view.getUint32(offset + lane * (slotBytes(width) > 128 ? 8 : 4), true).toString(16)}`;
  const inputs = slots.map((other) => word(new DataView(before), other)).join(' ');
  const names = operations.map(({ instruction }) => instruction.name).join('; ');
  return (
    `${names}: lane ${lane} of ${described(slot)}: ${word(new DataView(memory.buffer), slot)} ` +
    `instead of ${word(expected, slot)}; registers were ${inputs}`
  );
}
