import type { LaneOperation } from '../../ptx/program/index.js';
import type { ElementOperand } from '../rules/index.js';
import {
  decidedValue,
  lostValue,
  noValue,
  placeInSlot,
  type LanePlace,
  type ValueFormat,
} from '../trace/index.js';
import { type Recording, siteOf } from './recording.js';

const warpLanes = 32;

/** Where the values of lanes are written: that of a lane at `at` + `step` · lane. */
export interface LaneTarget {
  readonly values: Int32Array;
  readonly at: number;
  readonly step: number;
}

/** Reads an operand of numbers: the values that lanes have there. */
export class OperandReader {
  readonly #recording: Recording;
  readonly #format: ValueFormat;
  readonly #site: string;
  readonly #place: LanePlace | null;
  /** The last constant, by its bits: lanes often have the same. */
  #lastBits = 0;
  #lastConstant: number | null = null;

  constructor(
    recording: Recording,
    operation: LaneOperation,
    { operand, byte, format }: ElementOperand,
  ) {
    this.#recording = recording;
    this.#format = format;
    this.#site = siteOf(operation);
    const source = operation.sources[operand];
    this.#place = 'offset' in source ? placeInSlot(source, byte) : null;
    if ('offset' in source) return;
    const shifted = source.bits >> BigInt(8 * byte);
    this.#lastConstant = recording.trace.constant(
      format,
      Number(BigInt.asUintN(8 * Math.min(format.bytes, 4), shifted)),
      Number(BigInt.asUintN(32, shifted >> 32n)),
    );
  }

  /**
   * Reads the values of the lanes of a mask: their numbers, also of constants. What has been decided is a constant, since it is
   * the same wherever the decisions are; its number is negative.
   */
  read(registers: number, lanes: number, { values, at, step }: LaneTarget): void {
    const place = this.#place;
    if (place === null) {
      for (let lane = 0; lane < warpLanes; lane++) values[at + step * lane] = this.#lastConstant!;
      return;
    }
    const { file, trace } = this.#recording;
    const format = this.#format;
    const { bytes } = format;
    for (let lane = 0; lane < warpLanes; lane++) {
      if (((lanes >>> lane) & 1) === 0) continue;
      const address = registers + place.first + place.stride * lane;
      const quick = bytes === 4 ? file.wordAt(address) : bytes === 2 ? file.halfAt(address) : -1;
      const isQuick = quick > decidedValue && trace.formatOf(quick) === format;
      values[at + step * lane] = isQuick
        ? quick
        : quick === noValue
          ? this.#constant(address)
          : this.#slow(address);
    }
  }

  #constant(address: number): number {
    const { trace, file } = this.#recording;
    const format = this.#format;
    const bits = file.low(address, format.bytes);
    if (format.bytes === 8) return trace.constant(format, bits, file.high(address, 8));
    if (this.#lastConstant === null || bits !== this.#lastBits) {
      this.#lastBits = bits;
      this.#lastConstant = trace.constant(format, bits);
    }
    return this.#lastConstant;
  }

  #slow(address: number): number {
    const { trace, file, losses } = this.#recording;
    const format = this.#format;
    const { bytes } = format;
    const value = file.valueAt(address, bytes);
    if (value === noValue) return this.#constant(address);
    if (value === decidedValue) return -this.#constant(address);
    const number = format.decode(file.low(address, bytes), file.high(address, bytes));
    if (value !== lostValue && this.#isReadable(value, number)) return value;
    // An integer that is read with the other sign.
    if (format.isInteger && value !== lostValue && trace.formatOf(value).isInteger)
      return -this.#constant(address);
    if (!file.isLost(address, bytes)) losses.lose(this.#site);
    return lostValue;
  }

  /**
   * Whether a value may be read as one of the format: the same, a bf16 widened to fp32, or an integer of the same number.
   *
   * @param number what the bits that are read stand for
   */
  #isReadable(value: number, number: number): boolean {
    const { trace, bf16 } = this.#recording;
    const format = this.#format;
    const own = trace.formatOf(value);
    if (own === format) return true;
    if (own === bf16) return format.name === 'f32';
    return own.isInteger && format.isInteger && number === trace.numberOf(value);
  }
}
