import type { Tensor } from '../../src/problem/index.js';
import type { Law } from '../suite/law.js';
import { hiddenKeyChoices, hiddenKeysViolation, type HiddenKeyChange } from './hidden-keys.js';
import { specialBits, specialValuesOf } from './special-patterns.js';
import { replaceElements } from './transform-problem.js';

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
  notFor: ({ causal, window }) => (causal || window ? null : 'masks are not promised'),
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
 * one of these. So nobody promises this who does not say so.
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
