import type { RegisterWidth, ResolvedOperand, Slot, Source } from '../instructions/index.js';
import type { PtxInstruction } from '../syntax/index.js';
import type { ProgramLowering, ScopedInstruction } from './lowering.js';
import type { LaneOperation } from './program.js';

function bitsOf(width: RegisterWidth): number {
  return width === 'pred' ? 1 : width;
}

/** A constant as a source of a width; a floating-point constant becomes one of the width's format. */
function constantSource(
  { format, bits }: Extract<ResolvedOperand, { kind: 'constant' }>,
  width: RegisterWidth,
): Source {
  if (width === 'pred') return { bits: bits === 0n ? 0n : 0xffffffffn, width };
  const view = new DataView(new ArrayBuffer(8));
  if (format === 'f64' && width === 32) {
    view.setBigUint64(0, BigInt.asUintN(64, bits));
    view.setFloat32(0, view.getFloat64(0));
    return { bits: BigInt(view.getUint32(0)), width };
  }
  if (format === 'f32' && width === 64) {
    view.setUint32(0, Number(BigInt.asUintN(32, bits)));
    view.setFloat64(0, view.getFloat32(0));
    return { bits: view.getBigUint64(0), width };
  }
  return { bits: BigInt.asUintN(width, bits), width };
}

/** The modifiers of an instruction in the table, which include the form of a vector operand of a `mov`. */
function rowModifiers(
  { opcode, modifiers }: PtxInstruction,
  [destination, source]: readonly ResolvedOperand[],
): readonly string[] {
  if (opcode !== 'mov') return modifiers;
  if (source?.kind === 'vector') return [...modifiers, `pack${source.elements.length}`];
  if (destination?.kind === 'vector') return [...modifiers, `unpack${destination.elements.length}`];
  return modifiers;
}

const flatten = (operand: ResolvedOperand): readonly ResolvedOperand[] => {
  if (operand.kind === 'vector') return operand.elements;
  return operand.kind === 'pair' ? [operand.first, operand.second] : [operand];
};

/** Instructions that read the carry flag. */
const carryReaders: readonly string[] = ['addc', 'subc', 'madc'];

/**
 * Adds the operations of a lane instruction to `into`; returns whether it is one. Faults of its operands are
 * collected.
 *
 * @param flag gives the carry flag of the function
 */
export function lowerLaneInstruction(
  program: ProgramLowering,
  at: ScopedInstruction,
  operands: readonly ResolvedOperand[],
  flag: () => Slot,
  into: LaneOperation[],
): boolean {
  const { line, guard, instruction } = at;
  const { opcode, modifiers } = instruction;
  const [first, ...rest] = operands;
  if (first === undefined) return false;
  const destinations: (Slot | null)[] = flatten(first).map((operand) =>
    operand.kind === 'register' ? operand.slot : null,
  );
  if (flatten(first).some(({ kind }) => kind !== 'register' && kind !== 'sink')) return false;
  if (modifiers.includes('cc')) destinations.push(flag());
  const values = rest.flatMap(flatten);
  const sinkWidth = opcode === 'setp' ? 'pred' : 128;
  const row = program.tables.lane(opcode, rowModifiers(instruction, operands), {
    destinations: destinations.map((slot) => slot?.width ?? sinkWidth),
    sources: values.length + (carryReaders.includes(opcode) ? 1 : 0),
  });
  if (row === null) return false;
  const wrong = (why: string) => {
    program.unsupported.add(line, at.mnemonic, why);
    return true;
  };
  for (const [i, slot] of destinations.entries())
    if (slot !== null && !holds(slot.width, row.destinations[i]))
      return wrong(`a register of ${slot.width} bits cannot hold its result`);
  const sources: Source[] = [];
  for (const value of values) {
    const source = sourceOf(program, at, value, row.sources[sources.length], into);
    if (source === null) return wrong(`operand ${sources.length + 2} is no value that it takes`);
    sources.push(source);
  }
  if (carryReaders.includes(opcode)) sources.push(flag());
  into.push({ instruction: row, guard, destinations, sources, line });
  return true;
}

/** Whether a register of one width can hold a value of another. */
function holds(register: RegisterWidth, value: RegisterWidth): boolean {
  return (register === 'pred') === (value === 'pred') && bitsOf(register) >= bitsOf(value);
}

function sourceOf(
  program: ProgramLowering,
  at: ScopedInstruction,
  operand: ResolvedOperand,
  width: RegisterWidth | undefined,
  into: LaneOperation[],
): Source | null {
  if (width === undefined) return null;
  if (operand.kind === 'constant') return constantSource(operand, width);
  if (operand.kind === 'register') return holds(operand.slot.width, width) ? operand.slot : null;
  if (operand.kind !== 'negated' || operand.operand.kind !== 'register') return null;
  const not = program.tables.lane('not', ['pred']);
  if (not === null || operand.operand.slot.width !== 'pred') return null;
  const negated = program.slots.allocate('pred');
  into.push({
    instruction: not,
    guard: null,
    destinations: [negated],
    sources: [operand.operand.slot],
    line: at.line,
  });
  return negated;
}
