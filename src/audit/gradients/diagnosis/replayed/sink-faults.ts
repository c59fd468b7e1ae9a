import { attentionOracle } from '../../../../../oracles/index.js';
import type { FailedGradients } from '../failed-gradients.js';
import { without } from './mask-faults.js';
import type { ReplayedFault } from './replayed-fault.js';

/** Backward passes whose P leaves out the sink: its row sums are those of the keys alone. D is of the stored O, or of that P. */
export function* sinkFaults({ problem }: FailedGradients): Generator<ReplayedFault> {
  if (problem.sink === undefined) return;
  const { denominator } = attentionOracle(without(problem, ['sink', 'stored']));
  yield {
    id: 'sink-missing',
    sentence:
      'the sink is left out of the row sums by which the backward pass makes P, as where it reads an LSE without the sink',
    change: { logarithm: denominator },
  };
}
