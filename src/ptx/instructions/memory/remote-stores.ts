import type { AtomicOperation, AtomicType, BulkReduction } from '../../../machine/index.js';
import { elementsOf, slotsOf, wrongOperands } from '../operands.js';
import type { InstructionRequest, Unsupported } from '../request.js';
import { sharedAddresses } from '../shared-addresses.js';
import type { VisibleInstruction, VisibleOperation } from '../visible-instruction.js';
import { parseAccess, type Access } from './access.js';
import { reductionTypes } from './bulk-copies.js';
import { packLanes } from './lane-data.js';
import { lanePlaces } from './loads-and-stores.js';

const completion = 'mbarrier::complete_tx::bytes';

/** The reduction of `red.async`, null for `st.async`; undefined for another form. */
function reductionOf(opcode: string, { rest, type }: Access): BulkReduction | null | undefined {
  const [isAsync, how, operation, ...more] = rest;
  if (isAsync !== 'async' || how !== completion || more.length > 0) return undefined;
  if (opcode === 'st') return operation === undefined ? null : undefined;
  const name = operation as AtomicOperation;
  const element = type.name as AtomicType;
  return reductionTypes.shared[name]?.includes(element)
    ? { operation: name, type: element }
    : undefined;
}

function lower({
  opcode,
  modifiers,
  operands,
  site,
}: InstructionRequest): VisibleOperation | Unsupported {
  const access = parseAccess(modifiers);
  if ('unsupported' in access) return access;
  const reduction = reductionOf(opcode, access);
  if (reduction === undefined) return { unsupported: `.${modifiers.join('.')}` };
  const [address, source, barrier] = operands;
  if (address?.kind !== 'address' || source === undefined || barrier?.kind !== 'address')
    return wrongOperands('[a], b, [mbarrier]');
  const elements = elementsOf(source);
  if (elements.length !== access.vector) return wrongOperands(`${access.vector} elements`);
  return {
    isAligned: false,
    writes: [],
    reads: slotsOf(operands),
    lends: [],
    issue: function* (warp) {
      const bytes = elements.length * access.type.bytes;
      const data = packLanes(warp.registers, elements, access.type, warp.lanes);
      // Lanes that count on different barriers need an operation for each barrier.
      for (const group of sharedAddresses(warp, { modifiers }, barrier))
        yield {
          op: opcode === 'st' ? 'st.async' : 'red.async',
          destination: lanePlaces({ ...warp, lanes: group.lanes }, address, access, bytes),
          data,
          reduction,
          barrier: group.address,
          site,
        };
    },
  };
}

/** Stores and reductions into the shared memory of a CTA of the cluster, which count their bytes on a barrier there. */
export const remoteStoreRows: readonly VisibleInstruction[] = (
  [
    ['st.async', 'moves'],
    ['red.async', ['chooses', 'confirmed']],
  ] as const
).map(([name, meaning]) => ({
  name,
  meaning,
  evidence: 'isa',
  source: `PTX ISA, "${name}"`,
  lower,
}));
