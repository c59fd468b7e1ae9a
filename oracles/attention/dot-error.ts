import { tileRows, type Operand } from './operand.js';

/** Unit roundoff of fp64. */
const u = 2 ** -53;

/** n·u / (1 − n·u): the relative error of n roundings to nearest (Higham, Lemma 3.1). */
export function gamma(n: number): number {
  return (n * u) / (1 - n * u);
}

/**
 * Whether the fp64 dot products of one query with one tile of keys are exact: every product is a
 * multiple of 2^(qBit + kBit), so every partial sum is an integer of at most 53 bits times that.
 */
export function isExactDot(query: Operand, row: number, keys: Operand, tile: number): boolean {
  const unit = query.lowestBit[row] + keys.tileLowestBit[tile];
  if (unit === Infinity) return true;
  const total = keys.dim * query.largest[row] * keys.tileLargest[tile];
  return unit >= -1074 && total * (1 + 2 ** -50) <= 2 ** (unit + 53) && Number.isFinite(total);
}

/**
 * A bound on the error of the fp64 dot products of one query with one tile of keys. P = ‖q‖·max‖k‖
 * bounds every partial sum. Terms that are multiples of ulp(P) add up exactly; a term with lower
 * bits causes one rounding each time the partial sum then reaches a binade it had not reached since,
 * which together is at most ulp(P) ≤ 2^-52·P. So the error is at most their number times that, and
 * never more than γ(d)·P.
 */
export function dotError(query: Operand, row: number, keys: Operand, tile: number): number {
  if (isExactDot(query, row, keys, tile)) return 0;
  const { dim } = query;
  const largest = query.norm[row] * keys.tileNorm[tile];
  const underflow = dim * 2 ** -1073;
  if (!(largest < 2 ** 1000)) return Infinity;
  const ulpExponent = Math.floor(Math.log2(largest * (1 + 2 ** -40))) - 51;
  const threshold = ulpExponent - keys.tileLowestBit[tile];
  let inexactTerms = 0;
  const bits = query.tileBits(Math.floor(row / tileRows));
  const start = (row % tileRows) * dim;
  for (let at = start; at < start + dim; at++) if (bits[at] < threshold) inexactTerms++;
  return Math.min(inexactTerms * 2 ** -52, gamma(dim)) * largest + underflow;
}
