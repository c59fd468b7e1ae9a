import type { LaneOperation, Slot } from '../../ptx/program/index.js';
import type { TracedOperation } from '../../ptx/run/index.js';
import type { ElementRule } from '../rules/index.js';
import {
  decidedValue,
  lostValue,
  noValue,
  placeInSlot,
  type LanePlace,
  type Trace,
} from '../trace/index.js';
import { OperandReader } from './operand-reader.js';
import { type Recording, siteOf } from './recording.js';

const warpLanes = 32;
/** Operands of an element that have a place, which is more than any has. */
const mostOperands = 3;

/** Exponent fields of numbers whose unit in the last place is 1: 2^23 in fp32, 2^52 in fp64 (in its high word). */
const wholeNumbers = {
  f32: { mask: 0x7f800000, field: 0x4b000000 },
  f64: { mask: 0x7ff00000, field: 0x43300000 },
} as const;

/** Makes the values of one element of an operation's results. */
class ElementFollower {
  readonly #recording: Recording;
  readonly #rule: ElementRule;
  readonly #site: string;
  readonly #operation: number;
  readonly #readers: readonly OperandReader[];
  readonly #result: LanePlace;
  readonly #isSum: boolean;
  readonly #operands = new Int32Array(mostOperands * warpLanes);

  constructor(recording: Recording, operation: LaneOperation, rule: ElementRule, result: Slot) {
    const { name, limit } = rule;
    const { format, byte } = rule.result;
    this.#recording = recording;
    this.#rule = rule;
    this.#site = siteOf(operation);
    this.#operation = recording.trace.addOperation({
      origin: rule.function === 'identity' && limit === null ? 'same' : 'function',
      name,
      function: rule.function,
      limit,
      format,
      site: this.#site,
    });
    this.#readers = rule.operands.map(
      (operand) => new OperandReader(recording, operation, operand),
    );
    this.#result = placeInSlot(result, byte);
    this.#isSum = ['add', 'subtract', 'fma'].includes(rule.function);
  }

  /** Takes down the operands, before the operation runs. */
  take(registers: number, lanes: number): void {
    for (let i = 0; i < this.#readers.length; i++)
      this.#readers[i].read(registers, lanes, {
        values: this.#operands,
        at: i,
        step: mostOperands,
      });
  }

  /** Gives the results their tags. */
  put(registers: number, lanes: number): void {
    const { file } = this.#recording;
    const { first, stride } = this.#result;
    const { bytes } = this.#rule.result.format;
    for (let lane = 0; lane < warpLanes; lane++) {
      if (((lanes >>> lane) & 1) === 0) continue;
      const address = registers + first + stride * lane;
      const value = this.#valueOf(mostOperands * lane, address);
      file.putValue(address, bytes, value);
    }
  }

  #valueOf(at: number, address: number): number {
    const { trace, file, losses } = this.#recording;
    const operands = this.#operands;
    const { format } = this.#rule.result;
    const count = this.#readers.length;
    let isDecided = false;
    for (let i = at; i < at + count; i++) {
      if (operands[i] === lostValue) return lostValue;
      if (operands[i] < 0) {
        isDecided = true;
        operands[i] = -operands[i];
      }
    }
    const bits = file.low(address, format.bytes);
    const high = file.high(address, format.bytes);
    if (format.isInteger) {
      if (isConstant(trace, operands, at, count)) return isDecided ? decidedValue : noValue;
      if (!this.#isExact(at, format.decode(bits, high))) {
        // It has wrapped around, as a hash does.
        losses.decide(this.#site);
        return decidedValue;
      }
    } else if (this.#isSum && this.#isRounding(at, bits, high)) {
      if (!isConstant(trace, operands, at, count)) losses.decide(this.#site);
      return noValue;
    }
    if (this.#rule.isFinite && Math.abs(trace.numberOf(operands[at])) > format.largest) {
      losses.decide(this.#site);
      return decidedValue;
    }
    const b = count > 1 ? operands[at + 1] : 0;
    const c = count > 2 ? operands[at + 2] : 0;
    if (format.bytes < 8) return trace.add(this.#operation, operands[at], b, c, bits);
    const wide = (BigInt(high) << 32n) | BigInt(bits);
    return trace.addWide(this.#operation, [operands[at], b, c], wide);
  }

  /** Whether a sum rounds a number to an integer: a constant is added to it whose unit in the last place is 1, as is that of the sum. */
  #isRounding(at: number, bits: number, high: number): boolean {
    const { trace } = this.#recording;
    const { name } = this.#rule.result.format;
    if (name !== 'f32' && name !== 'f64') return false;
    const { mask, field } = wholeNumbers[name];
    if (((name === 'f32' ? bits : high) & mask) !== field) return false;
    const isWhole = (value: number): boolean =>
      isConstant(trace, [value], 0, 1) &&
      ((name === 'f32' ? trace.bits[value] : trace.high[value]) & mask) === field;
    const last = at + this.#readers.length - 1;
    return (
      isWhole(this.#operands[last]) ||
      (this.#rule.function !== 'fma' && isWhole(this.#operands[at]))
    );
  }

  /** Whether an integer result is the exact value of the function: nothing has wrapped around. */
  #isExact(at: number, result: number): boolean {
    const { trace } = this.#recording;
    const [a, b, c] = [0, 1, 2].map((i) =>
      i < this.#readers.length ? trace.numberOf(this.#operands[at + i]) : 0,
    );
    const exact = {
      add: a + b,
      subtract: a - b,
      multiply: a * b,
      fma: a * b + c,
      absolute: Math.abs(a),
      negate: -a,
      identity: a,
    }[this.#rule.function as string];
    return exact === result && Number.isSafeInteger(exact);
  }
}

/** Whether some values are constants. */
function isConstant(trace: Trace, values: ArrayLike<number>, at: number, count: number): boolean {
  for (let i = at; i < at + count; i++)
    if (trace.operationOf(values[i]).origin !== 'constant') return false;
  return true;
}

/** Follows an operation that rounds real functions of its operands, element by element. */
export function followFloats(
  recording: Recording,
  operation: LaneOperation,
  rules: readonly ElementRule[],
  run: TracedOperation,
): TracedOperation {
  const { file } = recording;
  const [destination] = operation.destinations;
  if (destination === null) return run;
  const elements = rules.map(
    (rule) => new ElementFollower(recording, operation, rule, destination),
  );
  const heldBytes = destination.width === 'pred' ? 0 : Math.max(destination.width / 8, 4);
  const written = rules.reduce((sum, { result }) => sum + result.format.bytes, 0);
  const { first, stride } = placeInSlot(destination, 0);
  return (registers, lanes) => {
    for (const element of elements) element.take(registers, lanes);
    run(registers, lanes);
    for (const element of elements) element.put(registers, lanes);
    if (written === heldBytes) return;
    for (let lane = 0; lane < warpLanes; lane++)
      if (((lanes >>> lane) & 1) === 1)
        for (let byte = written; byte < heldBytes; byte++)
          file.putTag(registers + first + stride * lane + byte, 0);
  };
}
