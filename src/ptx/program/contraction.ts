import type { LaneInstruction, Slot, SlotGuard, Source } from '../instructions/index.js';
import type { FindLaneInstruction } from './tables.js';
import type { Item, LaneStretch, ProgramFunction, LaneOperation } from './program.js';
import type { SlotAllocator } from './parameter-pieces.js';

/** A mul whose only use is an add or sub after it, neither with a rounding modifier. */
export interface Contraction {
  /** Line of the add. */
  readonly line: number;
  /** Mnemonic of the add: `add.f32`. */
  readonly mnemonic: string;
  readonly stretch: LaneStretch;
  readonly product: LaneOperation;
  readonly sum: LaneOperation;
}

/**
 * The instructions that an assembler may contract, namely those without a rounding modifier: `mul.f32`, `mul.ftz.f32`,
 * `mul.f64`, ….
 */
const contractable = /^(mul|add|sub)((?:\.ftz)?\.(?:f32|f32x2|f64|f16|f16x2|bf16|bf16x2))$/;

function kindOf({ name }: LaneInstruction): readonly [opcode: string, type: string] | null {
  const match = contractable.exec(name);
  return match === null ? null : [match[1], match[2]];
}

interface Uses {
  readonly reads: Map<number, number>;
  readonly writes: Map<number, number>;
}

function countUses(functions: readonly ProgramFunction[]): Uses {
  const reads = new Map<number, number>();
  const writes = new Map<number, number>();
  const add = (counts: Map<number, number>, source: Source | null) => {
    if (source !== null && 'offset' in source)
      counts.set(source.offset, (counts.get(source.offset) ?? 0) + 1);
  };
  const guard = (one: SlotGuard | null) => add(reads, one?.slot ?? null);
  const visit = (item: Item) => {
    if (item.kind === 'lanes') {
      for (const operation of item.operations) {
        guard(operation.guard);
        operation.sources.forEach((source) => add(reads, source));
        operation.destinations.forEach((slot) => add(writes, slot));
      }
      return;
    }
    guard(item.guard);
    if (item.kind === 'warp' || item.kind === 'visible') {
      item.operation.reads.forEach((slot) => add(reads, slot));
      item.operation.writes.forEach((slot) => add(writes, slot));
      if (item.kind === 'visible')
        item.operation.lends.flat().forEach((slot) => {
          add(reads, slot);
          add(writes, slot);
        });
    }
    if (item.kind === 'call')
      for (const { from, to } of [...item.arguments, ...item.results]) {
        add(reads, from);
        add(writes, to);
      }
  };
  for (const { blocks } of functions)
    for (const { items, terminator } of blocks) {
      items.forEach(visit);
      if (terminator.kind !== 'goto') guard(terminator.guard);
      if (terminator.kind === 'table') add(reads, terminator.index);
    }
  return { reads, writes };
}

/** Whether two operations are executed by the same lanes. */
function sameGuard(one: SlotGuard | null, other: SlotGuard | null): boolean {
  if (one === null || other === null) return one === other;
  return one.slot.offset === other.slot.offset && one.isNegated === other.isNegated;
}

function readsSlot({ sources }: LaneOperation, slot: Slot): boolean {
  return sources.some((source) => 'offset' in source && source.offset === slot.offset);
}

/** The offset of the slot of a product; −1 for a mul without a destination, which is no half of a pair. */
function productSlot({ destinations: [slot] }: LaneOperation): number {
  return slot?.offset ?? -1;
}

/**
 * The pairs of a product and a sum that an assembler may contract into an fma, within one stretch of operations (PTX
 * ISA, `mul`, `add`: without a rounding modifier they may be).
 */
export function findContractions(functions: readonly ProgramFunction[]): readonly Contraction[] {
  const uses = countUses(functions);
  const isSingle = (slot: Slot) =>
    uses.reads.get(slot.offset) === 1 && uses.writes.get(slot.offset) === 1;
  const pairs: Contraction[] = [];
  const stretches = functions.flatMap(({ blocks }) =>
    blocks.flatMap(({ items }) => items.filter((item) => item.kind === 'lanes')),
  );
  for (const stretch of stretches) {
    const open = new Map<number, LaneOperation>();
    for (const sum of stretch.operations) {
      const kind = kindOf(sum.instruction);
      if (kind !== null && kind[0] !== 'mul') {
        const product = [...sum.sources].flatMap((source) =>
          'offset' in source ? (open.get(source.offset) ?? []) : [],
        )[0];
        if (
          product !== undefined &&
          kindOf(product.instruction)?.[1] === kind[1] &&
          sameGuard(product.guard, sum.guard)
        ) {
          const { line, instruction } = sum;
          pairs.push({ line, mnemonic: instruction.name, stretch, product, sum });
          open.delete(productSlot(product));
        }
      }
      // The sources of the product must be unchanged at the sum.
      for (const written of sum.destinations)
        if (written !== null)
          for (const [offset, product] of open)
            if (readsSlot(product, written) || product.guard?.slot.offset === written.offset)
              open.delete(offset);
      const [destination] = sum.destinations;
      if (kind?.[0] === 'mul' && destination !== null && isSingle(destination))
        open.set(destination.offset, sum);
    }
  }
  return pairs;
}

const signs: Readonly<Record<string, readonly [xor: string, bits: bigint, width: 16 | 32 | 64]>> = {
  f32: ['b32', 0x80000000n, 32],
  f32x2: ['b64', 0x8000000080000000n, 64],
  f64: ['b64', 1n << 63n, 64],
  f16: ['b16', 0x8000n, 16],
  bf16: ['b16', 0x8000n, 16],
  f16x2: ['b32', 0x80008000n, 32],
  bf16x2: ['b32', 0x80008000n, 32],
};

/** Puts an fma in the place of each pair, in the stretches themselves. */
export function contract(
  pairs: readonly Contraction[],
  table: FindLaneInstruction,
  slots: SlotAllocator,
): void {
  const replaced = new Map<LaneOperation, readonly LaneOperation[]>();
  for (const pair of pairs) {
    replaced.set(pair.product, []);
    replaced.set(pair.sum, fused(pair, table, slots));
  }
  for (const { operations } of new Set(pairs.map(({ stretch }) => stretch))) {
    const after = operations.flatMap((operation) => replaced.get(operation) ?? [operation]);
    (operations as LaneOperation[]).splice(0, operations.length, ...after);
  }
}

/** x·y + z, x·y − z or z − x·y as an fma, with the sign of a source negated first where needed. */
function fused(
  { product, sum }: Contraction,
  table: FindLaneInstruction,
  slots: SlotAllocator,
): readonly LaneOperation[] {
  const [opcode, type] = kindOf(sum.instruction) ?? ['add', '.f32'];
  const [xor, bits, width] = signs[type.slice(type.lastIndexOf('.') + 1)];
  const { line, guard, destinations } = sum;
  const operations: LaneOperation[] = [];
  const negate = (source: Source): Source => {
    const slot = slots.allocate(width);
    const instruction = table('xor', [xor])!;
    const sources = [source, { bits, width }];
    operations.push({ instruction, guard: null, destinations: [slot], sources, line });
    return slot;
  };
  const target = productSlot(product);
  const isFirst = 'offset' in sum.sources[0] && sum.sources[0].offset === target;
  const [one, other] = product.sources;
  const third = isFirst ? sum.sources[1] : sum.sources[0];
  const sources =
    opcode === 'add'
      ? [one, other, third]
      : isFirst
        ? [one, other, negate(third)]
        : [negate(one), other, third];
  const instruction = table('fma', ['rn', ...type.slice(1).split('.')])!;
  operations.push({ instruction, guard, destinations, sources, line });
  return operations;
}
