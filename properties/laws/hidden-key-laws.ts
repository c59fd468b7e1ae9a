import {
  decodeToFloat64,
  encode,
  formats,
  round,
  tensorScales,
  type Bits,
  type FormatName,
} from '../../src/formats/index.js';
import { problemMask, problemShape, type Problem, type Tensor } from '../../src/problem/index.js';
import { randomValues } from '../problems/index.js';
import { arrangedViolation } from './compare-runs.js';
import { NotApplicable, type Law, type LawCase, type LawTools } from './law.js';
import { takesMasks } from './promised-problem.js';
import { replaceElements, specialBits, specialValuesOf } from './replace-elements.js';
import { indices, spreadChoice } from './transform-problem.js';

/** Queries that the choices of a law of hidden keys select among. */
const hiddenKeyChoices = 32;

/** The problem with something else at its hidden keys. */
type HiddenKeyChange = (
  problem: Problem,
  isHidden: (key: number) => boolean,
  choice: number,
) => Problem;

/**
 * Whether what stands at keys that a query does not see changes its results: the choice selects a
 * query, `change` replaces what stands at all keys that it does not see, in every head, and every row
 * that sees none of them must keep its bits.
 * @throws NotApplicable where the query sees every key
 */
async function hiddenKeysViolation(
  { problem, choice }: LawCase,
  tools: LawTools,
  change: HiddenKeyChange,
  words: string,
): Promise<string | null> {
  const shape = problemShape(problem);
  const mask = problemMask(problem, shape);
  const query = spreadChoice(choice, hiddenKeyChoices, shape.queries);
  const isSeen = new Uint8Array(shape.keys);
  for (let head = 0; head < shape.batch * shape.heads; head++)
    for (const { begin, end } of mask.ranges(head, query)) isSeen.fill(1, begin, end);
  if (!isSeen.includes(0)) throw new NotApplicable('the query sees every key');
  const isCompared = (row: number) =>
    mask
      .ranges(Math.floor(row / shape.queries), row % shape.queries)
      .every(({ begin, end }) => !isSeen.subarray(begin, end).includes(0));
  const transformed = change(problem, (key) => isSeen[key] === 0, choice);
  const comparison = { elements: isCompared, rows: isCompared };
  return arrangedViolation({ problem, transformed, comparison, words }, tools);
}

/**
 * The largest raw score, scaled or not, and the largest value that hidden keys are given: far beyond
 * all that is of use, and far enough from fp32's largest number that no sum of them overflows.
 */
const largest = 2 ** 100;

/** Hidden numbers are of a size of 1 for even choices, and huge for the others. */
const sizeChoices = 2;

/** The bits of a finite number: x, or the format's largest where that is beyond. */
function finiteBits(name: FormatName, x: number): Bits {
  const { maxFinite } = formats[name];
  return encode(formats[name], Math.min(Math.max(x, -maxFinite), maxFinite));
}

/** The largest finite magnitude among a tensor's elements, 1 at least. */
function magnitudeOf({ format, data }: Tensor): number {
  const finite = decodeToFloat64(data, formats[format]).filter(Number.isFinite);
  return finite.reduce((most, x) => Math.max(most, Math.abs(x)), 1);
}

/** Powers of two by which factors of hidden blocks are multiplied: products with elements stay as exact as they were. */
const factorExponents: readonly number[] = [-3, -2, -1, 1, 2, 3, 16];

/** The tensor with other factors for the blocks whose rows are all hidden, as far as their format has these. */
function withOtherFactors(
  tensor: Tensor,
  isHidden: (key: number) => boolean,
  random: ReturnType<typeof randomValues>,
): Tensor {
  const { scales, shape } = tensor;
  if (scales === undefined) return tensor;
  const axis = shape.length - 2;
  const factors = scales.factors.map((all) => {
    const [block, count, columns] = [all.blocks[axis], all.shape[axis], all.shape[axis + 1]];
    const isHiddenBlock = indices(count).map((index) =>
      indices(Math.min(block, shape[axis] - index * block), index * block).every(isHidden),
    );
    const values = all.values.map((factor, at) => {
      if (!isHiddenBlock[Math.floor(at / columns) % count]) return factor;
      const other = factor * 2 ** factorExponents[random.integer(0, factorExponents.length - 1)];
      return round(formats[all.format], other) === other ? other : factor;
    });
    return { ...all, values };
  });
  return { ...tensor, scales: tensorScales(tensor, factors) };
}

/** Other finite numbers in K and V at the hidden keys, and other factors of blocks of these alone. */
const otherNumbers: HiddenKeyChange = (problem, isHidden, choice) => {
  const { q, k, v, scale } = problem;
  const { qkDim } = problemShape(problem);
  const isHuge = choice % sizeChoices === 1;
  const hugeKey = largest / (magnitudeOf(q) * qkDim * Math.max(1, Math.abs(scale)));
  const random = randomValues(choice);
  const changed = (tensor: Tensor, huge: number) =>
    replaceElements(withOtherFactors(tensor, isHidden, random), ({ row }) =>
      isHidden(row)
        ? finiteBits(tensor.format, isHuge ? random.sign() * huge : random.normal())
        : null,
    );
  return { ...problem, k: changed(k, hugeKey), v: changed(v, largest) };
};

/** Other finite K and V at hidden keys, of usual sizes and huge ones, and other factors of blocks that are hidden whole. */
export const maskedKeys: Law = {
  statement: 'What stands at keys that a query does not see changes nothing of its O and LSE',
  reason:
    'A masked score is −∞ before the maximum is taken and weighs exactly 0; a mask that is off by a key, or a finite number in place of −∞, lets keys through.',
  strengths: ['bits'],
  usual: 'bits',
  choices: hiddenKeyChoices,
  notFor: (promises) => (takesMasks(promises) ? null : 'masks are not promised'),
  violation: (lawCase, tools) =>
    hiddenKeysViolation(
      lawCase,
      tools,
      otherNumbers,
      'with other numbers at keys that it does not see',
    ),
};

/** A NaN, or for some choices an infinity, in all of a tensor's rows at the hidden keys. */
function specialAtHidden(name: 'k' | 'v'): HiddenKeyChange {
  return (problem, isHidden, choice) => {
    const tensor: Tensor = problem[name];
    const values = specialValuesOf(tensor.format);
    const bits = specialBits(tensor.format, values[choice % values.length]);
    return {
      ...problem,
      [name]: replaceElements(tensor, ({ row }) => (isHidden(row) ? bits : null)),
    };
  };
}

const shared = {
  strengths: ['bits'],
  choices: hiddenKeyChoices,
  notFor: (promises) => (takesMasks(promises) ? null : 'masks are not promised'),
} satisfies Partial<Law>;

/**
 * NaNs and infinities in K at hidden keys. A kernel that replaces masked scores obeys; one that adds
 * −∞ to them makes NaNs, and must say `none`.
 */
export const maskedNanKeys: Law = {
  ...shared,
  statement: 'A NaN or an infinity in K at keys that a query does not see changes nothing of it',
  reason:
    'A mask replaces scores, whatever they are: memory beyond a sequence may hold anything. Adding −∞ to a NaN leaves a NaN.',
  usual: 'bits',
  violation: (lawCase, tools) =>
    hiddenKeysViolation(
      lawCase,
      tools,
      specialAtHidden('k'),
      'with NaN or ∞ in K at keys that it does not see',
    ),
};

/**
 * NaNs and infinities in V at hidden keys. The weight of a masked key is 0, but 0 · NaN is NaN: a
 * kernel on tensor cores multiplies whole tiles, so that a hidden NaN in a tile of which a row sees
 * some other key, or which it is taken through with its neighbours, reaches it. FlashAttention-4 is
 * one of these. So this law is not promised by default.
 */
export const maskedNanValues: Law = {
  ...shared,
  statement: 'A NaN or an infinity in V at keys that a query does not see changes nothing of it',
  reason:
    'Masked keys take no part in the product with V. Kernels that multiply whole tiles have 0 · NaN there, and do not promise it.',
  usual: 'none',
  violation: (lawCase, tools) =>
    hiddenKeysViolation(
      lawCase,
      tools,
      specialAtHidden('v'),
      'with NaN or ∞ in V at keys that it does not see',
    ),
};
