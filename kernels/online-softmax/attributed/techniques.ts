import type { Technique } from '../../techniques.js';

export { techniques, type Technique } from '../../techniques.js';

/**
 * The techniques that are emulated, which is as the GPU does it; the others are exact. A kernel's
 * definitions say what that means for each, and this is what it means for all:
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
export type EmulatedTechniques = ReadonlySet<Technique>;
