import {
  createRegisters,
  immediateFloat32,
  register,
  registerRun,
  rename,
  type Issuer,
  type WarpRegisters,
} from './issuer.js';

/** A reduction begins with four accumulators, each of two columns. */
const accumulators = 4;
const stepColumns = 2 * accumulators;

const minusInfinity = immediateFloat32(-Infinity);

/**
 * The largest of a row's scores and of the maximum in use before, into register 0 of `largest`: four
 * maxima over pairs of columns, three operands at a time, then a tree. A NaN loses. Source:
 * `fmax_reduce` in flash_attn/cute/utils.py of Dao-AILab/flash-attention.
 *
 * @param before in its register 0; null in the first block, where −∞ takes its place. The kernel takes
 * nothing there, so that a row whose first scores are all NaN gets the maximum NaN, which the forward
 * models as −∞. O and the LSE are the same, since the row's sum and O are NaN from then on; its next α
 * is 0 instead of NaN.
 */
export function largestOfRow(
  { issue }: Issuer,
  row: WarpRegisters,
  before: WarpRegisters | null,
  largest: WarpRegisters,
): void {
  const lanes = createRegisters(accumulators);
  const initial = before === null ? minusInfinity : register(before, 0);
  issue('max.f32', register(lanes, 0), [initial, register(row, 0), register(row, 1)]);
  for (let i = 1; i < accumulators; i++)
    issue('max.f32', register(lanes, i), [register(row, 2 * i), register(row, 2 * i + 1)]);
  const steps = row.registersPerLane / stepColumns - 1;
  for (let i = 0; i < accumulators; i++) {
    const at = stepColumns + 2 * i;
    const pair = [registerRun(row, at, stepColumns), registerRun(row, at + 1, stepColumns)];
    issue('max.f32', register(lanes, i), [register(lanes, i), ...pair], steps);
  }
  issue('max.f32', register(lanes, 0), [register(lanes, 0), register(lanes, 1)]);
  const rest = [register(lanes, 2), register(lanes, 3)];
  issue('max.f32', register(largest, 0), [register(lanes, 0), ...rest]);
}

/**
 * The sum of a row's weights, into register 0 of `sum`: four packed accumulators over pairs of columns,
 * then a tree. Source: `fadd_reduce` in flash_attn/cute/utils.py of Dao-AILab/flash-attention.
 *
 * @param start what the first accumulator begins with, a pair in registers 0 and 1; null in the first
 * block: it begins with its first pair
 */
export function sumOfRow(
  { issue }: Issuer,
  row: WarpRegisters,
  start: WarpRegisters | null,
  sum: WarpRegisters,
): void {
  const lanes = createRegisters(stepColumns);
  const pairAt = (i: number) => register(lanes, 2 * i);
  rename(row, 0, lanes, 0, stepColumns);
  if (start !== null) issue('add.rn.f32x2', pairAt(0), [register(start, 0), pairAt(0)]);
  const steps = row.registersPerLane / stepColumns - 1;
  for (let i = 0; i < accumulators; i++) {
    const pairs = registerRun(row, stepColumns + 2 * i, accumulators);
    issue('add.rn.f32x2', pairAt(i), [pairAt(i), pairs], steps);
  }
  issue('add.rn.f32x2', pairAt(0), [pairAt(0), pairAt(1)]);
  issue('add.rn.f32x2', pairAt(2), [pairAt(2), pairAt(3)]);
  issue('add.rn.f32x2', pairAt(0), [pairAt(0), pairAt(2)]);
  issue('add.rn.f32', register(sum, 0), [register(lanes, 0), register(lanes, 1)]);
}
