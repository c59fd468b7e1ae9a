import {
  coldNats,
  exactElements,
  firstInexact,
  hotPositions,
  perVisibleKey,
  type ExactElements,
  type RowExponents,
} from '../exact-rows.js';
import type { KernelRun, Law } from '../law.js';
import {
  fillRows,
  type ProblemValuer,
  takesPositiveScales,
  valuedProblem,
} from '../promised-problem.js';
import { worstCaseViolation } from '../within-bound.js';

/** Scales below this would need raw scores beyond the range of fp16. */
const smallestScale = 1 / 16;
/** Bits of whole numbers that sums are kept in, at most; those of the format where it has fewer. */
const mostBits = 8;

/**
 * Keys of zeros, which are hot: score 0, and keys that are cold: Q positive and K negative throughout,
 * so large that every score is below −512 (−1024 in fp64). A power of two of keys is hot. V holds small
 * whole numbers of one sign in each column there, and any numbers where keys are cold.
 */
const valuer: ProblemValuer = ({ plain, format, random, promises }) => {
  const { batch, kvHeads, groupSize, queries, keys, qkDim, vDim } = plain.sizes;
  const scale = plain.scale >= smallestScale ? plain.scale : 1;
  const nats = format.name === 'fp64' ? 1024 : 512;
  const exponent = Math.ceil(Math.log2(nats / (scale * qkDim)));
  const ofQuery = 2 ** Math.ceil(exponent / 2);
  const ofKey = -(2 ** Math.floor(exponent / 2));
  const bits = Math.min(format.precision, mostBits);
  const isHot: boolean[][] = [];
  const largest: number[] = [];
  for (let head = 0; head < batch * kvHeads; head++) {
    const positions = hotPositions(keys, promises.blockKeys, random);
    const log2 = Math.min(
      random.integer(0, bits),
      Math.floor(Math.log2(Math.max(positions.length, 1))),
    );
    const hot = new Set(positions.slice(0, 2 ** log2));
    isHot.push(Array.from({ length: keys }, (_, key) => hot.has(key)));
    largest.push(2 ** (bits - log2));
  }
  const significand = () => 1 + random.uniform();
  const signs = fillRows(batch * kvHeads, 1, vDim, () => random.sign());
  return {
    scale,
    values: {
      q: fillRows(batch * kvHeads * groupSize, queries, qkDim, () => ofQuery * significand()),
      k: fillRows(batch * kvHeads, keys, qkDim, (head, key) =>
        isHot[head][key] ? random.sign() * 0 : ofKey * significand(),
      ),
      v: fillRows(batch * kvHeads, keys, vDim, (head, key, column) =>
        isHot[head][key]
          ? signs[head * vDim + column] * random.integer(1, largest[head])
          : random.sign() * 16 * significand(),
      ),
    },
  };
};

/** The elements of a run that must be exact: in rows of hot and cold keys, whatever the problem. */
export function exactOfHotKeys(
  run: Pick<KernelRun, 'problem' | 'shape' | 'outputs'>,
): ExactElements {
  const { problem } = run;
  const coldest = -coldNats(problem);
  const exponentsOf = perVisibleKey(run, (query, key) => {
    let dot = 0;
    let isZero = true;
    for (let t = 0; t < query.length; t++) {
      const product = query[t] * key[t];
      isZero &&= product === 0;
      dot += product;
    }
    if (isZero) return 0;
    return problem.scale * dot <= coldest ? -Infinity : NaN;
  });
  return exactElements(run, (row): RowExponents | null => {
    const exponents = exponentsOf(row);
    return exponents.some(Number.isNaN) || !exponents.includes(0) || problem.softcap !== null
      ? null
      : exponents;
  });
}

/**
 * Problems of which every operation of a correct kernel is exact, whatever its order: scores are 0 or
 * so low that their weights are zero; a power of two of visible keys has score 0, hence weight 1 and a
 * row sum without rounding, whose reciprocal is exact too; sums of their values are small whole
 * numbers, and their quotients by the sum are in the output's format. The hot keys lie in
 * some blocks only: blocks without one, first or last in the kernel's order, have a maximum far below 0
 * and sums that a rescale must clear altogether. To the last bit, O must be the exact quotient wherever
 * `exactElements` finds it to be one; O and LSE are held to their worst-case bounds in any case. A kernel whose
 * division errs for powers of two, or that combines splits in fp32, keeps the law where outputs have 16
 * bits or fewer, since what it is off by is less than half an ulp of them; with longer outputs it
 * promises the bound.
 */
export const exact: Law = {
  statement: 'Where no operation rounds, the output is exact to the last bit',
  reason:
    'No rounding can be blamed: a wrong digit anywhere, in whichever order a kernel works, changes the result.',
  strengths: ['bits', 'bound'],
  usual: 'bits',
  choices: 1,
  without: ['bias', 'alibi', 'sink', 'dropout', 'descale'],
  notFor: (promises) =>
    takesPositiveScales(promises) ? null : 'no positive scale is promised, which it needs',
  problems: (promises, drawn) =>
    valuedProblem(
      promises,
      {
        softcap: false,
        scales: promises.scales.filter((kind) => kind === 'default' || kind === 'odd'),
      },
      valuer,
      drawn,
    ),
  violation: async ({ problem }, { run, judge, strength }) => {
    const ran = await run(problem);
    const inexact = strength === 'bits' ? firstInexact(ran, exactOfHotKeys(ran)) : null;
    return inexact ?? worstCaseViolation(judge(ran));
  },
};
