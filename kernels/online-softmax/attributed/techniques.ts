/**
 * The sources of error of a forward with an online softmax, in the order in which they act on a block of
 * keys. Each can be emulated, which is as the GPU does it, or exact; a kernel's definitions say what
 * that means for each, and this is what it means for all:
 *
 * - Exact is fp64. What it adds of its own is some 2^-50 of Σ p|v|, below any technique's error.
 * - An instruction needs operands in its format. Where an exact operation came before, they are fp64
 *   numbers: the instruction is executed on the nearest operands that it takes, and the error that it
 *   makes there is carried over to the exact result of the actual operands. So an emulated technique
 *   alone shows its own error only, and where all before it are emulated the operands are what they
 *   are on the GPU and so is the result, to the last bit.
 * - The path is the GPU's own whatever is emulated: the running maximum (of the emulated scores), which
 *   rescales are skipped, which columns the polynomial computes. Any path gives exact attention if
 *   everything is exact, so a lagging maximum is no error by itself; it changes what others do.
 */
export const techniques = [
  'qk-accumulate',
  'scale-subtract',
  'exp2-hardware',
  'exp2-polynomial',
  'p-round',
  'rescale',
  'pv-accumulate',
  'row-sum',
  'normalise',
  'output-round',
] as const;
/** One of {@link techniques}. */
export type Technique = (typeof techniques)[number];

/** The techniques that are emulated; the others are exact. */
export type EmulatedTechniques = ReadonlySet<Technique>;
