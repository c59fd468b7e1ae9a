import type { Operand, PtxFunction, PtxModule, Statement } from '../syntax/index.js';
import type { UnsupportedCollector } from './unsupported.js';

/** The parts of a module that a kernel needs. */
export interface Reachable {
  /** The kernel, and the functions that it calls, each after the functions that call it first. */
  readonly functions: readonly PtxFunction[];
  /** Every name in their instructions. */
  readonly names: ReadonlySet<string>;
}

function* namesOf(operand: Operand): Generator<string> {
  switch (operand.kind) {
    case 'name':
    case 'sum':
      yield operand.name;
      break;
    case 'address':
      if (operand.base !== null) yield operand.base;
      break;
    case 'vector':
    case 'list':
      for (const element of operand.elements) yield* namesOf(element);
      break;
    case 'pair':
      yield* namesOf(operand.first);
      yield* namesOf(operand.second);
      break;
    default:
  }
}

function collect(
  statements: readonly Statement[],
  names: Set<string>,
  calls: Map<string, number>,
): void {
  for (const statement of statements) {
    if (statement.kind === 'block') collect(statement.statements, names, calls);
    if (statement.kind !== 'instruction') continue;
    for (const operand of statement.operands)
      for (const name of namesOf(operand)) {
        names.add(name);
        if (statement.opcode === 'call' && !calls.has(name)) calls.set(name, statement.place.line);
      }
  }
}

/**
 * The functions and names that a kernel needs. A function that calls itself, directly or through others, is
 * collected as unsupported: its frames have no bound.
 */
export function findReachable(
  { functions }: PtxModule,
  entry: PtxFunction,
  unsupported: UnsupportedCollector,
): Reachable {
  const bodies = new Map<string, PtxFunction>();
  for (const one of functions) if (one.body !== null) bodies.set(one.name, one);
  const names = new Set<string>();
  const reached = new Map<string, PtxFunction>();
  const path: string[] = [];

  function visit(one: PtxFunction): void {
    reached.set(one.name, one);
    path.push(one.name);
    const calls = new Map<string, number>();
    collect(one.body!, names, calls);
    for (const [name, line] of calls) {
      const callee = bodies.get(name);
      if (callee === undefined) continue;
      if (path.includes(name)) unsupported.add(line, `call of ${name}`, 'recursion');
      else if (!reached.has(name)) visit(callee);
    }
    path.pop();
  }

  visit(entry);
  return { functions: [...reached.values()], names };
}
