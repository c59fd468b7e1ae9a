import {
  addressSpaceOf,
  type AtomicOperation,
  type Instruction,
  mapOfNamedRows,
} from '../../../machine/index.js';
import { integerConstant, slotsOf, uniformNumber, wrongOperands } from '../operands.js';
import { ownOffset, ranksOf, sharedAddresses } from '../shared-addresses.js';
import type { AddressOperand, InstructionRequest, Unsupported } from '../request.js';
import type {
  IssuingWarp,
  PlacedTensorMap,
  VisibleInstruction,
  VisibleOperation,
} from '../visible-instruction.js';
import { hasLane, laneAddresses, operandBits } from '../warp-registers.js';
import { numberAfter } from './modifiers.js';
import { loadMap } from './tensor-maps.js';

/** A copy of one lane: its map and its coordinates. */
interface LaneBox extends PlacedTensorMap {
  /** The generic address of the map. */
  readonly mapAddress: number;
  readonly coordinates: readonly number[];
  /** The warp, for this lane alone. */
  readonly alone: IssuingWarp;
}

/** The tensor map at a generic address, or the fault of the map. */
function* mapAt(
  { tensorMaps }: IssuingWarp,
  address: number,
  site: string,
): Generator<Instruction, PlacedTensorMap | string, void> {
  const parameter = tensorMaps.parameterAt(address);
  if (parameter !== null) return parameter;
  if (addressSpaceOf(address).space !== 'global')
    return `no parameter of the kernel at 0x${address.toString(16)} is a tensor map`;
  const { bytes } = yield* loadMap('generic', address, site);
  return tensorMaps.inMemory(address, bytes);
}

/** The boxes that the lanes copy, one after the other; a missing tensor map is reported. */
function* boxesOf(
  warp: IssuingWarp,
  operand: AddressOperand,
  { modifiers, site }: InstructionRequest,
): Generator<Instruction, readonly LaneBox[], void> {
  const namesRows = modifiers.some((one) => rowModes.includes(one));
  const boxes: LaneBox[] = [];
  const addresses = laneAddresses(warp.registers, operand, warp.lanes);
  for (let lane = 0; lane < addresses.length; lane++) {
    if (!hasLane(warp.lanes, lane)) continue;
    const found = yield* mapAt(warp, addresses[lane], site);
    const placed = namesRows && typeof found !== 'string' ? withNamedRows(found) : found;
    if (typeof placed === 'string') {
      yield { op: 'report', kind: 'instruction-shape', message: placed, site };
      continue;
    }
    // Coordinates are signed: a box may begin before the tensor.
    const coordinates = operand.coordinates[0].map((one) =>
      Number(BigInt.asIntN(32, operandBits(warp.registers, one, lane))),
    );
    boxes.push({
      ...placed,
      mapAddress: addresses[lane],
      coordinates,
      alone: { ...warp, lanes: (1 << lane) >>> 0 },
    });
  }
  return boxes;
}

function operation(
  { operands }: InstructionRequest,
  issue: VisibleOperation['issue'],
): VisibleOperation {
  return { isAligned: false, writes: [], reads: slotsOf(operands), lends: [], issue };
}

/** Modes that name the rows of a box. */
const rowModes: readonly string[] = ['tile::gather4', 'tile::scatter4'];

function withNamedRows({ map, address }: PlacedTensorMap): PlacedTensorMap | string {
  const ofRows = mapOfNamedRows(map);
  return typeof ofRows === 'string' ? ofRows : { map: ofRows, address };
}

/** Modes of a tensor copy that the machine does not support; null for a tiled one. */
function unsupportedMode(modifiers: readonly string[]): Unsupported | null {
  const mode = modifiers.find((one) => /^(im2col|tile::)/.test(one) && !rowModes.includes(one));
  if (mode !== undefined) return { unsupported: `copies with .${mode}` };
  return null;
}

function lowerLoad(request: InstructionRequest): VisibleOperation | Unsupported {
  const { modifiers, operands, site } = request;
  const [destination, source, barrier, mask] = operands;
  const isMulticast = modifiers.includes('multicast::cluster');
  const isAddressed =
    destination?.kind === 'address' && source?.kind === 'address' && barrier?.kind === 'address';
  if (!isAddressed || source.coordinates.length !== 1)
    return wrongOperands('[shared], [map, {coordinates}], [mbarrier]');
  if (isMulticast && mask === undefined) return wrongOperands('a mask of CTAs');
  const group = numberAfter(modifiers, 'cta_group::') === 2 ? 2 : 1;
  const shared = { modifiers: ['shared::cluster'] };
  return (
    unsupportedMode(modifiers) ??
    operation(request, function* (warp) {
      for (const { map, coordinates, alone } of yield* boxesOf(warp, source, request)) {
        const ctas = isMulticast ? ranksOf(uniformNumber(alone, mask)) : null;
        const [{ address: target }] = sharedAddresses(alone, shared, destination);
        const [{ address: arrival }] = sharedAddresses(alone, shared, barrier);
        yield {
          op: 'cp.async.bulk.tensor.shared.global',
          map,
          coordinates,
          destination: ownOffset(warp, target),
          barrier: arrival,
          name: map.name,
          site,
          ...(ctas === null ? undefined : { multicast: { ctas, group } }),
        };
      }
    })
  );
}

const reductions: readonly string[] = ['add', 'min', 'max', 'inc', 'dec', 'and', 'or', 'xor'];

function reductionOf(modifiers: readonly string[]): AtomicOperation | undefined {
  return modifiers.find((one): one is AtomicOperation => reductions.includes(one));
}

/**
 * Lowers a store or a reduction. Lanes that store the same place to the same box are one store: each writes the same
 * bytes, and GPUs issue it once a warp. (FlashAttention-4 has all lanes store the output.)
 */
function lowerStore(request: InstructionRequest): VisibleOperation | Unsupported {
  const { modifiers, operands, site } = request;
  const [target, source] = operands;
  if (target?.kind !== 'address' || source?.kind !== 'address' || target.coordinates.length !== 1)
    return wrongOperands('[map, {coordinates}], [shared]');
  return (
    unsupportedMode(modifiers) ??
    operation(request, function* (warp) {
      const reduction = reductionOf(modifiers);
      const stored = new Set<string>();
      for (const box of yield* boxesOf(warp, target, request)) {
        const { map, coordinates, alone } = box;
        const [{ address }] = sharedAddresses(alone, { modifiers: ['shared::cta'] }, source);
        const operands = [box.mapAddress, ...coordinates, address].join();
        if (reduction === undefined && stored.has(operands)) continue;
        stored.add(operands);
        yield {
          op: 'cp.async.bulk.tensor.global.shared',
          map,
          coordinates,
          source: ownOffset(warp, address),
          reduction,
          name: map.name,
          site,
        };
      }
    })
  );
}

function lowerCopy(request: InstructionRequest): VisibleOperation | Unsupported {
  const { modifiers } = request;
  if (modifiers.includes('bulk_group')) return lowerStore(request);
  return modifiers.includes('mbarrier::complete_tx::bytes')
    ? lowerLoad(request)
    : { unsupported: 'a completion by an mbarrier or a bulk group' };
}

/** Lowers commit_group, or wait_group with the number of groups that may be pending. */
function lowerGroup(
  make: (pending: number, site: string) => Instruction,
): VisibleInstruction['lower'] {
  return (request) => {
    const [pending] = request.operands;
    return operation(request, function* () {
      yield make(integerConstant(pending) ?? 0, request.site);
    });
  };
}

const source = 'PTX ISA, Data Movement and Conversion Instructions: Asynchronous copy, bulk tensor';

/** Bulk tensor copies by TMA, and bulk groups. */
export const tensorCopyRows: readonly VisibleInstruction[] = [
  ...[1, 2, 3, 4, 5].map((dimensions): VisibleInstruction => ({
    name: `cp.async.bulk.tensor.${dimensions}d`,
    meaning: 'moves',
    evidence: 'isa',
    source,
    lower: lowerCopy,
  })),
  ...[1, 2, 3, 4, 5].map((dimensions): VisibleInstruction => ({
    name: `cp.reduce.async.bulk.tensor.${dimensions}d.global.shared::cta`,
    meaning: ['is', 'chooses', 'confirmed'],
    evidence: 'isa',
    source: `${source}, cp.reduce.async.bulk.tensor`,
    lower: (request) =>
      reductionOf(request.modifiers) === undefined
        ? { unsupported: `.${request.modifiers.join('.')}` }
        : lowerStore(request),
  })),
  {
    name: 'cp.async.bulk.prefetch.tensor',
    meaning: 'none',
    evidence: 'isa',
    source,
    // A prefetch changes no value.
    lower: (request) => operation(request, function* () {}),
  },
  {
    name: 'cp.async.bulk.commit_group',
    meaning: 'none',
    evidence: 'isa',
    source,
    lower: lowerGroup((_, site) => ({ op: 'cp.async.bulk.commit_group', site })),
  },
  {
    name: 'cp.async.bulk.wait_group',
    meaning: 'none',
    evidence: 'isa',
    source,
    lower: lowerGroup((pending, site) => ({ op: 'cp.async.bulk.wait_group', pending, site })),
  },
  {
    name: 'cp.async.bulk.wait_group.read',
    meaning: 'none',
    evidence: 'isa',
    source,
    lower: lowerGroup((pending, site) => ({ op: 'cp.async.bulk.wait_group.read', pending, site })),
  },
];
