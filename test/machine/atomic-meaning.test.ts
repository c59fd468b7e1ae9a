import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AtomicOperation, AtomicType } from '../../src/machine/index.js';
import { laneRows } from '../../src/isa/index.js';
import {
  atomicBits,
  evaluateAtomic,
  hasAtomic,
  meaningOfAtomic,
} from '../../src/machine/instructions/memory/atomic-operations.js';

const operations: readonly AtomicOperation[] = [
  ...(['and', 'or', 'xor', 'exch', 'cas', 'add', 'inc', 'dec', 'min', 'max'] as const),
];
const types = Object.keys(atomicBits) as readonly AtomicType[];
const pairs = operations.flatMap((operation) =>
  types.filter((type) => hasAtomic(operation, type)).map((type) => [operation, type] as const),
);

/** Elements whose bits stay as they are when they are chosen: a pattern of a NaN does not. */
const isNumber = (type: AtomicType, element: bigint): boolean => {
  if (type.startsWith('f16')) return (element & 0x7c00n) !== 0x7c00n;
  return !type.startsWith('bf16') || (element & 0x7f80n) !== 0x7f80n;
};

/** The elements of a value that are chosen one by one. */
function elementsOf(type: AtomicType, value: bigint): readonly bigint[] {
  return type.endsWith('x2') ? [value & 0xffffn, value >> 16n] : [value];
}

/** Whether each element of the results has the bits of that of one of the operands, for all operands. */
function isChoice(operation: AtomicOperation, type: AtomicType, of: 'any' | 'operand'): boolean {
  const value = fc
    .bigInt({ min: 0n, max: (1n << BigInt(atomicBits[type])) - 1n })
    .filter((one) => elementsOf(type, one).every((element) => isNumber(type, element)));
  const trials = fc.sample(fc.tuple(value, value, fc.boolean()), 100);
  return trials.every(([old, operand, isEqual]) => {
    const result = evaluateAtomic(operation, type, false)!(old, operand, isEqual ? old : operand);
    const [olds, operands] = [elementsOf(type, old), elementsOf(type, operand)];
    return elementsOf(type, result).every(
      (element, i) => element === operands[i] || (of === 'any' && element === olds[i]),
    );
  });
}

describe('what an atomic operation leaves in memory', () => {
  it.each(pairs)(
    'is moved if it is the operand, and chosen if it is one of the two: %s.%s',
    (...pair) => {
      const meaning = meaningOfAtomic(...pair);
      const found = isChoice(...pair, 'operand')
        ? 'moves'
        : isChoice(...pair, 'any')
          ? 'chooses'
          : null;
      expect(found).toBe(meaning === 'moves' || meaning === 'chooses' ? meaning : null);
    },
  );

  it('stands for what the instruction on registers says of the same operation', () => {
    const known = new Map(
      laneRows
        .filter(({ opcode }) => (operations as readonly string[]).includes(opcode))
        .flatMap(({ variants }) => variants().map(({ name, meaning }) => [name, meaning] as const)),
    );
    const same = pairs.flatMap(([operation, type]) => {
      const meaning = known.get(`${operation}.${type}`) ?? known.get(`${operation}.rn.${type}`);
      return meaning === undefined ? [] : [[operation, type, meaning] as const];
    });
    expect(same.length).toBeGreaterThan(20);
    for (const [operation, type, meaning] of same)
      expect([operation, type, meaningOfAtomic(operation, type)]).toEqual([
        operation,
        type,
        meaning,
      ]);
  });
});
