import {
  type AtomicOperation,
  type AtomicType,
  type BulkReduction,
  type InstructionOf,
  type LanePlaces,
} from '../../../machine/index.js';
import type {
  AddressOperand,
  InstructionRequest,
  ResolvedOperand,
  Unsupported,
} from '../request.js';
import { ranksOf } from '../shared-addresses.js';
import type { IssuingWarp, VisibleInstruction, VisibleOperation } from '../visible-instruction.js';
import { hasLane, laneAddresses, operandNumber } from '../warp-registers.js';
import { slotsOf, wrongOperands } from '../operands.js';

const warpLanes = 32;
const bulkAlignment = 16;

/** The form of a bulk copy, without its operands. */
interface BulkForm {
  readonly to: 'shared::cta' | 'shared::cluster' | 'global';
  readonly from: 'shared::cta' | 'global';
  readonly reduction: BulkReduction | null;
  readonly isMulticast: boolean;
  readonly hasPolicy: boolean;
}

/** Directions of copies and reductions, as `to from completion`. */
const directions: Readonly<Record<string, Pick<BulkForm, 'to' | 'from'>>> = {
  'shared::cta global mbarrier::complete_tx::bytes': { to: 'shared::cta', from: 'global' },
  'shared::cluster global mbarrier::complete_tx::bytes': { to: 'shared::cluster', from: 'global' },
  'shared::cluster shared::cta mbarrier::complete_tx::bytes': {
    to: 'shared::cluster',
    from: 'shared::cta',
  },
  'global shared::cta bulk_group': { to: 'global', from: 'shared::cta' },
};

const hint = 'L2::cache_hint';
const multicast = 'multicast::cluster';

/** The form that the modifiers after `cp.async.bulk` or `cp.reduce.async.bulk` state. */
function formOf({ modifiers }: InstructionRequest): BulkForm | Unsupported {
  const isReduction = modifiers[0] === 'reduce';
  const [to, from, completion, ...rest] = modifiers.slice(isReduction ? 3 : 2);
  const direction = directions[`${to} ${from} ${completion}`];
  const unsupported = { unsupported: `.${modifiers.join('.')}` };
  if (direction === undefined || (isReduction && direction.from === 'global')) return unsupported;
  const flags = new Set<string>(rest.filter((one) => one === hint || one === multicast));
  const said = rest.filter((one) => !flags.has(one) && one !== 'noftz');
  const form = {
    ...direction,
    hasPolicy: flags.has(hint),
    isMulticast: flags.has(multicast),
  };
  if (!isReduction) return said.length === 0 ? { ...form, reduction: null } : unsupported;
  const [operation, type] = said as [AtomicOperation, AtomicType];
  const types = reductionTypes[direction.to === 'global' ? 'global' : 'shared'][operation];
  if (said.length !== 2 || !types?.includes(type)) return unsupported;
  return { ...form, reduction: { operation, type } };
}

/** The element types of each reduction, by its destination. Source: PTX ISA, `cp.reduce.async.bulk`, and `red.async` for shared memory. */
export const reductionTypes: Readonly<
  Record<'shared' | 'global', Readonly<Partial<Record<AtomicOperation, readonly AtomicType[]>>>>
> = {
  shared: {
    add: ['u32', 's32', 'u64'],
    min: ['u32', 's32'],
    max: ['u32', 's32'],
    inc: ['u32'],
    dec: ['u32'],
    and: ['b32'],
    or: ['b32'],
    xor: ['b32'],
  },
  global: {
    add: ['u32', 's32', 'u64', 'f32', 'f64', 'f16', 'bf16'],
    min: ['u32', 's32', 'u64', 's64', 'f16', 'bf16'],
    max: ['u32', 's32', 'u64', 's64', 'f16', 'bf16'],
    inc: ['u32'],
    dec: ['u32'],
    and: ['b32', 'b64'],
    or: ['b32', 'b64'],
    xor: ['b32', 'b64'],
  },
};

/** The operands of a bulk copy, as in the text. */
interface BulkOperands {
  readonly destination: AddressOperand;
  readonly source: AddressOperand;
  readonly size: ResolvedOperand;
  readonly barrier: AddressOperand | null;
  readonly mask: ResolvedOperand | null;
}

function operandsOf(
  given: readonly ResolvedOperand[],
  { to, isMulticast, hasPolicy }: BulkForm,
): BulkOperands | null {
  const [destination, source, size, ...rest] = given;
  const barrier = to === 'global' ? null : rest.shift();
  const mask = isMulticast ? rest.shift() : null;
  const isComplete =
    destination?.kind === 'address' && source?.kind === 'address' && size !== undefined;
  if (!isComplete || mask === undefined || rest.length !== Number(hasPolicy)) return null;
  if (barrier === null) return { destination, source, size, barrier, mask };
  return barrier?.kind === 'address' ? { destination, source, size, barrier, mask } : null;
}

/** The place of one lane. */
function placeOf(
  { registers, lanes }: IssuingWarp,
  operand: AddressOperand,
  { space, lane, bytes }: { space: LanePlaces['space']; lane: number; bytes: number },
): LanePlaces {
  const addresses = laneAddresses(registers, operand, lanes).map((address, one) =>
    one === lane ? address : -1,
  );
  return { space, addresses, bytes, alignment: bulkAlignment };
}

function lowerBulkCopy(request: InstructionRequest): VisibleOperation | Unsupported {
  const form = formOf(request);
  if ('unsupported' in form) return form;
  const operands = operandsOf(request.operands, form);
  if (operands === null) return wrongOperands('[to], [from], size, and [mbarrier] or nothing');
  return {
    isAligned: false,
    writes: [],
    reads: slotsOf(request.operands),
    lends: [],
    // Each lane copies for itself; but lanes that store the same place to the same target write the same bytes, and are one store.
    issue: function* (warp) {
      const stored = new Set<string>();
      for (let lane = 0; lane < warpLanes; lane++) {
        if (!hasLane(warp.lanes, lane)) continue;
        const copy = copyOf(warp, form, operands, lane, request.site);
        const places = [copy.source, copy.destination].map(
          ({ addresses, bytes }) => `${addresses[lane]} ${bytes}`,
        );
        const isStore = copy.op === 'cp.async.bulk.global' && copy.reduction === null;
        if (isStore && stored.has(places.join())) continue;
        stored.add(places.join());
        yield copy;
      }
    },
  };
}

function copyOf(
  warp: IssuingWarp,
  { to, from, reduction }: BulkForm,
  { destination, source, size, barrier, mask }: BulkOperands,
  lane: number,
  site: string,
): InstructionOf<'cp.async.bulk.shared' | 'cp.async.bulk.global'> {
  const { registers } = warp;
  const bytes = operandNumber(registers, size, lane);
  const copy = {
    source: placeOf(warp, source, { space: from, lane, bytes }),
    destination: placeOf(warp, destination, { space: to, lane, bytes }),
    reduction,
    site,
  };
  if (barrier === null) return { op: 'cp.async.bulk.global', ...copy };
  return {
    op: 'cp.async.bulk.shared',
    ...copy,
    barrier: laneAddresses(registers, barrier, warp.lanes)[lane],
    multicast: mask === null ? null : ranksOf(operandNumber(registers, mask, lane)),
  };
}

const source = 'PTX ISA, Data Movement and Conversion Instructions: Bulk copy';

/** Bulk copies and reductions without a tensor map. */
export const bulkCopyRows: readonly VisibleInstruction[] = [
  { name: 'cp.async.bulk', meaning: 'moves', evidence: 'isa', source, lower: lowerBulkCopy },
  {
    name: 'cp.reduce.async.bulk',
    meaning: ['is', 'chooses', 'confirmed'],
    evidence: 'isa',
    source,
    lower: lowerBulkCopy,
  },
];
