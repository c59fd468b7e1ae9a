import type { Effect } from '../instructions/index.js';
import type { BlockBuilder, Placed } from './block-builder.js';
import { lowerCall, type CallSite } from './lower-call.js';
import { resolveOperand } from './lower-operand.js';
import type { ProgramLowering, ScopedInstruction } from './lowering.js';
import { findBinding, type Scope } from './scope.js';

/** The function that an instruction is lowered into. */
export interface ControlLowering {
  readonly program: ProgramLowering;
  readonly builder: BlockBuilder;
  readonly calls: CallSite[];
}

type LowerControl = (lowering: ControlLowering, at: ScopedInstruction, place: Placed) => void;

/** An instruction that says where a lane goes on, or whether. */
export interface ControlInstruction {
  /** What the values that it leaves stand for. Its guard, like any other, is decided where its predicate is made. */
  readonly meaning: Effect;
  readonly lower: LowerControl;
}

const lowerBranch: LowerControl = (lowering, { instruction, ...at }, place) => {
  const { program, builder } = lowering;
  const [target] = instruction.operands;
  const label = target?.kind === 'name' ? labelOf(lowering, at.scope, target.name) : null;
  if (label === null) program.unsupported.add(at.line, at.mnemonic, 'a label that is declared');
  else builder.end({ kind: 'branch', ...place, label });
};

const lowerTrap: LowerControl = ({ builder }, { instruction }, place) => {
  builder.item({ kind: 'trap', ...place, reason: instruction.opcode });
};

function labelOf({ program }: ControlLowering, scope: Scope, name: string): number | null {
  const binding = findBinding(scope, name, program.slots);
  return binding?.kind === 'label' ? binding.label : null;
}

function lowerTable(lowering: ControlLowering, at: ScopedInstruction, place: Placed): void {
  const { program, builder } = lowering;
  const [index, list] = at.instruction.operands;
  const targets = list?.kind === 'name' ? findBinding(at.scope, list.name, program.slots) : null;
  const labels =
    targets?.kind === 'targets'
      ? targets.labels.map((name) => labelOf(lowering, at.scope, name))
      : [null];
  const source = index === undefined ? null : resolveOperand(program, at, index);
  const isIndex = source?.kind === 'register' || source?.kind === 'constant';
  if (!isIndex || !labels.every((label) => label !== null)) {
    program.unsupported.add(at.line, at.mnemonic, 'a register and a list of labels');
    return;
  }
  const value =
    source.kind === 'register'
      ? source.slot
      : ({ bits: BigInt.asUintN(32, source.bits), width: 32 } as const);
  builder.end({ kind: 'table', ...place, index: value, labels });
}

/** Lowers hints that change nothing. */
const lowerHint: LowerControl = () => undefined;

/** Branches, calls and ends, by their opcodes. */
export const controlInstructions: Readonly<Record<string, ControlInstruction>> = {
  bra: { meaning: 'none', lower: lowerBranch },
  // An index chooses the target.
  brx: { meaning: 'decides', lower: lowerTable },
  ret: {
    meaning: 'none',
    lower: ({ builder }, _at, place) => {
      builder.end({ kind: 'return', ...place });
    },
  },
  exit: {
    meaning: 'none',
    lower: ({ builder }, _at, place) => {
      builder.end({ kind: 'exit', ...place });
    },
  },
  trap: { meaning: 'none', lower: lowerTrap },
  brkpt: { meaning: 'none', lower: lowerTrap },
  // Arguments and results.
  call: {
    meaning: 'moves',
    lower: ({ program, builder, calls }, at, place) => {
      lowerCall(program, at, place, builder, calls);
    },
  },
  nanosleep: { meaning: 'none', lower: lowerHint },
  pmevent: { meaning: 'none', lower: lowerHint },
};
