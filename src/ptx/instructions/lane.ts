import {
  laneRows,
  row,
  type LaneInstruction,
  type LaneValue,
  type RegisterWidth,
  type Row,
} from '../../isa/index.js';
import { onEachVector } from '../../isa/vectors/index.js';
import { i64x2 } from '../../isa/webassembly/index.js';
import {
  clusterAddress,
  genericAddress,
  isInSpace,
  splitClusterAddress,
  type MemorySpace,
} from '../../machine/index.js';
import { lazily } from '../../reuse.js';

/** State spaces as instructions name them. */
const spaces: Readonly<Record<string, MemorySpace>> = {
  const: 'const',
  global: 'global',
  local: 'local',
  shared: 'shared',
  'shared::cta': 'shared',
  'shared::cluster': 'shared',
  param: 'param',
  'param::entry': 'param',
};

const common = {
  alternatives: { space: Object.keys(spaces).map((name) => `.${name}`) },
  meaning: 'is',
  unit: 'alu',
  evidence: 'isa',
  section: 'Generic Addressing',
} as const;

function baseOf(space: string): bigint {
  return BigInt(genericAddress(spaces[space], 0));
}

/** What is added to an address, modulo 2^64. */
function shifted(offset: bigint) {
  return {
    evaluate: (address: LaneValue) => BigInt.asUintN(64, BigInt(address) + offset),
    emit: onEachVector((_, a) => i64x2.add(a, i64x2.splat(BigInt.asUintN(64, offset)))),
  };
}

/**
 * Conversions of addresses to and from the generic space, and queries for the space of an address. The windows
 * are those of src/machine/memory/address-windows.ts, so that converting adds or subtracts a window's base.
 */
const conversions: readonly Row[] = [
  row({
    ...common,
    syntax: 'cvta.space.u64 d, a',
    evaluate: ({ space }) => shifted(baseOf(space)).evaluate,
    emit: ({ space }) => shifted(baseOf(space)).emit,
  }),
  row({
    ...common,
    syntax: 'cvta.to.space.u64 d, a',
    evaluate: ({ space }) => shifted(-baseOf(space)).evaluate,
    emit: ({ space }) => shifted(-baseOf(space)).emit,
  }),
  row({
    ...common,
    syntax: 'isspacep.space p, a',
    operands: { a: 'u64' },
    evaluate:
      ({ space }) =>
      (generic: LaneValue) =>
        isInSpace(spaces[space], Number(generic)) ? 1 : 0,
    meaning: 'decides',
  }),
];

const clusterFacts = {
  meaning: 'is',
  unit: 'alu',
  evidence: 'isa',
  section: 'Data Movement and Conversion Instructions',
  also: 'the rank of a CTA in bits 24 and above of an address of shared memory',
} as const;

/** Beginning of the shared memory of the CTA of rank 0, as an address of shared memory or as a generic one. */
function originOf(space: string): number {
  return space === '' ? genericAddress('shared', 0) : 0;
}

function split(space: string, address: LaneValue) {
  return splitClusterAddress(Number(address) - originOf(space));
}

/** The same place in the shared memory of the CTA of another rank, and the rank of the CTA of a place. */
const clusterAddresses: readonly Row[] = [
  row({
    ...clusterFacts,
    syntax: 'mapa{.shared::cluster}.type d, a, b',
    alternatives: { type: ['.u32', '.u64'] },
    operands: { b: 'u32' },
    // An address of 32 bits cannot be generic.
    except: ({ 'shared::cluster': space, type }) => space === '' && type === 'u32',
    evaluate:
      ({ 'shared::cluster': space, type }) =>
      (address: LaneValue, rank: number): LaneValue => {
        const mapped = originOf(space) + clusterAddress(rank, split(space, address).offset);
        return type === 'u64' ? BigInt.asUintN(64, BigInt(mapped)) : mapped % 2 ** 32;
      },
  }),
  row({
    ...clusterFacts,
    syntax: 'getctarank{.shared::cluster}.type d, a',
    alternatives: { type: ['.u32', '.u64'] },
    operands: { d: 'u32' },
    except: ({ 'shared::cluster': space, type }) => space === '' && type === 'u32',
    evaluate:
      ({ 'shared::cluster': space }) =>
      (address: LaneValue) =>
        split(space, address).rank >>> 0,
  }),
];

/** Instructions that compute addresses. */
export const addressRows: readonly Row[] = [...conversions, ...clusterAddresses];

/** The form of an instruction's operands, in which rows that share a name differ. */
export interface OperandForm {
  /** The widths of the destinations' registers; `16` for a sink `_` of an instruction with at most one destination. */
  readonly destinations: readonly RegisterWidth[];
  readonly sources: number;
}

function groupBy<Value>(values: readonly Value[], keyOfValue: (value: Value) => string) {
  const groups = new Map<string, Value[]>();
  for (const value of values) {
    const group = groups.get(keyOfValue(value));
    if (group === undefined) groups.set(keyOfValue(value), [value]);
    else group.push(value);
  }
  return groups;
}

/** For each opcode its instructions, made when the first of them is looked up, by their names. */
const table = lazily(() => {
  const rows = groupBy([...laneRows, ...addressRows], ({ opcode }) => opcode);
  return new Map(
    [...rows].map(([opcode, ofOpcode]) => {
      const byName = lazily(() =>
        groupBy(
          ofOpcode.flatMap(({ variants }): readonly LaneInstruction[] => variants()),
          ({ name }) => name,
        ),
      );
      return [opcode, byName] as const;
    }),
  );
});

function bitsOf(width: RegisterWidth): number {
  return width === 'pred' ? 1 : width;
}

/** Distance of a row from the form, in bits by which destinations are widened; infinite where it does not fit. */
function distance({ destinations, sources }: LaneInstruction, form: OperandForm): number {
  if (destinations.length !== form.destinations.length || sources.length !== form.sources)
    return Infinity;
  const widenings = destinations.map((width, i) => bitsOf(form.destinations[i]) - bitsOf(width));
  return widenings.some((widening) => widening < 0)
    ? Infinity
    : widenings.reduce((sum, widening) => sum + widening, 0);
}

/**
 * The instruction with this opcode and these modifiers, or null where there is none. A `mov` that packs two elements has the
 * modifier `pack2` after its type.
 *
 * @param form distinguishes instructions of one name: `setp` with one result or two, `max` of two or three numbers,
 * `cvt.s8.s32` to a register of 16 or of 32 bits; without it the first of the name is returned
 */
export function findLaneInstruction(
  opcode: string,
  modifiers: readonly string[],
  form?: OperandForm,
): LaneInstruction | null {
  const found =
    table()
      .get(opcode)?.()
      .get([opcode, ...modifiers].join('.')) ?? [];
  if (form === undefined) return found[0] ?? null;
  const fitting = found
    .map((instruction) => ({ instruction, distance: distance(instruction, form) }))
    .filter((candidate) => candidate.distance < Infinity)
    .sort((a, b) => a.distance - b.distance);
  return fitting[0]?.instruction ?? null;
}
