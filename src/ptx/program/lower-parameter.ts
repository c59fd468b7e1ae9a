import type { ResolvedOperand, Slot, Source } from '../instructions/index.js';
import type { Operand, ScalarType } from '../syntax/index.js';
import { resolveName, type ProgramLowering, type ScopedInstruction } from './lowering.js';
import { resolveOperand } from './lower-operand.js';
import type { LaneOperation } from './program.js';
import { parameterPiece, type ParameterPieces } from './parameter-pieces.js';
import { registerWidth, typeBytes } from './scope.js';

type Bytes = 1 | 2 | 4 | 8 | 16;

/** An access to a parameter at a known place: `ld.param` or `st.param` of a name. */
interface ParameterAccess {
  readonly address: Extract<Operand, { kind: 'address' }>;
  readonly data: Operand;
  readonly type: ScalarType;
}

function parameterAccess({ instruction }: ScopedInstruction): ParameterAccess | null {
  const { opcode, modifiers, operands } = instruction;
  if (!(opcode === 'ld' || opcode === 'st') || operands.length !== 2) return null;
  if (!modifiers.some((modifier) => /^param(::(entry|func))?$/.test(modifier))) return null;
  const [data, address] = opcode === 'ld' ? operands : [operands[1], operands[0]];
  if (address.kind !== 'address' || address.base === null) return null;
  return { address, data, type: modifiers[modifiers.length - 1] as ScalarType };
}

/**
 * Adds the operations of an `ld.param` or `st.param` at a known place to `into`: they copy registers. Returns
 * whether the instruction is one.
 */
export function lowerParameterAccess(
  program: ProgramLowering,
  at: ScopedInstruction,
  into: LaneOperation[],
): boolean {
  const access = parameterAccess(at);
  if (access === null) return false;
  const { address, data, type } = access;
  const binding = resolveName(program, at.scope, address.base!);
  if (binding?.kind !== 'parameter' && !(binding?.kind === 'variable' && binding.space === 'param'))
    return false;
  const bytes = typeBytes(type) as Bytes;
  const resolved = resolveOperand(program, at, data);
  if (resolved === null) return true;
  const elements = resolved.kind === 'vector' ? resolved.elements : [resolved];
  elements.forEach((element, i) => {
    const offset = Number(address.offset) + i * bytes;
    const partOf = (pieces: ParameterPieces) =>
      parameterPiece(pieces, offset, bytes, program.slots)?.slot ?? null;
    const why =
      binding.kind === 'variable'
        ? loadKernelParameter(
            program,
            at,
            { element, offset: offset + binding.address, type },
            into,
          )
        : copyPart(program, at, { element, type, part: partOf(binding.pieces) }, into);
    if (why !== null) program.unsupported.add(at.line, at.mnemonic, why);
  });
  return true;
}

function loadKernelParameter(
  program: ProgramLowering,
  at: ScopedInstruction,
  part: { readonly element: ResolvedOperand; readonly offset: number; readonly type: ScalarType },
  into: LaneOperation[],
): string | null {
  const { element, offset, type } = part;
  if (at.instruction.opcode === 'st') return 'parameters of a kernel cannot be written';
  if (element.kind === 'sink') return null;
  if (element.kind !== 'register') return 'its destination is no register';
  const { width } = element.slot;
  if (width === 'pred') return 'its destination is a predicate';
  const isSigned = type.startsWith('s');
  const bytes = typeBytes(type) as Bytes;
  const key = `${offset} ${bytes} ${isSigned} ${width}`;
  let register = program.parameterRegisters.get(key);
  if (register === undefined) {
    register = { slot: program.slots.allocate(width), offset, bytes, isSigned };
    program.parameterRegisters.set(key, register);
  }
  return move(program, at, register.slot, element.slot, into);
}

function copyPart(
  program: ProgramLowering,
  at: ScopedInstruction,
  access: {
    readonly element: ResolvedOperand;
    readonly type: ScalarType;
    readonly part: Slot | null;
  },
  into: LaneOperation[],
): string | null {
  const { element, type, part } = access;
  if (part === null) return 'parts of a parameter that overlap otherwise than one by one';
  if (element.kind === 'sink') return null;
  if (at.instruction.opcode === 'ld') {
    if (element.kind !== 'register') return 'its destination is no register';
    if (type.startsWith('s') && element.slot.width !== registerWidth(type))
      return 'sign extension of a parameter of a function';
    return move(program, at, part, element.slot, into);
  }
  if (element.kind === 'constant')
    return move(program, at, constant(element.bits, typeBytes(type), part), part, into);
  if (element.kind !== 'register') return 'it stores no value';
  return typeBytes(type) === 1
    ? lowByte(program, at, element.slot, part, into)
    : move(program, at, element.slot, part, into);
}

const constant = (bits: bigint, bytes: number, { width }: Slot): Source => ({
  bits: BigInt.asUintN(8 * bytes, bits),
  width,
});

function lowByte(
  program: ProgramLowering,
  { guard, line }: ScopedInstruction,
  from: Slot,
  to: Slot,
  into: LaneOperation[],
): string | null {
  const instruction = program.tables.lane('and', ['b16']);
  if (instruction === null) return 'and.b16 in the table of instructions';
  const sources: Source[] = [from, { bits: 0xffn, width: 16 }];
  into.push({ instruction, guard, destinations: [to], sources, line });
  return null;
}

/** A `mov` as wide as the narrower of the two. */
function move(
  program: ProgramLowering,
  { guard, line }: ScopedInstruction,
  from: Source,
  to: Slot,
  into: LaneOperation[],
): string | null {
  if (from.width === 'pred' || to.width === 'pred') return 'a predicate as a parameter';
  const type = `b${Math.min(from.width, to.width)}`;
  const instruction = program.tables.lane('mov', [type]);
  if (instruction === null) return `mov.${type} in the table of instructions`;
  into.push({ instruction, guard, destinations: [to], sources: [from], line });
  return null;
}
