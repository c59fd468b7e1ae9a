import type { Blocks } from './blocks.js';

/** Errors of pairs, in the order of the loops: at worst and variances have a block for each technique. */
export const errorBlocks = [
  ...(['worst0', 'worst1', 'worst2', 'worst3', 'worst4', 'worst5'] as const),
  ...(['variance0', 'variance1', 'variance2', 'variance3', 'variance4', 'variance5'] as const),
  ...(['value', 'unshifted', 'sloped', 'known', 'byFirst', 'bySecond', 'byThird'] as const),
  ...(['systematic', 'ofWeights', 'ofScores', 'ofProducts', 'ofMeans'] as const),
] as const;

/**
 * Errors of one number for each pair of a tile, [64 × 64]; meaningless where a row does not see a key. By technique: errors at worst
 * and their variances, of rows that err independently. `value` is dT, or P as dV has it; `unshifted` the same without the row's
 * shift; `sloped` P·slope, or 0. `known` is the rounding that is known, with the one that other factors would give; `systematic` the
 * part that does not average out, without the row's. `ofWeights` to `ofMeans` are its error, signed, where all scores of the forward
 * pass, all scores, all dP or all D are off by the same share of themselves.
 */
export type PairErrors = Blocks<(typeof errorBlocks)[number]>;
