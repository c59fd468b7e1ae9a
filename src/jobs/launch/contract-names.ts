import { gradientQuantities, outputGradient } from '../../audit/index.js';
import { cacheNames, problemInputNames, scaleTensorNames } from '../../io/index.js';
import {
  quantities,
  recurrentQuantityNames,
  recurrentTensorName,
  type Quantity,
  type RecurrentQuantityName,
} from '../../problem/index.js';
import type { ContractNames } from '../../ptx/launch/index.js';

/** Quantities that an output of a template, or of a contract, may be. */
export const templateQuantities: readonly Quantity[] = [...quantities, ...gradientQuantities];

/** The names of quantities that an output of a template may be given as: of attention, and of recurrences, with Mamba-2's own. */
export const templateNames: readonly string[] = [
  ...new Set([
    ...templateQuantities.map(({ name }) => name),
    ...recurrentQuantityNames,
    ...recurrentQuantityNames.map((name) => recurrentTensorName('mamba2', name)),
  ]),
];

/** The inputs that a contract may have: the tensors of problem files. */
export const contractInputs: readonly string[] = [
  ...['q', 'k', 'v'],
  ...cacheNames,
  ...problemInputNames,
  ...scaleTensorNames,
];

/** Whether a name is that of a gradient of Q, K or V. */
export function isGradient(name: string): boolean {
  return gradientQuantities.some((quantity) => quantity.name === name);
}

const [out, lse] = quantities;

/** What a backward kernel may be given beside Q, K and V: dO, Σ dO·O of each row, and O and the LSE of the forward. */
export const givenQuantities: readonly Quantity[] = [
  outputGradient,
  { ...lse, name: 'delta', prose: 'the row sums of dO∘O', label: 'delta' },
  out,
  lse,
];

/** The inputs that a contract of a recurrence may have, and the results that one may name. */
export const recurrentInputs = [
  ...(['q', 'k', 'v', 'g', 'beta'] as const),
  ...(['A_log', 'a', 'dt_bias', 'b', 'g_gamma'] as const),
  ...(['initial_state', 'cu_seqlens'] as const),
] as const;
export const recurrentResults = [
  'out',
  'final_state',
] as const satisfies readonly RecurrentQuantityName[];

/** All tensors that a contract may have. */
export const contractNames: ContractNames = {
  attention: [
    ...contractInputs,
    ...new Set([...templateQuantities, ...givenQuantities].map(({ name }) => name)),
  ],
  recurrent: [...recurrentInputs, ...recurrentResults],
};
