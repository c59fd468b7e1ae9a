import type { ResolvedOperand, Source } from '../instructions/index.js';
import type { Operand } from '../syntax/index.js';
import type { BlockBuilder, Placed } from './block-builder.js';
import { resolveOperand } from './lower-operand.js';
import {
  resolveName,
  type CallOperand,
  type CallOperands,
  type FormalParameter,
  type ProgramLowering,
  type ScopedInstruction,
} from './lowering.js';
import { handOver } from './parameter-pieces.js';
import type { HandedOver, ProgramFunction } from './program.js';

/** A call whose item is complete once all functions have been lowered. */
export interface CallSite {
  readonly callee: string;
  readonly at: ScopedInstruction;
  readonly operands: CallOperands;
  /** The item in its block, which is completed in place. */
  readonly item: {
    callee: ProgramFunction;
    arguments: readonly HandedOver[];
    results: readonly HandedOver[];
  };
}

/** Functions of CUDA's runtime that end a lane, with the text of the finding. */
const endingFunctions: Readonly<Record<string, string>> = {
  __assertfail: 'an assertion of the kernel failed',
};
/** Functions of CUDA's runtime that return 0 and do nothing here: printed text is not shown. */
const silentFunctions: readonly string[] = ['vprintf'];

const unknownCallee: ProgramFunction = { name: '', line: 0, blocks: [] };

/** Lowers a `call`: into the builder, and into `calls` for its later completion. */
export function lowerCall(
  program: ProgramLowering,
  at: ScopedInstruction,
  place: Placed,
  builder: BlockBuilder,
  calls: CallSite[],
): void {
  const { operands } = at.instruction;
  const hasResults = operands[0]?.kind === 'list';
  const results = hasResults ? elementsOf(operands[0]) : [];
  const [callee, list] = hasResults ? operands.slice(1) : operands;
  const wrong = (why: string) => program.unsupported.add(at.line, at.mnemonic, why);
  if (callee?.kind !== 'name') return wrong('the name of a function');
  const { name } = callee;
  if (name in endingFunctions) {
    builder.item({ kind: 'trap', ...place, reason: endingFunctions[name] });
    return;
  }
  if (silentFunctions.includes(name)) return;
  if (!program.interfaces.has(name))
    return wrong(
      name.startsWith('%')
        ? 'indirect calls'
        : `${name} has no body: link it into the module first`,
    );
  const passed = (list?.kind === 'list' ? elementsOf(list) : []).map((one) =>
    pass(program, at, one),
  );
  const received = results.map((one) => pass(program, at, one));
  if (!passed.every((one) => one !== null) || !received.every((one) => one !== null)) return;
  const item = {
    kind: 'call' as const,
    ...place,
    callee: unknownCallee,
    arguments: [] as readonly HandedOver[],
    results: [] as readonly HandedOver[],
  };
  builder.item(item);
  calls.push({ callee: name, at, operands: { arguments: passed, results: received }, item });
}

function elementsOf(operand: Operand): readonly Operand[] {
  return operand.kind === 'list' ? operand.elements : [];
}

function pass(
  program: ProgramLowering,
  at: ScopedInstruction,
  operand: Operand,
): CallOperand | null {
  if (operand.kind === 'name') {
    const binding = resolveName(program, at.scope, operand.name);
    if (binding?.kind === 'parameter') return { kind: 'parameter', pieces: binding.pieces };
  }
  const resolved = resolveOperand(program, at, operand);
  return resolved === null ? null : { kind: 'value', operand: resolved };
}

/** Completes a call, when all functions have been lowered. */
export function completeCall(
  program: ProgramLowering,
  { callee, at, operands, item }: CallSite,
  functions: ReadonlyMap<string, ProgramFunction>,
): void {
  const { parameters, returns } = program.interfaces.get(callee)!;
  const wrong = (why: string) => program.unsupported.add(at.line, `call of ${callee}`, why);
  if (operands.arguments.length !== parameters.length || operands.results.length !== returns.length)
    return wrong(`${parameters.length} arguments and ${returns.length} results`);
  const passed = operands.arguments.map((one, i) => copies(program, one, parameters[i], 'in'));
  const received = operands.results.map((one, i) => copies(program, one, returns[i], 'out'));
  if (![...passed, ...received].every((one) => one !== null))
    return wrong('parts of a parameter that overlap otherwise than one by one');
  item.callee = functions.get(callee)!;
  item.arguments = passed.flatMap((one) => one ?? []);
  item.results = received.flatMap((one) => one ?? []);
}

function copies(
  program: ProgramLowering,
  actual: CallOperand,
  formal: FormalParameter,
  direction: 'in' | 'out',
): readonly HandedOver[] | null {
  if (actual.kind === 'parameter') {
    if (formal.kind !== 'parameter') return null;
    return direction === 'in'
      ? handOver(actual.pieces, formal.pieces, program.slots)
      : handOver(formal.pieces, actual.pieces, program.slots);
  }
  if (formal.kind !== 'register') return null;
  const value = valueSource(actual.operand, formal);
  if (value === null) return null;
  if (direction === 'in') return [{ from: value, to: formal.slot }];
  return 'offset' in value ? [{ from: formal.slot, to: value }] : null;
}

function valueSource(
  operand: ResolvedOperand,
  { slot }: Extract<FormalParameter, { kind: 'register' }>,
): Source | null {
  if (operand.kind === 'register') return operand.slot.width === slot.width ? operand.slot : null;
  if (operand.kind !== 'constant' || slot.width === 'pred') return null;
  return { bits: BigInt.asUintN(slot.width, operand.bits), width: slot.width };
}
