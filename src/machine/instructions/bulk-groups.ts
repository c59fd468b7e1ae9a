import type { InstructionOf } from '../isa/index.js';
import type { Actor } from '../ordering/index.js';
import type { AsynchronousOperation, MachineState, WarpState } from '../state.js';
import { issue } from './issue.js';
import {
  alwaysReady,
  movesNothing,
  noDetails,
  nothing,
  type AsynchronousRecord,
  type InstructionRecords,
} from './record.js';
import { groupsToAwait, waitForOperations } from './wait-for-operations.js';

/** Instructions that store shared memory in bulk into a tensor or a piece of global memory. */
type Store = 'cp.async.bulk.tensor.global.shared' | 'cp.async.bulk.global';
type WaitGroup = 'cp.async.bulk.wait_group' | 'cp.async.bulk.wait_group.read';

/** The two parts of a bulk store: the bytes that it has read are kept until it writes. */
interface StoreParts {
  readonly read: () => void;
  readonly write: (actor: Actor) => void;
  /** Whether the write will leave every byte as it is; default unknown. */
  readonly repeats?: () => boolean;
}

/**
 * Issues a bulk store to global memory that is followed: it reads its source and writes some time after that. Both belong to the
 * open bulk group of the warp.
 */
export function issueStore<Op extends Store>(
  machine: MachineState,
  warp: WarpState,
  record: AsynchronousRecord<Op>,
  instruction: InstructionOf<Op>,
  { read, write, repeats = () => false }: StoreParts,
): void {
  const reader: AsynchronousRecord<Op> = { ...record, writes: nothing };
  const writer: AsynchronousRecord<Op> = {
    ...record,
    reads: nothing,
    writes: {
      ...record.writes,
      memory: (state, cta, store, visit) => {
        const isRepeated = repeats();
        record.writes.memory(state, cta, store, (area) =>
          visit(isRepeated ? { ...area, repeats: true } : area),
        );
      },
    },
    unit: { ...record.unit, operation: 'bulk-write', cycles: () => 0 },
  };
  const reading = issue(machine, warp, reader, instruction, { perform: read });
  const writing = issue(machine, warp, writer, instruction, {
    after: [reading],
    reaches: [],
    perform: write,
  });
  warp.openBulkGroup.push(reading, writing);
}

function awaited({ bulkGroups }: WarpState, pending: number): readonly AsynchronousOperation[][] {
  return bulkGroups.slice(0, groupsToAwait(bulkGroups, pending));
}

const isWrite = ({ kind }: AsynchronousOperation): boolean => kind === 'bulk-write';

/** wait_group: the warp knows that the stores of its groups are complete. */
const waitGroup = waitForOperations<WaitGroup>({
  name: 'bulk stores',
  operations: (warp, { pending }) => awaited(warp, pending).flat(),
  forget: (warp, { pending }) => {
    warp.bulkGroups = warp.bulkGroups.slice(groupsToAwait(warp.bulkGroups, pending));
  },
});

/** wait_group.read: the warp knows that they have read their sources; wait_group still waits for their writes. */
const waitGroupRead = waitForOperations<WaitGroup>({
  name: 'bulk stores',
  operations: (warp, { pending }) =>
    awaited(warp, pending)
      .flat()
      .filter((operation) => !isWrite(operation)),
  forget: (warp, { pending }) => {
    const read = awaited(warp, pending).length;
    const groups = warp.bulkGroups.map((group, i) => (i < read ? group.filter(isWrite) : group));
    // The oldest groups without unfinished stores need no counting.
    const first = groups.findIndex((group, i) => i >= read || group.length > 0);
    warp.bulkGroups = first === -1 ? [] : groups.slice(first);
  },
});

/**
 * Bulk groups. Source: PTX ISA, `cp.async.bulk.commit_group`, `cp.async.bulk.wait_group`.
 */
export const bulkGroupRecords: InstructionRecords<WaitGroup | 'cp.async.bulk.commit_group'> = {
  'cp.async.bulk.commit_group': {
    ...movesNothing,
    ready: alwaysReady,
    isWait: false,
    describe: noDetails,
    execute: (_machine, warp) => {
      warp.bulkGroups.push(warp.openBulkGroup);
      warp.openBulkGroup = [];
    },
  },
  'cp.async.bulk.wait_group': waitGroup,
  'cp.async.bulk.wait_group.read': waitGroupRead,
};
