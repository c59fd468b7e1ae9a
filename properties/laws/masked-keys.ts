import {
  decodeToFloat64,
  encode,
  formats,
  type Bits,
  type FormatName,
} from '../../src/formats/index.js';
import { problemShape, type Tensor } from '../../src/problem/index.js';
import { randomValues } from '../problems/index.js';
import type { Law } from '../suite/law.js';
import { hiddenKeyChoices, hiddenKeysViolation, type HiddenKeyChange } from './hidden-keys.js';
import { replaceElements } from './transform-problem.js';

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

/** Other finite numbers in K and V at the hidden keys. */
const otherNumbers: HiddenKeyChange = (problem, isHidden, choice) => {
  const { q, k, v, scale } = problem;
  const { qkDim } = problemShape(problem);
  const isHuge = choice % sizeChoices === 1;
  const hugeKey = largest / (magnitudeOf(q) * qkDim * Math.max(1, Math.abs(scale)));
  const random = randomValues(choice);
  const changed = (tensor: Tensor, huge: number) =>
    replaceElements(tensor, ({ row }) =>
      isHidden(row)
        ? finiteBits(tensor.format, isHuge ? random.sign() * huge : random.normal())
        : null,
    );
  return { ...problem, k: changed(k, hugeKey), v: changed(v, largest) };
};

/** Other finite K and V at hidden keys, of usual sizes and huge ones. */
export const maskedKeys: Law = {
  statement: 'What stands at keys that a query does not see changes nothing of its O and LSE',
  reason:
    'A masked score is −∞ before the maximum is taken and weighs exactly 0; a mask that is off by a key, or a finite number in place of −∞, lets keys through.',
  strengths: ['bits'],
  usual: 'bits',
  choices: hiddenKeyChoices,
  notFor: ({ causal, window }) => (causal || window ? null : 'masks are not promised'),
  violation: (lawCase, tools) =>
    hiddenKeysViolation(
      lawCase,
      tools,
      otherNumbers,
      'with other numbers at keys that it does not see',
    ),
};
