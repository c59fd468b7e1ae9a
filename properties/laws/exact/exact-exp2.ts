import type { NumberFormat } from '../../../src/formats/index.js';
import type { RandomValues } from '../../problems/index.js';
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
import { indices } from '../transform-problem.js';
import { fillRows, valuedProblem, type ProblemValuer } from '../promised-problem.js';
import { worstCaseViolation } from '../within-bound.js';

/** Weights are 2^-7 and up, so that they are exact in every format, divided by their sum too. */
const lowest = -7;
/** Q's factor on scores; K's range holds 1/8 of every one of them, the coldest too. */
const ofQuery = 8;
const ofColdKey = -256;
/** Dot products of whole numbers up to this are exact in any accumulator. */
const largestDot = 2 ** 12;

/** A key of a tree of weights: its own is 2^exponent, that of the leaves below path[i] 2^-i. */
interface Leaf {
  readonly exponent: number;
  /** A number for each node from the root down. */
  readonly path: readonly number[];
}

/** Weights that sum to 1: one of 1, split in halves again and again until there are `count`. */
function splitTree(count: number, random: RandomValues): Leaf[] {
  const leaves: Leaf[] = [{ exponent: 0, path: [0] }];
  let node = 1;
  while (leaves.length < count) {
    const splittable = indices(leaves.length).filter((i) => leaves[i].exponent > lowest);
    if (splittable.length === 0) break;
    const at = splittable[random.integer(0, splittable.length - 1)];
    const { exponent, path } = leaves[at];
    const half = () => ({ exponent: exponent - 1, path: [...path, node++] });
    leaves.splice(at, 1, half(), half());
  }
  return leaves;
}

/** Weights 2^-m, 2^-m, 2^-(m-1), …, 1/2: those of any number of first keys sum to a power of two. */
function doublingChain(count: number): Leaf[] {
  const depth = Math.min(Math.max(count - 1, 0), -lowest);
  return indices(depth + 1).map((i) => ({
    exponent: i === 0 ? -depth : i - depth - 1,
    path: indices(depth + 1 - Math.max(i, 1)).concat(i === 0 ? [2 * depth + 1] : [depth + i]),
  }));
}

/** Significant bits that sums are given, and most hot keys. */
const mostBits = 6;
const mostHot = 32;

/** The hot keys of a head: in random places, or a chain in ascending ones. */
function hotLeaves(keys: number, blockKeys: number, random: RandomValues): Map<number, Leaf> {
  const positions = hotPositions(keys, blockKeys, random);
  const count = random.integer(1, Math.max(1, Math.min(mostHot, positions.length)));
  const isChain = random.integer(0, 1) === 1;
  const leaves = isChain ? doublingChain(count) : splitTree(count, random);
  const chosen = positions.slice(0, leaves.length);
  if (isChain) chosen.sort((a, b) => a - b);
  return new Map(chosen.map((key, i) => [key, leaves[i]]));
}

/**
 * A function of a leaf: its value in one column, 1 or 2 below one node of the tree, else 0 or 1; few
 * bits are left of the sums.
 */
function columnValues(leaves: readonly Leaf[], { precision }: NumberFormat, random: RandomValues) {
  if (leaves.length === 0) return () => 0;
  const { path } = leaves[random.integer(0, leaves.length - 1)];
  const depth = Math.min(random.integer(0, path.length - 1), Math.min(precision, mostBits) - 1);
  const node = path[depth];
  const rest = random.integer(0, 1);
  const sign = random.sign();
  return (leaf: Leaf) => sign * (leaf.path[depth] === node ? rest + 1 : rest);
}

/**
 * Scores are whole numbers, the first column of Q times that of K, plus one of the query alone from
 * the second: their weights relative to the largest are powers of two, and those of hot keys sum to 1.
 */
const valuer: ProblemValuer = ({ plain, format, random, promises }) => {
  const { batch, kvHeads, groupSize, queries, keys, qkDim, vDim } = plain.sizes;
  const heads = indices(batch * kvHeads).map(() => {
    const hot = hotLeaves(keys, promises.blockKeys, random);
    const leaves = [...hot.values()];
    return { hot, columns: indices(vDim).map(() => columnValues(leaves, format, random)) };
  });
  const queryColumns = [() => ofQuery, () => random.integer(-3, 3)];
  return {
    scale: Math.LN2,
    values: {
      q: fillRows(batch * kvHeads * groupSize, queries, qkDim, (_head, _query, column) =>
        column < queryColumns.length ? queryColumns[column]() : 0,
      ),
      k: fillRows(batch * kvHeads, keys, qkDim, (head, key, column) => {
        if (column > 1) return random.normal();
        if (column === 1) return 1;
        const leaf = heads[head].hot.get(key);
        return leaf === undefined ? ofColdKey : leaf.exponent / ofQuery;
      }),
      v: fillRows(batch * kvHeads, keys, vDim, (head, key, column) => {
        const { hot, columns } = heads[head];
        const leaf = hot.get(key);
        return leaf === undefined ? 16 * random.normal() : columns[column](leaf);
      }),
    },
  };
};

/** The elements of a run that must be exact: in rows whose scores are whole numbers of octaves. */
export function exactOfOctaves(
  run: Pick<KernelRun, 'problem' | 'shape' | 'outputs'>,
): ExactElements {
  const { problem } = run;
  const coldest = -coldNats(problem) * Math.LOG2E;
  const scoresOf = perVisibleKey(run, (query, key) => {
    let dot = 0;
    let size = 0;
    for (let t = 0; t < query.length; t++) {
      const product = query[t] * key[t];
      if (!Number.isInteger(product)) return NaN;
      dot += product;
      size += Math.abs(product);
    }
    return size <= largestDot ? dot : NaN;
  });
  return exactElements(run, (row): RowExponents | null => {
    if (problem.scale !== Math.LN2 || problem.softcap !== null) return null;
    const scores = scoresOf(row);
    const largest = scores.reduce((most, score) => Math.max(most, score), -Infinity);
    const exponents = scores.map((score) => {
      const exponent = score - largest;
      return exponent >= lowest ? exponent : exponent <= coldest ? -Infinity : NaN;
    });
    return exponents.length === 0 || exponents.some(Number.isNaN) ? null : exponents;
  });
}

/**
 * As `exact`, with weights that differ: the scale is ln 2, so that its product with log2 e is 1 in
 * fp32, and scores are whole numbers, so that exponents are and every weight is a power of two; those of
 * a row, cut like a tree, sum to a power of two, and so do those under each of its nodes, which is what
 * V picks out. A kernel obeys it to the last bit whose exponential is 2^x with whole x exact, as
 * the hardware's is and FlashAttention-4's polynomial of any degree (its constant term is 1), and that
 * multiplies by scale·log2 e at once. One that rounds ln 2 to fp32 and takes e^x does not, and does not
 * promise it.
 */
export const exactExp2: Law = {
  statement: 'Where weights are powers of two, the output is exact to the last bit',
  reason:
    'Whole exponents are where a range reduction goes wrong, and an exact power of two shows a digit that is wrong anywhere.',
  strengths: ['bits'],
  usual: 'none',
  choices: 1,
  without: ['bias', 'alibi', 'sink', 'dropout', 'descale'],
  notFor: (promises) =>
    promises.scales.includes('odd') ? null : 'a scale of ln 2 is not promised, which it needs',
  problems: (promises, drawn) =>
    valuedProblem(promises, { softcap: false, scales: ['odd'] }, valuer, drawn),
  violation: async ({ problem }, { run, judge }) => {
    const ran = await run(problem);
    return firstInexact(ran, exactOfOctaves(ran)) ?? worstCaseViolation(judge(ran));
  },
};
