import { madeGateFaults } from '../gates/faults.js';
import { mamba2Faults } from '../mamba2/faults.js';
import { chunkFaults } from './chunk-faults.js';
import { gradientFault, type RecurrentFault } from './fault.js';
import { gateFaults } from './gate-faults.js';
import { gradientFaults } from './gradient-faults.js';
import { inputFaults } from './input-faults.js';
import { stateFaults } from './state-faults.js';
import { strengthFaults } from './strength-faults.js';

export type { Execute, FaultSetting, FaultyRun, RecurrentFault } from './fault.js';

const forwardFaults: readonly RecurrentFault[] = [
  ...gateFaults,
  ...strengthFaults,
  ...inputFaults,
  ...stateFaults,
  ...chunkFaults,
];

/** Faults that a backward pass is known to have beside a forward pass that is right. */
const alsoOfGradients = [
  'decay-missing',
  'gates-of-next-token',
  'gates-summed-over-part',
  'gates-of-first-of-2-parts',
  'beta-missing',
  'state-not-reset',
  'state-bf16',
];

/** Faults that kernels of linear attention have had, or may have: those of all results, then those of gradients alone. */
export const recurrentFaults: readonly RecurrentFault[] = [
  ...forwardFaults,
  ...forwardFaults
    .filter(({ id }) => alsoOfGradients.includes(id))
    .map((fault) =>
      gradientFault({
        ...fault,
        id: `${fault.id}-in-gradients`,
        sentence: `in gradients alone, ${fault.sentence}`,
      }),
    ),
  ...gradientFaults,
];

/** The fault of an id, those of Mamba-2 and of gates that are made among them; undefined for none. */
export function findRecurrentFault(id: string): RecurrentFault | undefined {
  return [...recurrentFaults, ...mamba2Faults, ...madeGateFaults].find((fault) => fault.id === id);
}
