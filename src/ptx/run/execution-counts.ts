import type { LaneUnit } from '../instructions/index.js';
import type { ExecutableProgram } from './executable.js';

/** Number of executions of instructions. */
interface InstructionCount {
  /** Number of warp instructions: one for each warp, or strand of one. */
  executions: number;
  /** Number of lanes that executed them. */
  lanes: number;
}

/** The executions of a program. */
export interface ExecutionCounts {
  readonly byMnemonic: ReadonlyMap<string, InstructionCount>;
  readonly byLine: ReadonlyMap<number, InstructionCount>;
  /** Operations of lanes on the units, by instructions on registers; a packed instruction counts twice. */
  readonly laneOperations: Readonly<Partial<Record<LaneUnit, number>>>;
}

function addCounts<Key>(
  sums: Map<Key, InstructionCount>,
  counts: ReadonlyMap<Key, InstructionCount>,
): void {
  for (const [key, { executions, lanes }] of counts) {
    const known = sums.get(key) ?? { executions: 0, lanes: 0 };
    sums.set(key, { executions: known.executions + executions, lanes: known.lanes + lanes });
  }
}

/** The sum of the executions of several runs of a program. */
export function sumOfExecutions(list: readonly ExecutionCounts[]): ExecutionCounts {
  const byMnemonic = new Map<string, InstructionCount>();
  const byLine = new Map<number, InstructionCount>();
  const laneOperations: Partial<Record<LaneUnit, number>> = {};
  for (const counts of list) {
    addCounts(byMnemonic, counts.byMnemonic);
    addCounts(byLine, counts.byLine);
    for (const [unit, operations] of Object.entries(counts.laneOperations))
      laneOperations[unit as LaneUnit] = (laneOperations[unit as LaneUnit] ?? 0) + operations;
  }
  return { byMnemonic, byLine, laneOperations };
}

/** Sums the counts of items by instruction. */
export function countExecutions(
  { program, blocksOf }: ExecutableProgram,
  counted: { readonly executions: Float64Array; readonly lanes: Float64Array },
): ExecutionCounts {
  const byMnemonic = new Map<string, InstructionCount>();
  const byLine = new Map<number, InstructionCount>();
  const laneOperations: Partial<Record<LaneUnit, number>> = {};
  const addTo = <Key>(counts: Map<Key, InstructionCount>, key: Key, number: number): void => {
    let count = counts.get(key);
    if (count === undefined) counts.set(key, (count = { executions: 0, lanes: 0 }));
    count.executions += counted.executions[number];
    count.lanes += counted.lanes[number];
  };
  const add = (mnemonic: string, line: number, number: number): void => {
    if (counted.executions[number] === 0) return;
    addTo(byMnemonic, mnemonic, number);
    addTo(byLine, line, number);
  };
  for (const one of program.functions)
    for (const { items, terminator, number } of blocksOf(one)) {
      for (const { item, number: itemNumber } of items)
        if (item.kind === 'lanes')
          for (const { instruction, line } of item.operations) {
            add(instruction.name, line, itemNumber);
            const { unit, laneOperations: each } = instruction;
            laneOperations[unit] = (laneOperations[unit] ?? 0) + each * counted.lanes[itemNumber];
          }
        else add(item.mnemonic, item.line, itemNumber);
      if (terminator.kind !== 'goto') add(terminator.mnemonic, terminator.line, number);
    }
  return { byMnemonic, byLine, laneOperations };
}
