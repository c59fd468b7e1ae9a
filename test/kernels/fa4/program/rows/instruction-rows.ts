import {
  naturalLogOf2,
  roundingConversions,
  warpRows,
} from '../../../../../kernels/online-softmax/units.js';
import type { TileSetting } from '../../../../../kernels/fa4/recipe.js';
import { instructionSoftmax } from './instruction-softmax.js';
import {
  createIssuer,
  createRegisters,
  immediateFloat32,
  register,
  registerRun,
  registersOf,
  rename,
  type WarpRegisters,
} from './issuer.js';
import {
  checkRegisters,
  checkSoftmaxRegisters,
  fragmentRegisters,
  type FragmentRegisters,
  pairedColumns,
  type RowArithmetic,
} from '../../../../../kernels/fa4/program/rows/row-arithmetic.js';

const zero = immediateFloat32(0);
const one = immediateFloat32(1);
const minusInfinity = immediateFloat32(-Infinity);

/** Registers with a copy of words, which stay as they are. */
function copyOf(words: Uint32Array): WarpRegisters {
  return registersOf(Uint32Array.from(words));
}

/** The same number of each lane in both registers of a pair. */
function pairOf(words: Uint32Array): WarpRegisters {
  const [single, pair] = [copyOf(words), createRegisters(2)];
  rename(single, 0, pair, 0);
  rename(single, 0, pair, 1);
  return pair;
}

/**
 * The rows' arithmetic instruction by instruction on the machine's own arithmetic: the definition, for
 * reading and for checking, of the results that `createWebAssemblyRows` computes much faster. The
 * instructions that it reports as issued are those that it has executed.
 *
 * @param parts division of scores and weights into registers; default one part each
 * @throws RequestError for parts that do not make up a row
 */
export function createInstructionRows(
  setting: TileSetting,
  parts: Partial<FragmentRegisters> = {},
): RowArithmetic {
  const { configuration, scale } = setting;
  const { maxOffset, lseFused, outFormat, descale } = configuration;
  const issuer = createIssuer();
  const { issue, issued } = issuer;
  const softmax = instructionSoftmax(issuer, setting, fragmentRegisters(setting, parts));
  const [factor, offset] = [immediateFloat32(scale), immediateFloat32(maxOffset)];

  return {
    softmax: (registers, visible, isFirst) => {
      checkSoftmaxRegisters(registers, visible, setting);
      return softmax(registers, visible, isFirst);
    },
    needsRescale: (alphas) => {
      checkRegisters('alphas', alphas, warpRows);
      const predicate = createRegisters(1);
      issue('setp.lt.f32', register(predicate, 0), [register(copyOf(alphas), 0), one]);
      issuer.count('vote.sync.ballot.b32');
      const ballot = predicate.words.reduce((bits, is, lane) => bits | (is << lane), 0);
      return { ballot: ballot >>> 0, issues: issued() };
    },
    rescale: (out, alphas) => {
      const columns = pairedColumns('out', out);
      checkRegisters('alphas', alphas, warpRows);
      const product = copyOf(out);
      const pairs = registerRun(product, 0);
      issue('mul.rn.f32x2', pairs, [pairs, register(pairOf(alphas), 0)], columns / 2);
      out.set(product.words);
      return issued();
    },
    normalisers: (sums) => {
      checkRegisters('sums', sums, warpRows);
      const [sum, predicate, factors] = [copyOf(sums), createRegisters(1), createRegisters(1)];
      const at = register(factors, 0);
      issue('setp.equ.f32', register(predicate, 0), [register(sum, 0), zero]);
      issue('selp.f32', at, [one, register(sum, 0), register(predicate, 0)]);
      issue('rcp.approx.ftz.f32', at, [at]);
      issue('mul.rn.f32', at, [at, immediateFloat32(descale.v)]);
      return { factors: factors.words, issues: issued() };
    },
    normalise: (out, factors, words) => {
      const columns = pairedColumns('out', out);
      checkRegisters('factors', factors, warpRows);
      checkRegisters('words', words, out.length / 2);
      const product = copyOf(out);
      const pairs = registerRun(product, 0);
      issue('mul.rn.f32x2', pairs, [pairs, register(pairOf(factors), 0)], columns / 2);
      const rounded = createRegisters(columns / 2);
      const [left, right] = [registerRun(product, 0, 2), registerRun(product, 1, 2)];
      issue(roundingConversions[outFormat], registerRun(rounded, 0), [right, left], columns / 2);
      words.set(rounded.words);
      return issued();
    },
    logSumExp: (maxima, sums) => {
      checkRegisters('maxima', maxima, warpRows);
      checkRegisters('sums', sums, warpRows);
      const [maximum, sum] = [register(copyOf(maxima), 0), register(copyOf(sums), 0)];
      const scratch = createRegisters(2);
      const [predicate, scaled] = [register(scratch, 0), register(scratch, 1)];
      const lse = createRegisters(1);
      const at = register(lse, 0);
      issue('setp.equ.f32', predicate, [sum, zero]);
      issue('lg2.approx.ftz.f32', at, [sum]);
      issue('sub.rn.f32', at, [at, offset]);
      if (lseFused) issue('fma.rn.f32', at, [maximum, factor, at]);
      else {
        issue('mul.rn.f32', scaled, [maximum, factor]);
        issue('add.rn.f32', at, [scaled, at]);
      }
      issue('mul.rn.f32', at, [at, immediateFloat32(naturalLogOf2)]);
      issue('selp.f32', at, [minusInfinity, at, predicate]);
      return { lse: lse.words, issues: issued() };
    },
  };
}
