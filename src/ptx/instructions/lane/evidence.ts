import type { LaneInstruction } from '../../../isa/index.js';

/**
 * Instructions that an H200 lacks: packed fp32, sums of fp32 and half precision, extrema of three, formats of 6 and 4
 * bits and of exponents, saturation to tf32 except with `.rna`, random rounding, bf16 from and to fp8.
 */
const newer: readonly RegExp[] = [
  /\.f32x2$/,
  /^(add|sub|fma)\..*\.?f32\.b?f16$/,
  /\.(e2m3x2|e3m2x2|e2m1x2|ue8m0x2)\b/,
  /^cvt\.(rn|rz)\.(relu\.)?satfinite\.tf32\./,
  /^cvt\.rs\./,
  /^fma\.rn\.oob\./,
  /\.e[45]m[32]x2\.bf16x2$|\.bf16x2\.e[45]m[32]x2$/,
];
/**
 * Instructions that were not compared: those that depend on where memory lies, carries, and registers of 8 and of 128
 * bits.
 */
const notCompared: readonly RegExp[] = [
  /^(cvta|isspacep|mapa|getctarank)\./,
  /^(addc|subc|madc)\.|^(add|sub|mad\.(lo|hi))\.cc\./,
  /^mov\.b128/,
  /^mov\.(b16\.(un)?pack2|b32\.(un)?pack4)$/,
];

const capture = 'as on an H200 with driver 580.159.04';

function isCompared({ name, sources }: LaneInstruction): boolean {
  const isOfThree = /^(min|max)\./.test(name) && sources.length === 3;
  return !isOfThree && ![...newer, ...notCompared].some((pattern) => pattern.test(name));
}

/**
 * The row with its evidence: all instructions of the hardware were compared with an H200 on patterns of special, small
 * and random operands, and give its bits.
 */
export function withEvidence(instruction: LaneInstruction): LaneInstruction {
  if (!isCompared(instruction)) return { ...instruction, evidence: 'isa' };
  const { source } = instruction;
  const isSaid = source.includes('H200');
  return { ...instruction, evidence: 'silicon', source: isSaid ? source : `${source}; ${capture}` };
}
