import type { Slot, SlotGuard, Unsupported } from '../instructions/index.js';
import { type PtxFunction, type PtxInstruction, siteAt, type Statement } from '../syntax/index.js';
import { createBlockBuilder, type Placed } from './block-builder.js';
import { lowerLaneInstruction } from './lower-lane.js';
import { lowerParameterAccess } from './lower-parameter.js';
import { resolveOperand } from './lower-operand.js';
import { resolveName, type ProgramLowering, type ScopedInstruction } from './lowering.js';
import type { Block, LaneOperation } from './program.js';
import { declare, type Declaring } from './declare.js';
import type { CallSite } from './lower-call.js';
import { controlInstructions, type ControlLowering } from './lower-control.js';
import { createScope, type Scope } from './scope.js';
import { watchedRegisters } from './watched.js';

/** A function with its blocks, and the calls in it, whose callees are not known as blocks yet. */
export interface LoweredFunction {
  readonly blocks: readonly Block[];
  readonly calls: readonly CallSite[];
}

interface FunctionLowering extends ControlLowering {
  readonly declaring: Declaring;
  readonly flag: () => Slot;
}

/** The blocks of a function; unsupported features are collected. */
export function lowerFunction(
  program: ProgramLowering,
  { name, kind, body }: PtxFunction,
  declaring: Declaring,
): LoweredFunction {
  const builder = createBlockBuilder();
  let flag: Slot | null = null;
  const lowering: FunctionLowering = {
    program,
    declaring,
    builder,
    calls: [],
    flag: () => (flag ??= program.slots.allocate('pred')),
  };
  lowerStatements(lowering, body!, createScope(program.interfaces.get(name)!.scope));
  return { blocks: builder.finish(kind === 'entry'), calls: lowering.calls };
}

function lowerStatements(
  lowering: FunctionLowering,
  statements: readonly Statement[],
  scope: Scope,
): void {
  declare(lowering.declaring, statements, scope);
  const { program, builder } = lowering;
  for (const statement of statements)
    switch (statement.kind) {
      case 'label': {
        const binding = scope.bindings.get(statement.name);
        if (binding?.kind === 'label') builder.label(binding.label);
        break;
      }
      case 'block':
        lowerStatements(lowering, statement.statements, createScope(scope));
        break;
      case 'instruction':
        lowerInstruction(lowering, statement, scope);
        break;
      case 'call-prototype':
      case 'call-targets':
        program.unsupported.add(statement.place.line, `.${statement.kind}`, 'indirect calls');
        break;
      default:
    }
}

function lowerInstruction(
  lowering: FunctionLowering,
  instruction: PtxInstruction,
  scope: Scope,
): void {
  const { program, builder } = lowering;
  const { line } = instruction.place;
  const mnemonic = [instruction.opcode, ...instruction.modifiers].join('.');
  program.watched.get(line)?.push(...watchedRegisters(program, instruction, scope));
  const guard = guardOf(program, instruction, scope);
  if (guard === undefined) return;
  const place: Placed = { guard, line, mnemonic, site: siteAt(line, mnemonic) };
  const at: ScopedInstruction = { ...place, instruction, scope };
  const operations: LaneOperation[] = [];
  const { opcode } = instruction;
  if (Object.hasOwn(controlInstructions, opcode)) {
    controlInstructions[opcode].lower(lowering, at, place);
    return;
  }
  if (lowerParameterAccess(program, at, operations)) {
    builder.lanes(operations);
    return;
  }
  const resolved = instruction.operands.map((operand) => resolveOperand(program, at, operand));
  if (!resolved.every((operand) => operand !== null)) return;
  for (const { binding, register } of program.specials.values())
    if (register.value === null && binding.kind === 'register')
      if (resolved.some((one) => one.kind === 'register' && one.slot === binding.slot))
        builder.item({ kind: 'count', ...place, slot: binding.slot });
  if (lowerLaneInstruction(program, at, resolved, lowering.flag, operations)) {
    builder.lanes(operations);
    return;
  }
  const found = program.findRow(instruction);
  if (found === null) {
    program.unsupported.add(line, mnemonic, 'an instruction that is in no table');
    return;
  }
  const { modifiers } = instruction;
  const request = { opcode, modifiers, operands: resolved, line, site: place.site };
  const refuse = ({ unsupported, family = mnemonic }: Unsupported) =>
    program.unsupported.add(line, family, unsupported);
  if (found.kind === 'warp') {
    const operation = found.row.lower(request);
    if ('unsupported' in operation) refuse(operation);
    else {
      const { converged } = operation;
      const mask = typeof converged === 'string' ? null : (resolved[converged.maskOperand] ?? null);
      builder.item({ kind: 'warp', ...place, operation, mask });
    }
  } else {
    const operation = found.row.lower(request);
    if ('unsupported' in operation) refuse(operation);
    else builder.item({ kind: 'visible', ...place, operation });
  }
}

/** The guard of an instruction; undefined where its predicate is not one, which is collected. */
function guardOf(
  program: ProgramLowering,
  { guard, place }: PtxInstruction,
  scope: Scope,
): SlotGuard | null | undefined {
  if (guard === null) return null;
  const binding = resolveName(program, scope, guard.predicate);
  if (binding?.kind === 'register' && binding.slot.width === 'pred')
    return { slot: binding.slot, isNegated: guard.isNegated };
  program.unsupported.add(
    place.line,
    `@${guard.predicate}`,
    'a guard that is a declared predicate',
  );
  return undefined;
}
