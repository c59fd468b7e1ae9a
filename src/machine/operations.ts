import {
  siteOf,
  type AsynchronousOperation,
  type CtaState,
  type MachineState,
  type WarpState,
} from './state.js';
import type { OperationOrder } from './order-tracker.js';

/** What an instruction says of an operation that it issues. */
export type OperationRequest = Pick<AsynchronousOperation, 'kind' | 'unit' | 'cycles'> &
  Partial<Pick<AsynchronousOperation, 'after' | 'fragment' | 'latency'>> & {
    /** Carries it out, when the scheduler chooses. */
    readonly perform: (operation: AsynchronousOperation) => void;
    /** Operations that it is ordered after in the sense of the memory model; default `after`. */
    readonly predecessors?: readonly (OperationOrder | null)[];
    /** The CTAs whose memory or barriers it reaches, and which must not end before; default its own. */
    readonly reaches?: readonly CtaState[];
  };

/** Issues an operation of the warp's current instruction; it is performed some time from now on. */
export function issue(
  machine: MachineState,
  warp: WarpState,
  request: OperationRequest,
): AsynchronousOperation {
  const { kind, unit, cycles, after = [], fragment = null, latency = 0, perform } = request;
  const { predecessors = after.map(({ order }) => order), reaches = [warp.cta] } = request;
  // Written out: this is made for every tcgen05 instruction, and spreading costs more than the rest.
  const operation: AsynchronousOperation = {
    kind,
    warp,
    unit,
    cycles,
    after,
    fragment,
    latency,
    name: warp.current?.op ?? kind,
    site: siteOf(warp.current),
    instruction: warp.current,
    perform: () => perform(operation),
    order: machine.tracker?.begin(warp, kind, predecessors, reaches) ?? null,
    issuedAt: machine.now,
    isDone: false,
    doneAt: 0,
    chosenAs: 'operation',
    time: 0,
  };
  if (machine.occupancy !== null) operation.time = machine.occupancy.reserve(operation);
  machine.pending.push(operation);
  return operation;
}
