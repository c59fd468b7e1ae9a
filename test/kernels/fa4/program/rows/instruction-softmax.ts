import { fa4Formats } from '../../../../../kernels/fa4/configuration.js';
import { polynomialColumns } from '../../../../../kernels/fa4/exp2-tuning.js';
import type { TileSetting } from '../../../../../kernels/fa4/recipe.js';
import { exponentials, largestOfRow, maskRow, sumOfRow } from './instruction-steps.js';
import {
  createRegisters,
  immediateFloat32,
  register,
  registerRun,
  registersOf,
  rename,
  type Issuer,
  type WarpRegisters,
} from './issuer.js';
import {
  type FragmentRegisters,
  gatherRows,
  scatterRows,
  type SoftmaxIssues,
  type SoftmaxRegisters,
  type VisibleColumns,
} from '../../../../../kernels/fa4/program/rows/row-arithmetic.js';

const zero = immediateFloat32(0);
const one = immediateFloat32(1);
const minusInfinity = immediateFloat32(-Infinity);

/**
 * Computes, from the largest score so far and the maximum in use before, the maximum that stays in
 * use, into `maxima`, the subtrahend of the scores, into `subtracted`, and α. Source:
 * `update_row_max` in flash_attn/cute/softmax.py of Dao-AILab/flash-attention.
 */
function rowMaximum(
  { issue }: Issuer,
  { configuration, scale }: TileSetting,
  registers: Readonly<Record<'largest' | 'subtracted' | 'maxima' | 'alphas', WarpRegisters>>,
  isFirst: boolean,
): void {
  const { maxima, alphas } = registers;
  const threshold = Math.fround(configuration.rescaleThreshold);
  const scratch = createRegisters(2);
  const [predicate, lag] = [register(scratch, 0), register(scratch, 1)];
  const largest = register(registers.largest, 0);
  const subtracted = register(registers.subtracted, 0);
  const [maximum, alpha] = [register(maxima, 0), register(alphas, 0)];
  issue('setp.neu.f32', predicate, [largest, minusInfinity]);
  issue('selp.f32', subtracted, [largest, zero, predicate]);
  if (isFirst) {
    alphas.words.fill(0);
    rename(registers.largest, 0, maxima, 0);
    return;
  }
  issue('sub.rn.f32', lag, [maximum, subtracted]);
  issue('mul.rn.f32', lag, [lag, immediateFloat32(scale)]);
  issue('ex2.approx.ftz.f32', alpha, [lag]);
  if (!(threshold > 0)) {
    rename(registers.largest, 0, maxima, 0);
    return;
  }
  issue('setp.ge.f32', predicate, [lag, immediateFloat32(-threshold)]);
  issue('selp.f32', subtracted, [maximum, subtracted, predicate]);
  issue('selp.f32', maximum, [maximum, largest, predicate]);
  issue('selp.f32', alpha, [one, alpha, predicate]);
}

/**
 * The softmax of one block, instruction by instruction. Source: `softmax_step` in flash_fwd_sm100.py and
 * flash_attn/cute/softmax.py of Dao-AILab/flash-attention.
 */
export function instructionSoftmax(
  issuer: Issuer,
  setting: TileSetting,
  fragment: FragmentRegisters,
): (
  registers: SoftmaxRegisters,
  visible: VisibleColumns | null,
  isFirst: boolean,
) => SoftmaxIssues {
  const { configuration, format, scale } = setting;
  const { blockKeys, exp2, maxOffset } = configuration;
  const { weightConversion, bits } = fa4Formats[format];
  const { issue, issued } = issuer;
  const factor = immediateFloat32(scale);
  const exponentiate = exponentials(issuer, polynomialColumns(configuration), exp2.degree);

  /** x = s·scale + (offset − maximum·scale), in place. */
  function scaleRow(row: WarpRegisters, subtracted: WarpRegisters): void {
    const bias = createRegisters(2);
    issue('mul.rn.f32', register(bias, 0), [register(subtracted, 0), factor]);
    issue('sub.rn.f32', register(bias, 0), [immediateFloat32(maxOffset), register(bias, 0)]);
    rename(bias, 0, bias, 1);
    const x = registerRun(row, 0);
    issue('fma.rn.f32x2', x, [x, factor, register(bias, 0)], blockKeys / 2);
  }

  /** P as words of [32][words]; the high half receives the first operand of a conversion. */
  function convertRow(row: WarpRegisters): Uint32Array {
    const pairs = createRegisters(blockKeys / 2);
    const [left, right] = [registerRun(row, 0, 2), registerRun(row, 1, 2)];
    issue(weightConversion, registerRun(pairs, 0), [right, left], blockKeys / 2);
    if (bits === 16) return pairs.words;
    // Two results of 16 bits share a register; the hardware's conversion joins them.
    return Uint32Array.from(
      { length: pairs.words.length / 2 },
      (_, i) => pairs.words[2 * i] | (pairs.words[2 * i + 1] << 16),
    );
  }

  return (registers, visible, isFirst) => {
    const row = createRegisters(blockKeys);
    gatherRows(registers.scores, fragment.scores, row.words);
    const [maxima, sums] = [registersOf(registers.maxima), registersOf(registers.sums)];
    const alphas = registersOf(registers.alphas);
    const [largest, subtracted] = [createRegisters(1), createRegisters(1)];
    if (visible !== null) maskRow(issuer, row, visible);
    largestOfRow(issuer, row, isFirst ? null : maxima, largest);
    rowMaximum(issuer, setting, { largest, subtracted, maxima, alphas }, isFirst);
    const maximum = issued();
    scaleRow(row, subtracted);
    exponentiate(row);
    scatterRows(convertRow(row), fragment.weights, registers.weights);
    const weights = issued();
    let start: WarpRegisters | null = null;
    if (!isFirst) {
      start = createRegisters(2);
      issue('mul.rn.f32', register(start, 0), [register(sums, 0), register(alphas, 0)]);
    }
    sumOfRow(issuer, row, start, sums);
    return { maximum, weights, rowSum: issued() };
  };
}
