import type { LaneValue } from '../../isa/index.js';
import type { LaneOperation } from '../../ptx/program/index.js';
import { type BitsEffect, findBitsEffects, type ProbedOperand } from '../rules/index.js';
import {
  addRawWord,
  decidedValue,
  lostValue,
  noValue,
  numberOfRawWord,
  placeInSlot,
  type LanePlace,
  type Operation,
  valueFormat,
} from '../trace/index.js';
import { type BitSource, bitSourceAt } from './bit-source.js';
import type { BitsOperation } from './byte-operation.js';
import { type Recording, siteOf } from './recording.js';

const wordBytes = 4;
const exponentBits = 23;
/** Below it an fp32 number times a power of two may have become zero, or less exact. */
const smallestScaled = 2 ** -125;

/** A source of 32 bits in one lane. */
interface WordOperand {
  /** Its number; `noValue` where it has no tag. */
  readonly value: number;
  readonly halves: readonly [number, number];
  readonly bits: number;
}

/** What a mask does to a number of 16 bits, or of 32, by its sign bit and the bits of its significand. */
type MaskEffect = 'negate' | 'absolute' | 'cut' | null;

function effectOfMask(
  opcode: string,
  mask: number,
  bits: 16 | 32,
  significand: number,
): MaskEffect {
  const all = bits === 32 ? 0xffffffff : 0xffff;
  const sign = 2 ** (bits - 1);
  if (opcode === 'xor') return mask === sign ? 'negate' : null;
  if (opcode !== 'and') return null;
  if (mask === all - sign) return 'absolute';
  const cut = all - mask;
  // A run of the lowest bits.
  return cut > 0 && cut < 2 ** significand && (cut & (cut + 1)) === 0 ? 'cut' : null;
}

/** Bits of the significand that are stored, of formats of words and halves. */
const storedBits: Readonly<Record<string, number>> = { f32: 23, f16: 10, bf16: 7 };

/** The effects of an instruction on bits of its operands, which are asked for again and again. */
class KnownEffects {
  readonly #known = new Map<string, readonly BitsEffect[]>();

  of(
    instruction: LaneOperation['instruction'],
    fixed: readonly (LaneValue | null)[],
    masks: readonly bigint[],
  ): readonly BitsEffect[] {
    const key = `${fixed.map(String).join(' ')} ${masks.join(' ')}`;
    let effects = this.#known.get(key);
    if (effects === undefined) {
      if (this.#known.size > 4096) this.#known.clear();
      this.#known.set(key, (effects = findBitsEffects(instruction, fixed, masks)));
    }
    return effects;
  }
}

/**
 * Follows what logic and integer instructions do to numbers. A trick counts as a real function only where the bits prove it: a
 * sign by `xor`, a magnitude or a cut by `and`, a power of two by adding to the exponent or by overwriting it, sums and shifts of
 * integers that do not wrap around, and `xor` sums of which all but one value cancel. Everything else decides where no bit of a
 * significand has a part in it, and else it is lost.
 */
export class WordOperation implements BitsOperation {
  readonly #recording: Recording;
  readonly #operation: LaneOperation;
  readonly #opcode: string;
  readonly #site: string;
  readonly #isWord: boolean;
  readonly #places: readonly (LanePlace | null)[];
  readonly #constants: readonly number[];
  readonly #results: readonly (LanePlace & { readonly bytes: number })[];
  readonly #effects = new KnownEffects();
  #operands: readonly WordOperand[] = [];
  #bitSources: readonly (BitSource | null)[] = [];
  #values: readonly LaneValue[] = [];

  constructor(recording: Recording, operation: LaneOperation) {
    const { instruction, sources, destinations } = operation;
    this.#recording = recording;
    this.#operation = operation;
    this.#site = siteOf(operation);
    this.#opcode = instruction.name.split('.')[0];
    const [destination] = destinations;
    this.#isWord =
      destinations.length === 1 &&
      destination?.width === 32 &&
      sources.length === 2 &&
      sources.every(({ width }) => width === 32);
    this.#results = destinations.flatMap((slot) =>
      slot === null || slot.width === 'pred'
        ? []
        : [{ ...placeInSlot(slot, 0), bytes: Math.max(slot.width / 8, wordBytes) }],
    );
    this.#places = sources.map((source) =>
      'offset' in source && source.width !== 'pred' ? placeInSlot(source, 0) : null,
    );
    this.#constants = sources.map((source) =>
      'bits' in source ? Number(BigInt.asUintN(32, source.bits)) : 0,
    );
  }

  #operandAt(registers: number, lane: number, i: number): WordOperand {
    const place = this.#places[i];
    if (place === null || place === undefined)
      return { value: noValue, halves: [noValue, noValue], bits: this.#constants[i] ?? 0 };
    const { file, trace } = this.#recording;
    const address = registers + place.first + place.stride * lane;
    const value = file.valueAt(address, 4);
    const isWord = value !== lostValue && trace.formatOf(value).bytes === 4;
    return {
      value,
      halves: isWord
        ? [noValue, noValue]
        : [file.valueAt(address, 2), file.valueAt(address + 2, 2)],
      bits: file.low(address, 4),
    };
  }

  claims(registers: number, lane: number, operands: readonly ProbedOperand[]): boolean {
    if (!this.#isWord || this.#opcode !== 'and') return false;
    const tagged = operands.findIndex(({ varying }) => varying !== 0);
    const { value } = this.#operandAt(registers, lane, tagged);
    if (value <= decidedValue) return false;
    const { name } = this.#recording.trace.formatOf(value);
    const mask = Number(operands[1 - tagged].value);
    return name === 'f32' && effectOfMask('and', mask, 32, exponentBits) === 'cut';
  }

  before(registers: number, lane: number, values: readonly LaneValue[]): void {
    this.#operands = this.#isWord
      ? [this.#operandAt(registers, lane, 0), this.#operandAt(registers, lane, 1)]
      : [];
    this.#bitSources = this.#operation.sources.map((source) =>
      bitSourceAt(this.#recording, source, registers, lane),
    );
    this.#values = values;
  }

  after(registers: number, lane: number): void {
    const [first] = this.#results;
    const { file } = this.#recording;
    const addressOf = ({ first: start, stride }: LanePlace) => registers + start + stride * lane;
    const put = (value: number): void => {
      for (const place of this.#results) file.putValue(addressOf(place), place.bytes, value);
    };
    if (first === undefined) return this.#recording.losses.decide(this.#site);
    if (this.#bitSources.includes(null)) return put(lostValue);
    const address = addressOf(first);
    if (this.#operands.length === 2) {
      const bits = file.low(address, 4);
      const value = this.#sum(bits) ?? this.#swap() ?? this.#cut(bits);
      if (value !== null) return put(value);
      const halves = this.#maskedHalves(bits);
      if (halves !== null) {
        file.putValue(address, 2, halves[0]);
        file.putValue(address + 2, 2, halves[1]);
        return;
      }
    }
    put(this.#ofBits(address));
  }

  #operationOf(origin: Operation['origin'], format: string, name: RealName): number {
    return this.#recording.trace.knownOperation({
      origin,
      name: `${this.#operation.instruction.name} ${name ?? ''}`,
      function: name,
      limit: null,
      format: valueFormat(format)!,
      site: this.#site,
    });
  }

  /** The result by the bits of significands that have a part in it: a decision, a number, a raw word of one, or lost. */
  #ofBits(address: number): number {
    const { losses, file, trace } = this.#recording;
    const sources = this.#bitSources.map((source) => source!);
    const { instruction } = this.#operation;
    const fixed = this.#values.map((value, i) => (sources[i].mask === 0n ? value : null));
    const effects = this.#effects.of(
      instruction,
      fixed,
      sources.map(({ mask }) => mask),
    );
    const dependent = effects.flatMap((effect, i) => (effect === 'none' ? [] : [{ effect, i }]));
    if (dependent.length === 0) {
      losses.decide(this.#site);
      return decidedValue;
    }
    const [{ effect, i }] = dependent;
    const { number } = sources[i];
    const [result] = this.#results;
    const isSum = this.#opcode === 'add' || this.#opcode === 'sub';
    const isOne = dependent.length === 1 && this.#results.length === 1 && number !== null;
    if (!isOne || (effect === 'changed' && !isSum)) return this.#lose();
    const sign = this.#effects.of(
      instruction,
      fixed,
      sources.map((_, j) => (j === i ? number.sign : 0n)),
    )[i];
    const word = {
      of: number.of,
      isKept: number.isKept && effect === 'kept',
      isSignFixed: number.isSignFixed || sign === 'none',
      name: instruction.name,
      site: this.#site,
    };
    const bits = file.low(address, result.bytes === 8 ? 8 : this.#numberBytes(number.sign));
    const ofFormat = trace.formatOf(number.of);
    // The high word of a number of 64 bits is a number only beside its low one.
    const isWhole = ofFormat.bytes * 8 === number.sign.toString(2).length;
    const known = isWhole
      ? numberOfRawWord(trace, word, bits, ofFormat.bytes === 8 ? file.high(address, 8) : bits)
      : null;
    if (known !== null) return known;
    return isWhole && ofFormat.bytes !== 4 ? this.#lose() : addRawWord(trace, word, bits);
  }

  #numberBytes(sign: bigint): 2 | 4 {
    return sign.toString(2).length === 16 ? 2 : 4;
  }

  #lose(): number {
    this.#recording.losses.lose(this.#site);
    return lostValue;
  }

  /** An integer sum, or a power of two times an fp32 number. */
  #sum(bits: number): number | null {
    const isDifference = this.#opcode === 'sub';
    if (this.#opcode === 'shl') return this.#shifted(bits);
    if (this.#opcode !== 'add' && !isDifference) return null;
    const { trace, losses } = this.#recording;
    const [a, b] = this.#operands;
    const ordered = isDifference || a.value > decidedValue ? [a, b] : [b, a];
    const [number, other] = ordered;
    if (number.value <= decidedValue) return null;
    const format = trace.formatOf(number.value);
    if (format.name === 'f32' && other.value <= decidedValue) {
      if ((other.bits & (2 ** exponentBits - 1)) !== 0) return null;
      const exponent = (isDifference ? -(other.bits | 0) : other.bits | 0) >> exponentBits;
      const scaled = trace.numberOf(number.value) * 2 ** exponent;
      const result = format.decode(bits, 0);
      const isBelow = Math.abs(scaled) < smallestScaled && Math.abs(result) < smallestScaled;
      if (scaled === 0 || !Number.isFinite(result) || (scaled !== result && !isBelow)) return null;
      if (scaled !== result) losses.decide(`${this.#site} (underflow)`);
      return trace.add(this.#operationOf('scale', 'f32', null), number.value, 0, exponent, bits);
    }
    if (!format.isInteger) return null;
    const type = format.name.startsWith('u') ? 'u32' : 's32';
    const integer = valueFormat(type)!;
    const [x, y] = [a, b].map((operand) =>
      operand.value > decidedValue ? operand.value : trace.constant(integer, operand.bits),
    );
    if (!trace.formatOf(x).isInteger || !trace.formatOf(y).isInteger) return null;
    const exact = trace.numberOf(x) + (isDifference ? -1 : 1) * trace.numberOf(y);
    if (integer.decode(bits, 0) !== exact) return null;
    return trace.add(
      this.#operationOf('function', type, isDifference ? 'subtract' : 'add'),
      x,
      y,
      0,
      bits,
    );
  }

  /** An integer times a power of two. */
  #shifted(bits: number): number | null {
    const { trace } = this.#recording;
    const [number, by] = this.#operands;
    if (number.value <= decidedValue || by.value > decidedValue) return null;
    const format = trace.formatOf(number.value);
    if (!format.isInteger) return null;
    const type = format.name.startsWith('u') ? 'u32' : 's32';
    const exact = trace.numberOf(number.value) * 2 ** by.bits;
    if (valueFormat(type)!.decode(bits, 0) !== exact) return null;
    return trace.add(this.#operationOf('scale', type, null), number.value, 0, by.bits, bits);
  }

  /** The bitwise sum of values: one of them where the others cancel. */
  #swap(): number | null {
    if (this.#opcode !== 'xor') return null;
    const { xorSums, trace } = this.#recording;
    const rest = new Set<number>();
    for (const { value, bits } of this.#operands) {
      if (value === noValue && bits === 0) continue;
      if (value <= decidedValue) return null;
      for (const one of xorSums.get(value) ?? [value]) if (!rest.delete(one)) rest.add(one);
    }
    if (rest.size === 0) return noValue;
    const [first] = rest;
    if (rest.size === 1) return first;
    const sum = trace.add(this.#operationOf('none', 'b32', null), 0, 0, 0, 0);
    xorSums.set(sum, [...rest]);
    return sum;
  }

  /** An fp32 number whose last bits a mask cuts off. */
  #cut(bits: number): number | null {
    const [a, b] = this.#operands;
    const [number, mask] = a.value > decidedValue ? [a, b] : [b, a];
    if (number.value <= decidedValue || mask.value !== noValue) return null;
    const { name } = this.#recording.trace.formatOf(number.value);
    if (name !== 'f32') return null;
    const effect = effectOfMask(this.#opcode, mask.bits, 32, exponentBits);
    return effect === 'cut' ? this.#maskedValue(effect, name, number.value, mask.bits, bits) : null;
  }

  #maskedHalves(bits: number): readonly [number, number] | null {
    const [a, b] = this.#operands;
    const isFirst = a.halves.some((half) => half > decidedValue);
    const [number, mask] = isFirst ? [a, b] : [b, a];
    if (mask.value !== noValue) return null;
    const halves = number.halves.map((value, i) => {
      const [part, result] = [mask.bits, bits].map((word) => (word >>> (16 * i)) & 0xffff);
      if (value === noValue) return noValue;
      if (value <= decidedValue) return null;
      const { name } = this.#recording.trace.formatOf(value);
      if (storedBits[name] === undefined) return null;
      if (part === (this.#opcode === 'xor' ? 0 : 0xffff)) return value;
      const effect = effectOfMask(this.#opcode, part, 16, storedBits[name]);
      return effect && this.#maskedValue(effect, name, value, part, result);
    });
    const [low, high] = halves;
    return low === null || high === null ? null : [low, high];
  }

  #maskedValue(
    effect: NonNullable<MaskEffect>,
    format: string,
    value: number,
    mask: number,
    bits: number,
  ): number {
    const { trace } = this.#recording;
    const name = effect === 'cut' ? 'identity' : effect;
    const operation = this.#operationOf(effect === 'cut' ? 'same' : 'function', format, name);
    return trace.add(operation, value, trace.constant(valueFormat('u32')!, mask), 0, bits);
  }
}

type RealName = Operation['function'];
