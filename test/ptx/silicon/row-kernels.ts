import type {
  LaneInstruction,
  LaneValue,
  RegisterWidth,
} from '../../../src/ptx/instructions/index.js';

/** Operands that each instruction is tried with. */
export const tuples = 4096;
/** Tuples that share a fingerprint. */
export const blockTuples = 1024;
/** Threads of a block of a kernel. */
const blockThreads = 256;
/** The most sources that an instruction has. */
export const mostSources = 8;

function mix(word: number): number {
  let h = word >>> 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** Patterns at which formats and integers change their ways, by the width of a register. */
const specials: Readonly<Record<16 | 32 | 64, readonly bigint[]>> = {
  16: [
    ...[0x0000n, 0x8000n, 0x0001n, 0x8001n, 0x03ffn, 0x0400n, 0x8400n, 0x3c00n, 0xbc00n, 0x7bffn],
    ...[0xfbffn, 0x7c00n, 0xfc00n, 0x7e00n, 0xfe00n, 0x7c01n, 0x7fffn, 0xffffn, 0x3f80n, 0xbf80n],
    ...[0x7f80n, 0xff80n, 0x7f7fn, 0x7fc0n, 0x7f81n, 0x0080n, 0x007fn, 0x4248n, 0x0010n, 0x001fn],
  ],
  32: [
    ...[0x00000000n, 0x80000000n, 0x00000001n, 0x80000001n, 0x007fffffn, 0x00800000n, 0x80800000n],
    ...[0x3f800000n, 0xbf800000n, 0x3f7fffffn, 0x3f800001n, 0x7f7fffffn, 0xff7fffffn, 0x7f800000n],
    ...[0xff800000n, 0x7fc00000n, 0xffc00000n, 0x7f800001n, 0x7fffffffn, 0xffffffffn, 0x4b000000n],
    ...[0x4effffffn, 0x4f000000n, 0xcf000000n, 0xcf000001n, 0x4f7fffffn, 0x4f800000n, 0x5f000000n],
    ...[0x477fe000n, 0x477ff000n, 0x33800000n, 0x33000000n, 0x38800000n, 0x43e00000n, 0x43f00000n],
    ...[0x0000001fn, 0x00000020n, 0x00000021n, 0x0000ffffn, 0x00007fffn, 0x00008000n, 0x3f000000n],
    ...[0x3fc00000n, 0x40200000n, 0x7e800000n, 0x7e800001n, 0x3b000000n, 0x0000000fn, 0x00000003n],
  ],
  64: [
    ...[0n, 1n << 63n, 1n, 0x000fffffffffffffn, 0x0010000000000000n, 0x3ff0000000000000n],
    ...[0xbff0000000000000n, 0x7fefffffffffffffn, 0x7ff0000000000000n, 0xfff0000000000000n],
    ...[0x7ff8000000000000n, 0xfff8000000000000n, 0x7ff0000000000001n, 0x7fffffffffffffffn],
    ...[0xffffffffffffffffn, 0x41dfffffffc00000n, 0x41e0000000000000n, 0xc1e0000000000000n],
    ...[0x43e0000000000000n, 0x43f0000000000000n, 0x47efffffe0000000n, 0x47efffffefffffffn],
    ...[0x47effffff0000000n, 0x36a0000000000000n, 0x3690000000000000n, 0x380fffffffffffffn],
    ...[0x3810000000000000n, 0x00000000ffffffffn, 0x0000000080000000n, 0x000000000000003fn],
    ...[0x0000000000000040n, 0x0000000000000041n, 0x3fe0000000000000n, 0x3ff8000000000000n],
    ...[0x3f8000003f800000n, 0x7f8000007fc00000n, 0x0000000100800000n, 0x4340000000000001n],
  ],
};

/** Numbers near one another and near 1, of each format, so that sums cancel and quotients are ordinary. */
function ordinary(width: 16 | 32 | 64, low: number, high: number): bigint {
  if (width === 16) return BigInt((low & 0x8000) | (low & 0x40 ? 0x3800 : 0x3f00) | (high & 0x7ff));
  if (width === 32) return BigInt(((low & 0x800003ff) | 0x3f000000 | (high & 0x01ffffff)) >>> 0);
  return (
    ((BigInt((low & 0x80000000) | 0x3fe00000 | (high & 0x3fffff)) & 0xffffffffn) << 32n) |
    BigInt(mix(high))
  );
}

/** The value of the operand at a position of a tuple; a 128-bit one is not drawn. */
function operand(width: RegisterWidth, position: number, tuple: number): bigint {
  const seed = mix(tuple * mostSources + position + 1);
  const [low, high] = [mix(seed ^ 0x51ed270b), mix(seed ^ 0x2545f491)];
  if (width === 'pred') return BigInt(low & 1);
  if (width === 128) throw new RangeError('no operands of 128 bits are drawn');
  const list = specials[width];
  const kind = seed % 8;
  if (kind < 3) return list[low % list.length];
  if (kind === 3) return BigInt.asUintN(width, BigInt((low % 81) - 40));
  if (kind < 6) return ordinary(width, low, high);
  return BigInt.asUintN(width, (BigInt(high) << 32n) | BigInt(low));
}

/** What stands in a register for a pattern, in the form of `evaluate`. */
function laneValue(width: RegisterWidth, pattern: bigint): LaneValue {
  return width === 64 || width === 128 ? pattern : Number(pattern);
}

/** Sources that must be immediates: the table of `lop3`, by their position. */
function immediateAt({ name }: LaneInstruction): number {
  return name.startsWith('lop3') ? 3 : -1;
}

/** All operands at a position, 64 bits each; those of an immediate are all the same. */
export function operandColumn(instruction: LaneInstruction, position: number): BigUint64Array {
  const width = instruction.sources[position];
  if (immediateAt(instruction) === position) return new BigUint64Array(tuples).fill(0xcan);
  return BigUint64Array.from({ length: tuples }, (_, tuple) => operand(width, position, tuple));
}

/** The results of all tuples, 64 bits each: destination by destination. */
export function modelResults(instruction: LaneInstruction): BigUint64Array {
  const { destinations, sources, evaluate } = instruction;
  const columns = sources.map((_, position) => operandColumn(instruction, position));
  const results = new BigUint64Array(destinations.length * tuples);
  for (let tuple = 0; tuple < tuples; tuple++) {
    const result = evaluate(...columns.map((column, i) => laneValue(sources[i], column[tuple])));
    const values = typeof result === 'object' ? result : [result];
    values.forEach((value, i) => (results[i * tuples + tuple] = BigInt(value)));
  }
  return results;
}

/** Two words for each block of tuples of each destination, as sums of mixed words. */
export function fingerprints(results: BigUint64Array): Uint32Array {
  const words = new Uint32Array(results.buffer, results.byteOffset, 2 * results.length);
  const marks = new Uint32Array((2 * results.length) / blockTuples);
  for (let i = 0; i < results.length; i++) {
    const at = 2 * Math.floor(i / blockTuples);
    const place = mix(i % blockTuples);
    const [low, high] = [mix(words[2 * i] ^ place), mix(words[2 * i + 1] ^ ~place)];
    marks[at] += low + Math.imul(high, 31);
    marks[at + 1] ^= mix(low + (high ^ 0x9e3779b9));
  }
  return marks;
}

const registerNames = { pred: '%p', 16: '%h', 32: '%r', 64: '%d' } as const;

/** From 64 bits to a register and back. */
const narrow = {
  pred: (to: string, from: string) => `and.b64 %d19, ${from}, 1; setp.ne.b64 ${to}, %d19, 0;`,
  16: (to: string, from: string) => `cvt.u16.u64 ${to}, ${from};`,
  32: (to: string, from: string) => `cvt.u32.u64 ${to}, ${from};`,
  64: (to: string, from: string) => `mov.b64 ${to}, ${from};`,
} as const;
const widen = {
  pred: (from: string) => `selp.b64 %d18, 1, 0, ${from};`,
  16: (from: string) => `cvt.u64.u16 %d18, ${from};`,
  32: (from: string) => `cvt.u64.u32 %d18, ${from};`,
  64: (from: string) => `mov.b64 %d18, ${from};`,
} as const;

/** The instruction with its operands as PTX writes it; null for what a single instruction does not show: carries. */
export function statement(
  { name }: LaneInstruction,
  to: readonly string[],
  from: readonly string[],
): string | null {
  if (/\bcc\b|^(addc|subc|madc)\b/.test(name)) return null;
  const packing = /^(mov\.b\d+)\.(un)?pack\d$/.exec(name);
  if (packing !== null)
    return packing[2] === undefined
      ? `${packing[1]} ${to[0]}, {${from.join(', ')}};`
      : `${packing[1]} {${to.join(', ')}}, ${from[0]};`;
  return `${name} ${to.join('|')}, ${from.join(', ')};`;
}

/** The kernel `row` that carries the instruction out for every tuple; null where no kernel of this shape can. */
export function rowKernel(
  instruction: LaneInstruction,
  target: string,
  version: string,
): string | null {
  const { destinations, sources } = instruction;
  const widths = [...destinations, ...sources];
  if (widths.includes(128) || sources.length > mostSources) return null;
  const nameOf = (width: RegisterWidth, at: number): string =>
    `${registerNames[width as keyof typeof registerNames]}${20 + at}`;
  const immediate = immediateAt(instruction);
  const from = sources.map((width, i) => (i === immediate ? '0xca' : nameOf(width, i)));
  const to = destinations.map((width, i) => nameOf(width, 10 + i));
  const text = statement(instruction, to, from);
  if (text === null) return null;
  const load = sources.map((width, i) =>
    i === immediate
      ? ''
      : `ld.param.u64 %d1, [in]; add.u64 %d1, %d1, ${i * tuples * 8}; add.u64 %d1, %d1, %d0; ld.global.u64 %d2, [%d1];
  ${narrow[width as keyof typeof narrow](nameOf(width, i), '%d2')}`,
  );
  const store = destinations.map(
    (width, i) => `${widen[width as keyof typeof widen](to[i])}
  ld.param.u64 %d1, [out]; add.u64 %d1, %d1, ${i * tuples * 8}; add.u64 %d1, %d1, %d0; st.global.u64 [%d1], %d18;`,
  );
  return `.version ${version}
.target ${target}
.address_size 64
.visible .entry row(.param .u64 in, .param .u64 out)
{
  .reg .pred %p<40>; .reg .b16 %h<40>; .reg .b32 %r<40>; .reg .b64 %d<40>;
  mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.u32 %r2, %r1, ${blockThreads}, %r0;
  mul.wide.u32 %d0, %r2, 8;
  ${load.join('\n  ')}
  ${text}
  ${store.join('\n  ')}
  ret;
}
`;
}
