import type { LaneOperation } from '../../ptx/program/index.js';
import type { TracedOperation } from '../../ptx/run/index.js';
import {
  byteSlots,
  decidedValue,
  lostValue,
  noValue,
  placeInSlot,
  type LanePlace,
  valueFormat,
  type ValueFormat,
} from '../trace/index.js';
import { OperandReader } from './operand-reader.js';
import { type Recording, siteOf } from './recording.js';

const warpLanes = 32;
const mostOperands = 3;

/** The format and the number of elements that an instruction compares: those of the last type of its name. */
function comparedFormat(
  name: string,
): { readonly format: ValueFormat; readonly count: number } | null {
  const type = name.split('.').findLast((part) => /^(?:b?f16|f32|f64|[su]\d+)(?:x2)?$/.test(part));
  if (type === undefined) return null;
  const format = valueFormat(type.replace(/x2$/, ''));
  return format && { format, count: type.endsWith('x2') ? 2 : 1 };
}

/** Makes the values of one element of the results of `max` or `min`. */
class ExtremumFollower {
  readonly #recording: Recording;
  readonly #format: ValueFormat;
  readonly #name: string;
  readonly #site: string;
  readonly #choice: number;
  readonly #readers: readonly OperandReader[];
  readonly #result: LanePlace;
  readonly #operands = new Int32Array(mostOperands * warpLanes);

  constructor(
    recording: Recording,
    operation: LaneOperation,
    format: ValueFormat,
    element: number,
    result: LanePlace,
  ) {
    this.#recording = recording;
    this.#format = format;
    this.#site = siteOf(operation);
    this.#name = operation.instruction.name.replace(/x2(?=\.|$)/, '');
    this.#choice = recording.trace.knownOperation({
      origin: 'choice',
      name: this.#name,
      function: null,
      limit: null,
      format,
      site: this.#site,
    });
    this.#readers = operation.sources.map(
      (_, operand) =>
        new OperandReader(recording, operation, { operand, byte: element * format.bytes, format }),
    );
    this.#result = result;
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
    const { bytes } = this.#format;
    for (let lane = 0; lane < warpLanes; lane++) {
      if (((lanes >>> lane) & 1) === 0) continue;
      const address = registers + first + stride * lane;
      file.putValue(address, bytes, this.#valueOf(mostOperands * lane, address));
    }
  }

  #valueOf(at: number, address: number): number {
    const { trace, file, losses } = this.#recording;
    const operands = this.#operands;
    const format = this.#format;
    const end = at + this.#readers.length;
    let [isConstant, isDecided] = [true, false];
    for (let i = at; i < end; i++) {
      if (operands[i] === lostValue) return lostValue;
      if (operands[i] < 0) {
        isDecided = true;
        operands[i] = -operands[i];
      } else if (trace.operationOf(operands[i]).origin !== 'constant') isConstant = false;
    }
    if (isConstant && !isDecided) return noValue;
    // Integers of which one has been decided; a number that has been decided is a constant.
    if (isDecided && (format.isInteger || isConstant)) return decidedValue;
    const low = file.low(address, format.bytes);
    const high = file.high(address, format.bytes);
    // A NaN that wins has bits of its own.
    const isNaN = Number.isNaN(format.decode(low, high));
    const wins = (operand: number) =>
      isNaN ? Number.isNaN(trace.numberOf(operand)) : this.#hasBits(operand, low, high);
    let winner = at;
    while (winner < end && !wins(operands[winner])) winner++;
    const zero = trace.constant(format, 0, 0);
    const isZero = low === 0 && high === 0 && this.#name.includes('relu');
    if (winner === end && !isZero) {
      losses.lose(this.#site);
      return lostValue;
    }
    const result = winner === end ? zero : operands[winner];
    // The winner stands last; a third operand goes into the choice of the first two.
    const [a, b] = [operands[at], end - at > 1 ? operands[at + 1] : zero];
    if (end - at < 3) return this.#add(a, b, result, low, high);
    const first = this.#isFirst(a, b) ? a : b;
    const pair = this.#add(a, b, first, ...this.#bitsOf(first));
    return this.#add(pair, operands[at + 2], result, low, high);
  }

  /** Whether the first of two operands wins, with −0 less than +0; a NaN loses, or wins with `.NaN`. */
  #isFirst(a: number, b: number): boolean {
    const { trace } = this.#recording;
    const [x, y] = [trace.numberOf(a), trace.numberOf(b)];
    if (Number.isNaN(x) || Number.isNaN(y))
      return Number.isNaN(this.#name.includes('.NaN') ? x : y);
    return Object.is(x, this.#name.startsWith('max') ? Math.max(x, y) : Math.min(x, y));
  }

  /** The bits that a value has in the format, of which bf16 are the upper half. */
  #bitsOf(value: number): readonly [low: number, high: number] {
    const { trace, bf16 } = this.#recording;
    const isUpper = trace.formatOf(value) === bf16 && this.#format !== bf16;
    return isUpper ? [trace.bits[value] * 2 ** 16, 0] : [trace.bits[value], trace.high[value]];
  }

  /** Whether a value has these bits in the format: a bf16 those above a zero half, an integer those of its number. */
  #hasBits(value: number, low: number, high: number): boolean {
    const { trace, bf16 } = this.#recording;
    const own = trace.formatOf(value);
    if (own === bf16 && this.#format !== bf16) return trace.bits[value] * 2 ** 16 === low;
    if (own.bytes !== this.#format.bytes)
      return this.#format.decode(low, high) === trace.numberOf(value);
    return trace.bits[value] === low && trace.high[value] === high;
  }

  #add(a: number, b: number, winner: number, low: number, high: number): number {
    const { trace } = this.#recording;
    if (this.#format.bytes < 8) return trace.add(this.#choice, a, b, winner, low);
    return trace.addWide(this.#choice, [a, b, winner], (BigInt(high) << 32n) | BigInt(low));
  }
}

/**
 * Follows `max` and `min`: the result is the operand whose bits won; the operation stays one of all operands, since on other
 * inputs another may win. Null where the elements have no format.
 */
export function followExtreme(
  recording: Recording,
  operation: LaneOperation,
  run: TracedOperation,
): TracedOperation | null {
  const { file } = recording;
  const { instruction, sources, destinations } = operation;
  const compared = comparedFormat(instruction.name);
  const [destination] = destinations;
  if (destination === null) return run;
  if (compared === null) return null;
  const { format, count } = compared;
  const elements = Array.from(
    { length: count },
    (_, i) =>
      new ExtremumFollower(
        recording,
        operation,
        format,
        i,
        placeInSlot(destination, i * format.bytes),
      ),
  );
  const slots = [...byteSlots(sources), ...byteSlots(destinations)].map(({ slot }) => slot);
  return (registers, lanes) => {
    if (!slots.some((slot) => file.isTagged(registers, slot))) return run(registers, lanes);
    for (const element of elements) element.take(registers, lanes);
    run(registers, lanes);
    for (const element of elements) element.put(registers, lanes);
  };
}
