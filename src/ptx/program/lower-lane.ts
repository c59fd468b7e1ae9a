import type {
  LaneInstruction,
  RegisterWidth,
  ResolvedOperand,
  Slot,
  Source,
} from '../instructions/index.js';
import type { ProgramLowering, ScopedInstruction } from './lowering.js';
import type { LaneOperation } from './operation.js';

/** The bits of a width. */
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

/** The name of an instruction in the table of lane instructions: a vector operand is said in it. */
function rowName(mnemonic: string, operands: readonly ResolvedOperand[]): string {
  if (!mnemonic.startsWith('mov.')) return mnemonic;
  const [destination, source] = operands;
  if (source?.kind === 'vector') return `${mnemonic}.pack${source.elements.length}`;
  if (destination?.kind === 'vector') return `${mnemonic}.unpack${destination.elements.length}`;
  return mnemonic;
}

const flatten = (operand: ResolvedOperand): readonly ResolvedOperand[] => {
  if (operand.kind === 'vector') return operand.elements;
  return operand.kind === 'pair' ? [operand.first, operand.second] : [operand];
};

/**
 * The operations of an instruction of lanes, into `into`; whether it is one. What is wrong with its operands is
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
  const instruction = program.tables.lane.get(rowName(at.mnemonic, operands));
  if (instruction === undefined) return false;
  const { line, guard } = at;
  const [first, ...rest] = operands;
  const wrong = (why: string) => {
    program.unsupported.add(line, at.mnemonic, why);
    return true;
  };
  if (first === undefined) return wrong('it has no operands');
  const destinations: (Slot | null)[] = [];
  for (const operand of flatten(first)) {
    if (operand.kind !== 'register' && operand.kind !== 'sink')
      return wrong('its destination is no register');
    const slot = operand.kind === 'register' ? operand.slot : null;
    const width = instruction.destinations[destinations.length];
    if (slot !== null && width !== undefined && !holds(slot.width, width))
      return wrong(`a register of ${slot.width} bits cannot hold its result of ${width}`);
    destinations.push(slot);
  }
  const isFlagged = /\.cc(\.|$)/.test(at.mnemonic);
  while (destinations.length < instruction.destinations.length)
    destinations.push(
      isFlagged && destinations.length === instruction.destinations.length - 1 ? flag() : null,
    );
  const sources: Source[] = [];
  for (const operand of rest.flatMap(flatten)) {
    const source = sourceOf(program, at, operand, instruction.sources[sources.length], into);
    if (source === null)
      return wrong(`its operand ${sources.length + 1} is no value that it takes`);
    sources.push(source);
  }
  if (sources.length === instruction.sources.length - 1 && readsFlag(instruction))
    sources.push(flag());
  if (
    sources.length !== instruction.sources.length ||
    destinations.length !== instruction.destinations.length
  )
    return wrong(`it has ${instruction.sources.length} sources, not ${sources.length}`);
  into.push({ instruction, guard, destinations, sources, line });
  return true;
}

/** Whether a register of one width can hold a value of another. */
function holds(register: RegisterWidth, value: RegisterWidth): boolean {
  return (register === 'pred') === (value === 'pred') && bitsOf(register) >= bitsOf(value);
}

function readsFlag({ name, sources }: LaneInstruction): boolean {
  return /^(addc|subc|madc)\./.test(name) && sources[sources.length - 1] === 'pred';
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
  const not = program.tables.lane.get('not.pred');
  if (not === undefined || operand.operand.slot.width !== 'pred') return null;
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
