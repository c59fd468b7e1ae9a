import { describe, expect, it } from 'vitest';
import type { LaneInstruction } from '../../../src/ptx/instructions/index.js';
import type { LaneOperation, Slot } from '../../../src/ptx/program/index.js';
import { sampled, scaled, testSeed } from '../../setup/effort.js';
import { knownRows } from './known-rows.js';
import {
  compareWithDefinition,
  compilerWithMemory,
  constant,
  createRandom,
  drawWord,
  fill,
  operation,
  slotsOf,
} from './warp-memory.js';

/** A default run tries some; another seed others. */
const rows = sampled(
  knownRows.filter(({ emit }) => emit !== null),
  100,
);
const registerBytes = 16 * 1024;

/** One way to use an instruction on slots: destinations, then sources, then two predicates. */
interface Use {
  readonly title: string;
  readonly operation: LaneOperation;
  readonly lanes: number;
}

function usesOf(row: LaneInstruction, slots: readonly Slot[], random: () => number): Use[] {
  const count = row.destinations.length;
  const destinations = slots.slice(0, count);
  const sources = slots.slice(count, count + row.sources.length);
  const guard = slots[count + row.sources.length];
  const all = -1;
  const some = random();
  const constants = row.sources.map((width) =>
    constant((BigInt(drawWord(random)) << 32n) | BigInt(drawWord(random)), width),
  );
  const small = row.sources.map((width) => constant(random() % 40, width));
  const uses: Use[] = [
    { title: 'all lanes', operation: operation(row, destinations, sources), lanes: all },
    { title: 'some lanes', operation: operation(row, destinations, sources), lanes: some },
    {
      title: 'guarded',
      operation: operation(row, destinations, sources, { slot: guard, isNegated: false }),
      lanes: all,
    },
    {
      title: 'guarded against, some lanes',
      operation: operation(row, destinations, sources, { slot: guard, isNegated: true }),
      lanes: some,
    },
  ];
  row.sources.forEach((_, i) => {
    for (const values of [constants, small])
      uses.push({
        title: `source ${i} constant`,
        operation: operation(
          row,
          destinations,
          sources.map((source, k) => (k === i ? values[k] : source)),
        ),
        lanes: all,
      });
  });
  uses.push({
    title: 'sources constant but the first',
    operation: operation(
      row,
      destinations,
      sources.map((source, k) => (k === 0 ? source : small[k])),
    ),
    lanes: all,
  });
  row.destinations.forEach((width, i) => {
    sources.forEach((source, k) => {
      if (source.width !== width) return;
      uses.push({
        title: `destination ${i} is source ${k}`,
        operation: operation(
          row,
          destinations.map((slot, n) => (n === i ? source : slot)),
          sources,
        ),
        lanes: all,
      });
    });
    if (count > 1)
      uses.push({
        title: `without destination ${i}`,
        operation: operation(
          row,
          destinations.map((slot, n) => (n === i ? null : slot)),
          sources,
        ),
        lanes: all,
      });
  });
  return uses;
}

describe('an instruction in WebAssembly', () => {
  it('gives as many vectors as the registers of every row take', () => {
    const { compiler } = compilerWithMemory(registerBytes);
    const operations = knownRows.map((row) => {
      const { slots } = slotsOf([...row.destinations, ...row.sources]);
      const count = row.destinations.length;
      return operation(row, slots.slice(0, count), slots.slice(count));
    });
    expect(() => compiler.compileAll(operations.map((one) => [one]))).not.toThrow();
  });

  it('equals its definition, masked, guarded, with constants and aliases', () => {
    const { memory, compiler } = compilerWithMemory(registerBytes);
    const cases = rows.map((row, i) => {
      const layout = slotsOf([...row.destinations, ...row.sources, 'pred']);
      return { layout, uses: usesOf(row, layout.slots, createRandom(testSeed + i)) };
    });
    const runs = compiler.compileAll(
      cases.flatMap(({ uses }) => uses.map((use) => [use.operation])),
    );
    expect(compiler.statistics().laneByLane.size).toBe(0);
    const random = createRandom(testSeed);
    const failures: string[] = [];
    let next = 0;
    for (const { layout, uses } of cases)
      for (const { title, operation: one, lanes } of uses) {
        const run = runs[next++];
        for (let round = 0; round < scaled(title === 'all lanes' ? 4 : 1); round++) {
          fill(new DataView(memory.buffer), 0, layout.slots, random);
          const failure = compareWithDefinition(memory, run, [one], layout, lanes);
          if (failure !== null) failures.push(`${title}: ${failure}`);
        }
      }
    expect(failures.slice(0, 20)).toEqual([]);
  });
});
