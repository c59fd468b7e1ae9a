import type { PrologueFault } from '../../prologue/prologue-fault.js';
import { prologueFaults } from '../../prologue/prologue-faults.js';
import { supposedPart, type SupposedPart, type Supposition } from '../supposition.js';
import { withParts, type WriteFault } from './write-fault.js';

function changed(of: SupposedPart, { change }: PrologueFault, right: Supposition): SupposedPart {
  const { part } = of;
  if (part.prologue === null) return of;
  const prologue = change(
    part,
    right.parts.map((one) => one.part),
  );
  return prologue === null ? of : supposedPart({ ...part, prologue }, of.terms);
}

/** Writers whose norm or rotation is wrong. */
export function* valueFaults(right: Supposition): Generator<WriteFault> {
  for (const fault of prologueFaults) {
    const { id, sentence } = fault;
    const supposed = withParts(right, (of) => changed(of, fault, right));
    if (supposed.parts.every((of, i) => of === right.parts[i])) continue;
    yield { id, sentence, supposed };
  }
}
