import { gradientQuantities } from '../../audit/index.js';
import { cacheNames, problemInputNames, scaleTensorNames } from '../../io/index.js';
import { quantities, type Quantity } from '../../problem/index.js';

/** Quantities that an output of a template, or of a contract, may be. */
export const templateQuantities: readonly Quantity[] = [...quantities, ...gradientQuantities];

/** The inputs that a contract may have: the tensors of problem files. */
export const contractInputs: readonly string[] = [
  ...['q', 'k', 'v'],
  ...cacheNames,
  ...problemInputNames,
  ...scaleTensorNames,
];

/** All tensors that a contract may have. */
export const contractNames: readonly string[] = [
  ...contractInputs,
  ...templateQuantities.map(({ name }) => name),
];
