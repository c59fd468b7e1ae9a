import { sumToOdd } from '../../arith/index.js';
import { pairsOf } from '../pairs.js';
import { type Row, row } from '../row.js';
import { type FloatType, floatTypes, flushed } from '../values/float-type.js';
import { positive, saturated } from '../values/rounding.js';
import { type Emit, fusedToOdd, halfFormats, onWords, productToOdd } from '../vectors/index.js';
import { call, type Expression, f32x4, i32x4, v128 } from '../webassembly/index.js';

type HalfName = 'f16' | 'bf16';
type Opcode = 'add' | 'sub' | 'mul' | 'fma';

/** An operation of half precision. */
interface Operation {
  /** As the manual writes its operands. */
  readonly operands: string;
  /**
   * The exact result, or an fp64 number on the same side of every half precision number, or halfway between two:
   * rounding it once more rounds the exact result.
   */
  readonly compute: (a: number, b: number, c: number) => number;
  /**
   * From numbers as fp32 to fp32: sums, rounded once more, are as if rounded once, since fp32 has more than twice the
   * bits plus two.
   */
  readonly code: (a: Expression, b: Expression, c: Expression) => Expression;
}

const operations: Readonly<Record<Opcode, Operation>> = {
  add: { operands: 'a, b', compute: sumToOdd, code: (a, b) => f32x4.add(a, b) },
  sub: {
    operands: 'a, b',
    compute: (a, b) => sumToOdd(a, -b),
    code: (a, b) => f32x4.sub(a, b),
  },
  mul: {
    operands: 'a, b',
    compute: (a, b) => a * b,
    code: (a, b) => call(productToOdd, a, b),
  },
  fma: {
    operands: 'a, b, c',
    compute: (a, b, c) => sumToOdd(a * b, c),
    code: (a, b, c) => call(fusedToOdd, a, b, c),
  },
};

/**
 * Each half word of elements with which TMA fills places outside of a tensor. The ISA gives no value ("special NaN"); this
 * one is taken from the emulator NumSim, whose authors say that it was measured. As a factor it may have either sign.
 */
export const outOfBoundsNan = 0x7ff7;

/** The chosen modifiers; types have some of them. */
type Chosen = Readonly<Record<string, string>>;

function limitOf({ sat, relu, limit }: Chosen): (value: number) => number {
  const name = limit ?? sat ?? relu ?? '';
  if (name === '') return (value) => value;
  return name === 'sat' ? saturated : positive;
}

function evaluated(opcode: Opcode, type: FloatType, chosen: Chosen) {
  const { compute } = operations[opcode];
  const limit = limitOf(chosen);
  const isFlushing = (chosen.ftz ?? '') !== '';
  const leavesOutside = (chosen.oob ?? '') !== '';
  const operand = (half: number): number => {
    const value = type.numberOf(half);
    return isFlushing ? flushed(type, value) : value;
  };
  return (a: number, b: number, c: number): number => {
    if (leavesOutside && [a, b].some((half) => (half & 0x7fff) === outOfBoundsNan)) return 0;
    const exact = compute(operand(a), operand(b), operand(c ?? 0));
    const rounded = type.numberOf(type.bitsOf(exact, { flushSubnormals: isFlushing }));
    return Number(type.bitsOf(limit(rounded)));
  };
}

/** Of flushed, saturated and left-out operands there is no code. */
function emitted(
  opcode: Opcode,
  name: HalfName,
  { ftz, sat, oob, limit, relu }: Chosen,
): Emit | null {
  const isPlain = [ftz, sat, oob, limit === 'relu' ? '' : limit].every((one) => (one ?? '') === '');
  if (!isPlain) return null;
  const format = halfFormats[name];
  const { code, operands } = operations[opcode];
  const count = operands.split(', ').length;
  return onWords((body, a, b, c) => {
    const [x, y, z] = [a, b, c].map((operand, i) =>
      i < count ? format.widened(body, operand) : operand,
    );
    const result = format.shortened(body, code(x, y, z));
    if ((limit ?? relu ?? '') === '') return result;
    // A NaN is 0x7fff, and stays.
    const kept = body.keep(result);
    return v128.and(kept, i32x4.leS(kept, i32x4.splat(0x7fff)));
  });
}

/** The row of single numbers, and that of pairs. */
function rowsOf(
  opcode: Opcode,
  name: HalfName,
  modifiers: string,
  evidence: 'silicon' | 'isa',
): Row[] {
  const type = floatTypes[name];
  const alternatives = { limit: ['.sat', '.relu'] };
  const syntax = (suffix: string): string =>
    `${opcode}${modifiers}.${name}${suffix} d, ${operations[opcode].operands}`;
  const single = row({
    syntax: syntax(''),
    alternatives,
    evaluate: (chosen: Chosen) => evaluated(opcode, type, chosen),
    emit: (chosen: Chosen) => emitted(opcode, name, chosen),
    meaning: 'is',
    unit: 'fma',
    evidence,
    section: 'Half Precision Floating Point Instructions',
  });
  return [single, pairsOf(single, { syntax: syntax('x2'), alternatives, evidence })];
}

/** A sign instruction, which is an addition in the hardware, so that a NaN becomes the canonical one. */
function signRows(opcode: 'neg' | 'abs', name: HalfName): Row[] {
  const type = floatTypes[name];
  const ftz = name === 'f16' ? '{.ftz}' : '';
  const compute = opcode === 'neg' ? (value: number) => -value : Math.abs;
  const [mask, flip] = opcode === 'neg' ? [0xffff, 0x8000] : [0x7fff, 0];
  const code = onWords((_, a) => {
    const isNan = i32x4.gtS(
      v128.and(a, i32x4.splat(0x7fff)),
      i32x4.splat(halfFormats[name].infinity),
    );
    const result = v128.and(v128.xor(a, i32x4.splat(flip)), i32x4.splat(mask));
    return v128.bitselect(i32x4.splat(0x7fff), result, isNan);
  });
  const single = row({
    syntax: `${opcode}${ftz}.${name} d, a` as string,
    evaluate: (chosen: Chosen) => (half: number) => {
      const value = type.numberOf(half);
      return Number(type.bitsOf(compute(chosen.ftz === 'ftz' ? flushed(type, value) : value)));
    },
    emit: (chosen: Chosen) => (chosen.ftz === 'ftz' ? null : code),
    meaning: 'is',
    unit: 'fma',
    evidence: 'silicon',
    section: 'Half Precision Floating Point Instructions',
  });
  return [
    single,
    pairsOf(single, { syntax: `${opcode}${ftz}.${name}x2 d, a`, evidence: 'silicon' }),
  ];
}

/**
 * f16 and bf16, single and in pairs: rounded once to nearest from the exact result, subnormals kept except
 * with `.ftz`, every NaN canonical. `fma.oob` is +0 where a factor lies outside of a tensor.
 */
export const halfRows: readonly Row[] = [
  ...(['add', 'sub', 'mul'] as const).flatMap((opcode) => [
    ...rowsOf(opcode, 'f16', '{.rn}{.ftz}{.sat}', 'silicon'),
    ...rowsOf(opcode, 'bf16', '{.rn}', 'silicon'),
  ]),
  ...rowsOf('fma', 'f16', '.rn{.ftz}{.limit}', 'silicon'),
  ...rowsOf('fma', 'bf16', '.rn{.relu}', 'silicon'),
  ...rowsOf('fma', 'f16', '.rn.oob{.relu}', 'isa'),
  ...rowsOf('fma', 'bf16', '.rn.oob{.relu}', 'isa'),
  ...(['neg', 'abs'] as const).flatMap((opcode) => [
    ...signRows(opcode, 'f16'),
    ...signRows(opcode, 'bf16'),
  ]),
];
