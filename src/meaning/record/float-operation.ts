import type { LaneOperation } from '../../ptx/program/index.js';
import type { TracedOperation } from '../../ptx/run/index.js';
import type { ElementOperand, ElementRule } from '../rules/index.js';
import {
  decidedValue,
  lostValue,
  noValue,
  placeInSlot,
  type LanePlace,
  type RegisterFile,
  type ValueFormat,
} from '../trace/index.js';
import { type Recording, siteOf } from './recording.js';

const warpLanes = 32;

/** Reads an operand's value in a lane: its number, also where it is a constant; the number of one that has been decided is negative. */
type ReadOperand = (registers: number, lane: number) => number;

/**
 * Whether a value may be read as one of a format: the same, a bf16 widened to fp32, or an integer of the same number.
 *
 * @param number what the bits that are read stand for
 */
function isReadable(
  { trace, bf16 }: Recording,
  value: number,
  format: ValueFormat,
  number: number,
): boolean {
  const own = trace.formatOf(value);
  if (own === format) return true;
  if (own === bf16) return format.name === 'f32';
  return own.isInteger && format.isInteger && number === trace.numberOf(value);
}

/** The reader of an operand. What has been decided is a constant: it is the same wherever the decisions are. */
function readerOf(
  recording: Recording,
  operation: LaneOperation,
  { operand, byte, format }: ElementOperand,
  file: RegisterFile,
): ReadOperand {
  const { trace } = recording;
  const { sources } = operation;
  const site = siteOf(operation);
  const source = sources[operand];
  if (!('offset' in source)) {
    const shifted = source.bits >> BigInt(8 * byte);
    const value = trace.constant(
      format,
      Number(BigInt.asUintN(8 * Math.min(format.bytes, 4), shifted)),
      Number(BigInt.asUintN(32, shifted >> 32n)),
    );
    return () => value;
  }
  const { first, stride } = placeInSlot(source, byte);
  const { bytes } = format;
  return (registers, lane) => {
    const address = registers + first + stride * lane;
    const value = file.valueAt(address, bytes);
    const constant = (): number =>
      trace.constant(format, file.low(address, bytes), file.high(address, bytes));
    if (value === noValue) return constant();
    if (value === decidedValue) return -constant();
    const number = format.decode(file.low(address, bytes), file.high(address, bytes));
    if (value !== lostValue && isReadable(recording, value, format, number)) return value;
    // An integer that is read with the other sign.
    if (format.isInteger && value !== lostValue && trace.formatOf(value).isInteger)
      return -constant();
    if (!file.isLost(address, bytes)) recording.losses.lose(site);
    return lostValue;
  };
}

interface Element {
  readonly operation: number;
  readonly readers: readonly ReadOperand[];
  readonly result: LanePlace & { readonly format: ValueFormat };
  readonly rule: ElementRule;
}

/** Whether adding a constant rounds a number to an integer: its unit in the last place is 1 (numerics of fp32 and fp64). */
function isRoundingConstant({ name }: ValueFormat, value: number): boolean {
  const magnitude = Math.abs(value);
  const first = name === 'f32' ? 2 ** 23 : name === 'f64' ? 2 ** 52 : Infinity;
  return magnitude >= first && magnitude < 2 * first;
}

/** Follows an operation that rounds real functions of its operands, element by element. */
export function followFloats(
  recording: Recording,
  operation: LaneOperation,
  rules: readonly ElementRule[],
  run: TracedOperation,
): TracedOperation {
  const { trace, losses, file } = recording;
  const site = siteOf(operation);
  const [destination] = operation.destinations;
  if (destination === null) return run;
  const elements = rules.map((rule): Element => {
    const { format, byte } = rule.result;
    return {
      operation: trace.addOperation({
        origin: rule.function === 'identity' && rule.limit === null ? 'same' : 'function',
        name: rule.name,
        function: rule.function,
        limit: rule.limit,
        format,
        site,
      }),
      readers: rule.operands.map((operand) => readerOf(recording, operation, operand, file)),
      result: { ...placeInSlot(destination, byte), format },
      rule,
    };
  });
  const most = Math.max(...elements.map(({ readers }) => readers.length));
  const operands = new Int32Array(elements.length * most * warpLanes);
  const heldBytes = destination.width === 64 ? 8 : destination.width === 128 ? 16 : 4;
  const written = rules.reduce((sum, { result }) => sum + result.format.bytes, 0);

  /** The value of an element in a lane, whose operands are in `operands` from `at` on. */
  const valueOf = (element: Element, at: number, address: number): number => {
    const { readers, rule, result } = element;
    let [isConstant, isDecided] = [true, false];
    for (let i = at; i < at + readers.length; i++) {
      if (operands[i] < 0) {
        isDecided = true;
        operands[i] = -operands[i];
      }
      const value = operands[i];
      if (value === lostValue) return lostValue;
      if (trace.operationOf(value).origin !== 'constant') isConstant = false;
    }
    const { format } = result;
    const bits = file.low(address, format.bytes);
    const high = file.high(address, format.bytes);
    if (isConstant && format.isInteger) return isDecided ? decidedValue : noValue;
    if (rule.function === 'add' || rule.function === 'fma' || rule.function === 'subtract') {
      const added = operands[at + readers.length - 1];
      const other = operands[at];
      for (const value of rule.function === 'fma' ? [added] : [added, other])
        if (
          trace.operationOf(value).origin === 'constant' &&
          isRoundingConstant(format, trace.numberOf(value)) &&
          isRoundingConstant(format, format.decode(bits, high))
        ) {
          if (!isConstant) losses.decide(site);
          return noValue;
        }
    }
    if (
      format.isInteger &&
      !isExactInteger(
        recording,
        rule,
        operands.subarray(at, at + readers.length),
        format.decode(bits, high),
      )
    ) {
      // It has wrapped around, as a hash does.
      losses.decide(site);
      return decidedValue;
    }
    if (rule.isFinite && Math.abs(trace.numberOf(operands[at])) > format.largest) {
      losses.decide(site);
      return decidedValue;
    }
    const [a, b, c] = [
      operands[at],
      readers.length > 1 ? operands[at + 1] : 0,
      readers.length > 2 ? operands[at + 2] : 0,
    ];
    if (format.bytes < 8) return trace.add(element.operation, a, b, c, bits);
    return trace.addWide(element.operation, [a, b, c], (BigInt(high) << 32n) | BigInt(bits));
  };

  return (registers, lanes) => {
    elements.forEach(({ readers }, e) => {
      for (let lane = 0; lane < warpLanes; lane++) {
        if (((lanes >>> lane) & 1) === 0) continue;
        const at = (e * warpLanes + lane) * most;
        for (let i = 0; i < readers.length; i++) operands[at + i] = readers[i](registers, lane);
      }
    });
    run(registers, lanes);
    for (let lane = 0; lane < warpLanes; lane++) {
      if (((lanes >>> lane) & 1) === 0) continue;
      for (let e = 0; e < elements.length; e++) {
        const element = elements[e];
        const { first, stride, format } = element.result;
        const address = registers + first + stride * lane;
        file.putValue(
          address,
          format.bytes,
          valueOf(element, (e * warpLanes + lane) * most, address),
        );
      }
      if (written < heldBytes) {
        const { first, stride } = placeInSlot(destination, 0);
        for (let byte = written; byte < heldBytes; byte++)
          file.putTag(registers + first + stride * lane + byte, 0);
      }
    }
  };
}

/** Whether an integer result is the exact value of the function: nothing has wrapped around. */
function isExactInteger(
  { trace }: Recording,
  rule: ElementRule,
  operands: Int32Array,
  result: number,
): boolean {
  const numbers = [...operands].map((value, i) =>
    rule.operands[i].format.decode(trace.bits[value], trace.high[value]),
  );
  const [a, b = 0, c = 0] = numbers;
  const exact = {
    add: a + b,
    subtract: a - b,
    multiply: a * b,
    fma: a * b + c,
    absolute: Math.abs(a),
    negate: -a,
    identity: a,
  }[rule.function as string];
  return exact === result && Number.isSafeInteger(exact);
}
