import type { OrderFindings } from './order-findings.js';
import { tensorMemoryColumns } from './memory/index.js';
import { clockIncludes, type AccessTable, type Clock } from './ordering/index.js';
import type { MachineState } from './state.js';

/** Which allocation the columns of one CTA's tensor memory belong to. */
export interface TensorAllocations {
  /** @param stamp of the tcgen05.alloc, in the table of accesses */
  readonly allocate: (firstColumn: number, columns: number, stamp: number) => void;
  /**
   * Reports an access to a column that the allocation is not known to come before: in another schedule
   * the column may not be allocated yet.
   * @param clock of the access, its stamp last
   */
  readonly check: (
    machine: MachineState,
    cta: number,
    clock: Clock,
    column: number,
    stamp: number,
  ) => void;
}

/** No column has been allocated yet. */
export function createTensorAllocations(
  accesses: AccessTable,
  findings: OrderFindings,
): TensorAllocations {
  // By column; 0 before its first allocation.
  const stamps = new Int32Array(tensorMemoryColumns);
  return {
    allocate: (firstColumn, columns, stamp) =>
      void stamps.fill(stamp, firstColumn, firstColumn + columns),
    check: (machine, cta, clock, column, stamp) => {
      const allocation = stamps[column];
      if (allocation === 0) return;
      if (clockIncludes(clock, accesses.chainOf(allocation), accesses.timeOf(allocation))) return;
      const message = `tensor memory, column ${column}: used in no order with its allocation`;
      findings.unordered(machine, 'race', cta, message, [allocation, stamp]);
    },
  };
}
