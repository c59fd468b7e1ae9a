import type { AttentionReference } from '../../oracles/index.js';
import { alarmDeviations, KernelBound } from '../../src/audit/index.js';
import { keysOf, problemMask } from '../../src/problem/index.js';
import { formatNumber } from '../../src/words/index.js';
import {
  alignedDown,
  featureKinds,
  alignedUp,
  type FullSizeRange,
  type ProblemConstraints,
  type SizeName,
} from '../problems/index.js';
import type { ProblemPromises } from './kernel-under-test.js';
import { NotApplicable, type KernelRun, type Law } from './law.js';
import {
  fillRows,
  type ProblemValuer,
  takesPositiveScales,
  valuedProblem,
} from './promised-problem.js';
import { admittedPremises, exactAttention, storingError } from './within-bound.js';
import { decodedRows, firstKeyRow } from './score-range.js';

/** Probability that a correct kernel fails on one problem. */
const falseAlarmRate = 1e-9;

/** Sizes with rows enough for a mean, as far as they are promised. */
const wantedSizes: Readonly<Partial<Record<SizeName, FullSizeRange>>> = {
  batch: { min: 2, max: 2 },
  kvHeads: { min: 2, max: 2 },
  groupSize: { min: 1, max: 1 },
  queries: { min: 64, max: 96 },
  keys: { min: 96, max: 160 },
  qkDim: { min: 32, max: 48 },
  vDim: { min: 16, max: 48 },
};

function constraintsOf({ sizes, dims, scales, multiples }: ProblemPromises): ProblemConstraints {
  const entries = Object.entries(wantedSizes).flatMap(([key, wanted]) => {
    const name = key as SizeName;
    if (dims !== null && (name === 'qkDim' || name === 'vDim')) return [];
    const { min = 1, max = Infinity } = sizes[name] ?? {};
    const multiple = multiples[name];
    const wantedLeast = alignedUp(Math.max(wanted.min, min), multiple);
    const least = wantedLeast <= max ? wantedLeast : alignedDown(max, multiple);
    const most = alignedDown(Math.min(wanted.max, max), multiple);
    return [[name, { min: least, max: Math.max(least, most) }] as const];
  });
  return {
    ...Object.fromEntries(entries),
    causal: false,
    window: false,
    softcap: false,
    scales: scales.includes('default') ? ['default'] : ['odd'],
    maximumElements: 2 ** 22,
  };
}

/**
 * V of one sign with all bits in use, and one of two kinds of weights: normal scores; or pairs of equal
 * keys, where each query is nearest to one pair, the others some nats below.
 */
const valuer: ProblemValuer = ({ plain, random }) => {
  const { batch, kvHeads, groupSize, queries, keys, qkDim, vDim } = plain.sizes;
  const heads = batch * kvHeads;
  const isPaired = random.integer(0, 1) === 1;
  const pairOf = (key: number) => (isPaired ? key - (key % 2) : key);
  const k = fillRows(heads, keys, qkDim, () => random.normal());
  const keyColumn = (head: number, key: number, column: number) =>
    k[(head * keys + pairOf(key)) * qkDim + column];
  const scale = plain.scale > 0 ? plain.scale : 1;
  const gap = random.integer(10, 16) / (scale * qkDim);
  const spread = random.integer(1, 2) / (scale * Math.sqrt(qkDim));
  const sign = random.sign();
  return {
    scale,
    values: {
      q: fillRows(heads * groupSize, queries, qkDim, (head, query, column) =>
        isPaired
          ? gap * keyColumn(Math.floor(head / groupSize), (2 * query) % Math.max(keys, 1), column)
          : spread * random.normal(),
      ),
      k: fillRows(heads, keys, qkDim, keyColumn),
      v: fillRows(heads, keys, vDim, () => sign * (1 + random.uniform())),
    },
  };
};

/** The keys of a row with the largest weight: the first, counted over all kv heads, and their number. */
interface LeadingKeys {
  readonly first: number;
  readonly count: number;
}

function leadingKeys({ problem, shape }: Pick<KernelRun, 'problem' | 'shape'>): LeadingKeys[] {
  const { qkDim, queries } = shape;
  const q = decodedRows(problem.q).values;
  const k = decodedRows(problem.k).values;
  const mask = problemMask(problem, shape);
  return Array.from({ length: shape.batch * shape.heads * queries }, (_, row) => {
    const visible = mask.ranges(Math.floor(row / queries), row % queries);
    const first = firstKeyRow(shape, row);
    let largest = -Infinity;
    let leading = { first: -1, count: 0 };
    for (const seen of keysOf(visible)) {
      const key = first + seen;
      let dot = 0;
      for (let t = 0; t < qkDim; t++) dot += q[row * qkDim + t] * k[key * qkDim + t];
      if (dot * problem.scale === largest) leading = { ...leading, count: leading.count + 1 };
      if (!(dot * problem.scale > largest)) continue;
      largest = dot * problem.scale;
      leading = { first: key, count: 1 };
    }
    return leading;
  });
}

/** The signed error of some rows, and the part of it that need not be symmetric around 0. */
interface Bias {
  readonly signed: number;
  readonly systematic: number;
}

/** The mean error of all rows, and the limit that it stays within if errors are independent. */
interface BiasTest {
  /** Mean over the rows of the error along O, relative to |O|. */
  readonly mean: number;
  readonly limit: number;
  readonly rows: number;
  /** Groups of rows whose errors are independent of one another's. */
  readonly groups: number;
}

/**
 * The mean signed error of a run's rows. Row by row the error along O, e = Σ sign(O)·(out − O) over the
 * columns, is divided by Σ|O|. Roundings to nearest of weights and outputs err as often up as down for
 * inputs drawn at random, where others need not: the sums of products, which tensor cores truncate, the
 * row sum and the operations on it, underflow, and in second order the rounding of P. So does the
 * rounding of weights that share nearly all of a row, unless the kernel is known to round them before
 * it divides, when they are 1: each 1/2 less a little, they round alike in all rows. Their worst cases,
 * as in `KernelBound`, are the systematic part s. Rows that have the same key in front share roundings:
 * they count as one, with the sums of their e and s. The rest, e − s', |s'| ≤ s, is independent and
 * symmetric, so that given its sizes only the signs are random: |Σ (e − s')| exceeds
 * z·√Σ (|e| + s)² with probability at most 2·exp(−z²/2) (Hoeffding 1963), whatever these sizes are.
 *
 * @param isDividedLast whether the kernel is known to round weights before it divides by their sum
 */
export function testBias(
  run: KernelRun,
  reference: AttentionReference,
  isDividedLast: boolean,
  promises: Pick<ProblemPromises, 'premises'>,
): BiasTest {
  const { problem, outputs, shape, out } = run;
  const { vDim } = shape;
  const { format } = outputs.out;
  const bound = new KernelBound(
    problem,
    reference,
    outputs.out.format,
    admittedPremises(run, promises),
  );
  const groups = new Map<number, Bias>();
  let rows = 0;
  const { out: exactOut } = reference.quantities;
  for (const [row, leading] of leadingKeys(run).entries()) {
    const ofRow = bound.row(row);
    const isShared = leading.count > 1 && !isDividedLast;
    const relative =
      ofRow.accumulation +
      ofRow.normalisation +
      (isShared ? ofRow.weightRounding : ofRow.weightRounding ** 2) +
      2 ** -39;
    let signed = 0;
    let systematic = 0;
    let size = 0;
    for (let i = row * vDim; i < (row + 1) * vDim; i++) {
      const exact = exactOut.values[i];
      signed += Math.sign(exact) * (out[i] - exact);
      systematic += relative * exactOut.magnitude[i] + ofRow.floor;
      // Cut off, every output is too small by up to an ulp.
      if (ofRow.declared.halves > 0) systematic += 2 * storingError(format, exact, 0);
      size += Math.abs(exact);
    }
    if (!(size > 0 && Number.isFinite(signed / size))) continue;
    const before = groups.get(leading.first) ?? { signed: 0, systematic: 0 };
    groups.set(leading.first, {
      signed: before.signed + signed / size,
      systematic: before.systematic + systematic / size,
    });
    rows++;
  }
  let sum = 0;
  let systematic = 0;
  let squares = 0;
  for (const group of groups.values()) {
    sum += group.signed;
    systematic += group.systematic;
    squares += (Math.abs(group.signed) + group.systematic) ** 2;
  }
  const random = alarmDeviations(1, falseAlarmRate) * Math.sqrt(squares);
  const count = Math.max(rows, 1);
  return { mean: sum / count, limit: (systematic + random) / count, rows, groups: groups.size };
}

/**
 * On problems with many rows and V of one sign, where weights are either all different or repeat
 * their maximum, the mean signed error is no more than chance and truncation explain: see
 * `testBias`. It is no matter of size: a bias of a tenth of an ulp, far within the bound of any element,
 * is found in some hundred rows.
 */
export const unbiased: Law = {
  statement: 'The error is as often up as down: its mean is no more than chance',
  reason:
    'Weights cut off in place of rounded, or sums rounded once more on the way, push outputs to one side by less than an ulp; a training run adds that up.',
  strengths: ['bound'],
  usual: 'bound',
  choices: 1,
  without: featureKinds,
  notFor: (promises) => {
    if (promises.causal === 'only')
      return 'it needs problems without a causal mask, which are not promised';
    return takesPositiveScales(promises) ? null : 'no positive scale is promised, which it needs';
  },
  problems: (promises) => valuedProblem(promises, constraintsOf(promises), valuer),
  violation: async ({ problem }, { run, promises }) => {
    const ran = await run(problem);
    const isDividedLast = promises.arithmetic(problem)?.maximum.kind === 'online';
    const { mean, limit, rows, groups } = testBias(
      ran,
      exactAttention(problem),
      isDividedLast,
      promises,
    );
    if (rows === 0) throw new NotApplicable('no row has an output that is finite and not zero');
    if (Math.abs(mean) <= limit) return null;
    return `over ${rows} rows, in ${groups} independent groups, outputs are ${formatNumber(Math.abs(mean) * 100)} % too ${mean > 0 ? 'large' : 'small'} on average; rounding explains ± ${formatNumber(limit * 100)} %`;
  },
};
