import type { LaneInstruction } from '../../../isa/index.js';

/**
 * Conversions that an H200 lacks: formats of 6 and 4 bits and of exponents, saturation to tf32 except with `.rna`, random rounding, bf16 from and to fp8.
 */
const newer: readonly RegExp[] = [
  /\.(e2m3x2|e3m2x2|e2m1x2|ue8m0x2)\b/,
  /^cvt\.(rn|rz)\.(relu\.)?satfinite\.tf32\./,
  /^cvt\.rs\./,
  /\.e[45]m[32]x2\.bf16x2$|\.bf16x2\.e[45]m[32]x2$/,
];
const capture = 'as on an H200 with driver 580.159.04';

function isCompared({ name }: LaneInstruction): boolean {
  return !newer.some((pattern) => pattern.test(name));
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
