import type { LaneInstruction } from '../../isa/index.js';
import { type Limit, type RealFunction, valueFormat, type ValueFormat } from '../trace/index.js';

/** A value in a lane's register. */
export interface ElementOperand {
  /** The number of the source or the destination. */
  readonly operand: number;
  /** Its first byte in the register. */
  readonly byte: number;
  readonly format: ValueFormat;
}

/** A real function that an instruction computes and rounds: one element of its result. */
export interface ElementRule {
  readonly function: RealFunction;
  readonly limit: Limit;
  readonly operands: readonly ElementOperand[];
  readonly result: ElementOperand;
  /** The instruction on one element: `fma.rn.bf16` for `fma.rn.bf16x2`. */
  readonly name: string;
  /** Whether numbers beyond the format's largest become that. */
  readonly isFinite: boolean;
}

const typePattern = /^(?:b?f16|f32|f64|tf32|e\dm\d|ue8m0|[su](?:8|16|32|64))(?:x([24]))?$/;

/** A type of a name: of one element, and how many elements a register has. */
interface PackedType {
  readonly element: string;
  readonly count: number;
}

function packedType(modifier: string): PackedType | null {
  const match = typePattern.exec(modifier);
  return match && { element: modifier.replace(/x[24]$/, ''), count: Number(match[1] ?? 1) };
}

/** Functions by opcode, of as many operands as the instruction has. */
const functions: Readonly<Record<string, RealFunction>> = {
  add: 'add',
  sub: 'subtract',
  mul: 'multiply',
  mul24: 'multiply',
  fma: 'fma',
  mad: 'fma',
  mad24: 'fma',
  div: 'divide',
  rcp: 'reciprocal',
  sqrt: 'square-root',
  rsqrt: 'reciprocal-square-root',
  ex2: 'exp2',
  lg2: 'log2',
  sin: 'sine',
  cos: 'cosine',
  tanh: 'tanh',
  abs: 'absolute',
  neg: 'negate',
  copysign: 'copysign',
  max: 'larger-magnitude',
  min: 'smaller-magnitude',
};

/** Modifiers with which an integer result is no real function of the operands, or not of them alone. */
const unlike = ['hi', 'cc'];

function limitOf(modifiers: readonly string[]): Limit {
  if (modifiers.includes('relu')) return 'positive';
  return modifiers.includes('sat') ? 'saturate' : null;
}

/** The name of the instruction on one element of its registers. */
function elementName(name: string): string {
  return name.replace(/(?<=\d)x[24](?=\.|$)/g, '');
}

/** The rules of a conversion: elements of a vector, the first operand in the highest part, or element by element. */
function conversionRules(
  { name, sources }: LaneInstruction,
  [to, from]: readonly PackedType[],
  limit: Limit,
): readonly ElementRule[] | null {
  const [format, source] = [valueFormat(to.element), valueFormat(from.element)];
  if (format === null || source === null || to.count < from.count) return null;
  // Numbers of less than a byte have no bytes, and a power of two is a decision.
  if ([format, source].some(({ name: one }) => one === 'e2m1') || format.name === 'ue8m0')
    return null;
  return Array.from({ length: to.count }, (_, i): ElementRule => {
    const operand =
      from.count === to.count
        ? { operand: 0, byte: i * source.bytes }
        : { operand: to.count - 1 - i, byte: 0 };
    return {
      function: 'identity',
      limit,
      operands: [{ ...operand, format: source }],
      result: { operand: 0, byte: i * format.bytes, format },
      name: elementName(name),
      isFinite: name.includes('.satfinite'),
    };
  }).filter(({ operands: [{ operand }] }) => operand < sources.length);
}

/** The formats of the operands: of products in half precision with a sum in fp32, the last one's is that of the sum. */
function operandTypes(
  { sources }: LaneInstruction,
  types: readonly PackedType[],
  modifiers: readonly string[],
): readonly string[] {
  const [first] = types;
  const isWide = modifiers.includes('wide');
  const last = types[types.length - 1];
  const sum = isWide ? widened(last.element) : first.element;
  const isMixed = types.length === 2 || isWide;
  return sources.map((_, i) => {
    const isSum = i === 2 || (isMixed && !isWide && sources.length === 2 && i === 1);
    return isSum ? sum : last.element;
  });
}

function widened(type: string): string {
  return `${type[0]}${2 * Number(type.slice(1))}`;
}

/**
 * The real functions that an instruction computes, one an element of its result; null where it is none that is known. The
 * operands' order and types are those of the PTX ISA.
 */
export function laneRules(instruction: LaneInstruction): readonly ElementRule[] | null {
  const { name } = instruction;
  const [opcode, ...modifiers] = name.split('.');
  const types = modifiers.map(packedType).filter((type) => type !== null);
  const limit = limitOf(modifiers);
  if (opcode === 'cvt')
    return types.length === 2 && !modifiers.includes('pack')
      ? conversionRules(instruction, types, limit)
      : null;
  const realFunction = functions[opcode];
  if (realFunction === undefined || types.length === 0) return null;
  if (modifiers.some((modifier) => unlike.includes(modifier))) return null;
  if (instruction.destinations.length !== 1 || instruction.sources.includes('pred')) return null;
  const isExtreme = opcode === 'max' || opcode === 'min';
  if (isExtreme && (instruction.sources.length !== 2 || modifiers.includes('xorsign'))) return null;
  const named = operandTypes(instruction, types, modifiers).map(valueFormat);
  const formats = named.filter((one) => one !== null);
  const resultType = modifiers.includes('wide') ? widened(types[0].element) : types[0].element;
  const format = valueFormat(resultType);
  if (format === null || formats.length < named.length) return null;
  // PTX names the sign first.
  const order = opcode === 'copysign' ? [1, 0] : formats.map((_, source) => source);
  const operandOf = (source: number, element: number): ElementOperand => {
    const own = formats[source];
    return { operand: source, byte: element * own.bytes, format: own };
  };
  return Array.from({ length: types[0].count }, (_, i) => ({
    function: realFunction,
    // Integers are cut to the range of their type instead, and then the sum is no longer the function.
    limit: format.isInteger ? null : limit,
    operands: order.map((source) => operandOf(source, i)),
    result: { operand: 0, byte: i * format.bytes, format },
    name: elementName(name),
    isFinite: false,
  }));
}
