import {
  fragmentRegisters,
  tensorCopyShapes,
  tensorMemoryShapes,
  type FragmentTransfer,
  type ReductionKind,
  type TensorCopyShape,
  type TensorMemoryShape,
} from '../../../machine/index.js';
import {
  elementsOf,
  integerConstant,
  slotsOf,
  uniformNumber,
  vectorSlots,
  wrongOperands,
} from '../operands.js';
import { ownOffset, sharedAddresses } from '../shared-addresses.js';
import type { InstructionRequest, ResolvedOperand, Unsupported } from '../request.js';
import type { IssuingWarp, VisibleInstruction, VisibleOperation } from '../visible-instruction.js';
import { packLanes } from '../memory/lane-data.js';
import { laneAddresses, lowestLane } from '../warp-registers.js';
import { matrixDescriptorOf } from './descriptors.js';
import { numberAfter } from './modifiers.js';

const source = (section: string) => `PTX ISA, TensorCore 5th Generation: ${section}`;
/** The type of the registers that a tcgen05.st stores. */
const wordType = { name: 'b32', bytes: 4, isSigned: false } as const;

function groupOf({ modifiers }: InstructionRequest): 1 | 2 {
  return numberAfter(modifiers, 'cta_group::') === 2 ? 2 : 1;
}

function aligned(
  { operands }: InstructionRequest,
  issue: VisibleOperation['issue'],
): VisibleOperation {
  return { isAligned: true, writes: [], reads: slotsOf(operands), lends: [], issue };
}

/** The address in tensor memory that all lanes share. */
function tensorAddress(warp: IssuingWarp, operand: ResolvedOperand): number {
  if (operand.kind !== 'address') return uniformNumber(warp, operand);
  return laneAddresses(warp.registers, operand, warp.lanes)[lowestLane(warp.lanes)];
}

function lowerAlloc(request: InstructionRequest): VisibleOperation | Unsupported {
  const { operands, site } = request;
  const [destination, columns] = operands;
  if (destination?.kind !== 'address' || columns === undefined)
    return wrongOperands('[shared], columns');
  return aligned(request, function* (warp) {
    const [{ address }] = sharedAddresses(warp, request, destination);
    yield {
      op: 'tcgen05.alloc',
      group: groupOf(request),
      columns: uniformNumber(warp, columns),
      destination: ownOffset(warp, address),
      site,
    };
  });
}

function lowerDealloc(request: InstructionRequest): VisibleOperation | Unsupported {
  const { operands, site } = request;
  const [address, columns] = operands;
  if (columns === undefined) return wrongOperands('an address and columns');
  return aligned(request, function* (warp) {
    yield {
      op: 'tcgen05.dealloc',
      group: groupOf(request),
      address: tensorAddress(warp, address),
      columns: uniformNumber(warp, columns),
      site,
    };
  });
}

/** The shape of a tcgen05.ld or tcgen05.st, or the missing feature. */
function transferOf(
  { modifiers }: InstructionRequest,
  halfOffset: ResolvedOperand | undefined,
): FragmentTransfer | Unsupported {
  const shapes = Object.keys(tensorMemoryShapes) as readonly TensorMemoryShape[];
  const shape = shapes.find((one) => modifiers.includes(one));
  const repeat = modifiers.find((one) => /^x[0-9]+$/.test(one));
  if (shape === undefined || repeat === undefined) return { unsupported: 'another shape' };
  if (modifiers.includes('spill')) return { unsupported: '.spill' };
  const isPacked = modifiers.includes('pack::16b') || modifiers.includes('unpack::16b');
  const transfer = { shape, repeat: Number(repeat.slice(1)), isPacked };
  if (shape !== '16x32bx2') return transfer;
  const distance = integerConstant(halfOffset);
  return distance === null
    ? wrongOperands('the distance of the halves as a constant')
    : { ...transfer, halfOffset: distance };
}

/** The reduction of `tcgen05.ld.red`; null for another load. */
function reductionOf({ modifiers }: InstructionRequest): ReductionKind | Unsupported | null {
  if (!modifiers.includes('red')) return null;
  const operation = (['min', 'max'] as const).find((one) => modifiers.includes(one));
  const type = (['u32', 's32', 'f32'] as const).find((one) => modifiers.includes(one));
  const hasRows = modifiers.includes('32x32b') || modifiers.includes('16x32bx2');
  if (operation === undefined || type === undefined || !hasRows)
    return { unsupported: `reductions by .${modifiers.join('.')}` };
  const [isAbsolute, passesNan] = [modifiers.includes('abs'), modifiers.includes('NaN')];
  if (type !== 'f32' && (isAbsolute || passesNan))
    return { unsupported: `.abs or .NaN of ${type}` };
  return { operation, type, isAbsolute, passesNan };
}

function lowerLoad(request: InstructionRequest): VisibleOperation | Unsupported {
  const { site } = request;
  const kind = reductionOf(request);
  if (kind !== null && 'unsupported' in kind) return kind;
  const [target, ...others] = request.operands;
  const [reduced, [address, halfOffset]] =
    kind === null ? [undefined, others] : [others[0], others.slice(1)];
  const reducedSlots = reduced?.kind === 'register' ? [reduced.slot] : [];
  if (kind !== null && reducedSlots.length === 0)
    return wrongOperands('registers, the register of the reduction, [address]');
  const slots = vectorSlots(target);
  const transfer = transferOf(request, halfOffset);
  if ('unsupported' in transfer) return transfer;
  if (slots === null || address?.kind !== 'address' || slots.length !== fragmentRegisters(transfer))
    return wrongOperands('registers and [address]');
  return {
    isAligned: true,
    writes: [],
    reads: slotsOf([address]),
    lends: [slots, reducedSlots].filter(({ length }) => length > 0),
    issue: function* (warp) {
      const fragment = warp.lend(slots);
      const from = tensorAddress(warp, address);
      const name = 'tensor memory';
      const reduction =
        kind === null ? {} : { reduction: { ...kind, into: warp.lend(reducedSlots) } };
      yield { op: 'tcgen05.ld', transfer, address: from, fragment, name, site, ...reduction };
    },
  };
}

function lowerStore(request: InstructionRequest): VisibleOperation | Unsupported {
  const { operands, site } = request;
  const address = operands[0];
  const stored = operands[operands.length - 1];
  const transfer = transferOf(request, operands[1]);
  if ('unsupported' in transfer) return transfer;
  const elements = stored === undefined ? [] : elementsOf(stored);
  if (address?.kind !== 'address' || elements.length !== fragmentRegisters(transfer))
    return wrongOperands('[address] and registers');
  return aligned(request, function* (warp) {
    const fragment = packLanes(warp.registers, elements, wordType, -1);
    const to = tensorAddress(warp, address);
    yield { op: 'tcgen05.st', transfer, address: to, fragment, name: 'tensor memory', site };
  });
}

function lowerCopy(request: InstructionRequest): VisibleOperation | Unsupported {
  const { modifiers, operands, site } = request;
  const [address, descriptor] = operands;
  // ptxas also accepts the multicast before the shape, as Triton 3.9 writes it.
  const said = modifiers.filter((one) => one !== 'cp' && !one.startsWith('cta_group::'));
  const shapes = Object.keys(tensorCopyShapes) as readonly TensorCopyShape[];
  const shape = shapes.find((one) => one.split('.').sort().join() === [...said].sort().join());
  if (shape === undefined) return { unsupported: 'another shape, or a change of format' };
  if (address?.kind !== 'address' || descriptor === undefined)
    return wrongOperands('[address], descriptor');
  return {
    ...aligned(request, function* (warp) {
      const decoded = matrixDescriptorOf(warp, descriptor, lowestLane(warp.lanes), 'k');
      if (!decoded.ok) {
        const { message } = decoded.violation;
        yield { op: 'report', kind: 'instruction-shape', message, site };
        return;
      }
      yield {
        op: 'tcgen05.cp',
        group: groupOf(request),
        shape,
        address: tensorAddress(warp, address),
        source: decoded.descriptor,
        name: 'scales',
        site,
      };
    }),
    isAligned: false,
  };
}

/** An instruction without operands. */
function plain(name: string, op: PlainOp, isAligned: boolean) {
  const row: VisibleInstruction = {
    name,
    meaning: 'none',
    evidence: 'isa',
    source: source(name),
    lower: (request) => ({
      ...aligned(request, function* () {
        yield { op, site: request.site };
      }),
      isAligned,
    }),
  };
  return row;
}

type PlainOp =
  | 'tcgen05.wait::ld'
  | 'tcgen05.wait::st'
  | 'tcgen05.fence::before_thread_sync'
  | 'tcgen05.fence::after_thread_sync';

const row = (
  name: string,
  meaning: VisibleInstruction['meaning'],
  lower: VisibleInstruction['lower'],
): VisibleInstruction => ({
  name,
  meaning,
  evidence: 'isa',
  source: source(name),
  lower,
});

/** Tensor memory: its allocation, loads and stores of registers, copies from shared memory, waits and fences. */
export const tensorMemoryRows: readonly VisibleInstruction[] = [
  row('tcgen05.alloc', 'decides', lowerAlloc),
  row('tcgen05.dealloc', 'none', lowerDealloc),
  row('tcgen05.relinquish_alloc_permit', 'none', (request) =>
    aligned(request, function* () {
      const group = groupOf(request);
      yield { op: 'tcgen05.relinquish_alloc_permit', group, site: request.site };
    }),
  ),
  row('tcgen05.ld', ['moves', 'chooses', 'is'], lowerLoad),
  row('tcgen05.st', 'moves', lowerStore),
  row('tcgen05.cp', 'moves', lowerCopy),
  plain('tcgen05.wait::ld', 'tcgen05.wait::ld', true),
  plain('tcgen05.wait::st', 'tcgen05.wait::st', true),
  plain('tcgen05.fence::before_thread_sync', 'tcgen05.fence::before_thread_sync', false),
  plain('tcgen05.fence::after_thread_sync', 'tcgen05.fence::after_thread_sync', false),
];
