import type { LaneOperation } from '../../ptx/program/index.js';
import type { TracedOperation } from '../../ptx/run/index.js';
import {
  byteSlots,
  decidedValue,
  lostValue,
  noValue,
  placeInSlot,
  valueBytes,
  valueFormat,
  type ValueFormat,
} from '../trace/index.js';
import { laneValueOf } from './lane-values.js';
import { type Recording, siteOf } from './recording.js';

const warpLanes = 32;

/** Follows `selp` and `slct`: the last operand, which has decided before or decides now, says whose bytes are copied. */
export function followSelection(
  { file, losses }: Recording,
  operation: LaneOperation,
  run: TracedOperation,
): TracedOperation {
  const { instruction, sources, destinations } = operation;
  const [a, b, condition] = sources;
  const [destination] = destinations;
  if (destination === null) return run;
  const bytes = Math.max(valueBytes(destination), 4);
  const [one, two] = instruction.sources[0] === 64 ? [1n, 2n] : [1, 2];
  const isDeciding = 'offset' in condition && condition.width !== 'pred';
  return (registers, lanes) => {
    const tags: number[][] = [];
    for (let lane = 0; lane < warpLanes; lane++) {
      tags.push([]);
      if (((lanes >>> lane) & 1) === 0) continue;
      const decisive = laneValueOf(file, condition, instruction.sources[2], registers, lane);
      const chosen = instruction.evaluate(one, two, decisive) === one ? a : b;
      if (isDeciding && file.isTagged(registers, condition)) losses.decide(siteOf(operation));
      if (!('offset' in chosen)) continue;
      const held = Math.min(bytes, Math.max(valueBytes(chosen), 4));
      for (let byte = 0; byte < held; byte++) {
        const { first, stride } = placeInSlot(chosen, byte);
        tags[lane].push(file.tagAt(registers + first + stride * lane));
      }
    }
    run(registers, lanes);
    for (let lane = 0; lane < warpLanes; lane++) {
      if (((lanes >>> lane) & 1) === 0) continue;
      for (let byte = 0; byte < bytes; byte++) {
        const { first, stride } = placeInSlot(destination, byte);
        file.putTag(registers + first + stride * lane, tags[lane][byte] ?? 0);
      }
    }
  };
}

/** The format and the number of elements that an instruction compares: those of the last type of its name. */
function comparedFormat(
  name: string,
): { readonly format: ValueFormat; readonly count: number } | null {
  const type = name.split('.').findLast((part) => /^(?:b?f16|f32|f64|[su]\d+)(?:x2)?$/.test(part));
  if (type === undefined) return null;
  const format = valueFormat(type.replace(/x2$/, ''));
  return format && { format, count: type.endsWith('x2') ? 2 : 1 };
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
  const { trace, file, losses } = recording;
  const { instruction, sources, destinations } = operation;
  const compared = comparedFormat(instruction.name);
  const [destination] = destinations;
  if (destination === null) return run;
  if (compared === null) return null;
  const { format, count } = compared;
  const site = siteOf(operation);
  const name = instruction.name.replace(/x2(?=\.|$)/, '');
  const choice = trace.addOperation({
    origin: 'choice',
    name,
    function: null,
    limit: null,
    format,
    site,
  });
  const { bytes } = format;

  const operandAt = (registers: number, lane: number, source: number, element: number) => {
    const operand = sources[source];
    if (!('offset' in operand)) {
      const bits = Number(BigInt.asUintN(32, operand.bits >> BigInt(8 * bytes * element)));
      const low = bytes < 4 ? bits & (2 ** (8 * bytes) - 1) : bits;
      return {
        value: noValue as number,
        low,
        high: Number(BigInt.asUintN(32, operand.bits >> 32n)),
      };
    }
    const { first, stride } = placeInSlot(operand, element * bytes);
    const address = registers + first + stride * lane;
    const value = file.valueAt(address, bytes);
    const isOther = value > decidedValue && trace.formatOf(value) !== format;
    const isWidened = isOther && trace.formatOf(value) === recording.bf16 && format.name === 'f32';
    return {
      value: isOther && !isWidened && !trace.formatOf(value).isInteger ? lostValue : value,
      low: file.low(address, bytes),
      high: file.high(address, bytes),
    };
  };
  const zero = (): number => trace.constant(format, 0, 0);

  const chosen = (
    operands: readonly ReturnType<typeof operandAt>[],
    low: number,
    high: number,
  ): number => {
    if (operands.every(({ value }) => value === noValue)) return noValue;
    if (operands.some(({ value }) => value === lostValue)) return lostValue;
    // Integers of which one has been decided; a number that has been decided is a constant.
    if (format.isInteger && operands.some(({ value }) => value === decidedValue))
      return decidedValue;
    const values = operands.map(({ value, low: bits, high: above }) =>
      value <= decidedValue ? trace.constant(format, bits, above) : value,
    );
    const winner = operands.findIndex((one) => one.low === low && (bytes < 8 || one.high === high));
    // A NaN, or the zero of `.relu`.
    if (
      winner < 0 &&
      !(low === 0 && name.includes('relu')) &&
      !Number.isNaN(format.decode(low, high))
    ) {
      losses.lose(site);
      return lostValue;
    }
    const result = winner < 0 ? zero() : values[winner];
    // The winner stands last; a third operand goes into the choice of the first two.
    const [a, b, c] = values;
    const pair = c === undefined ? a : trace.add(choice, a, b, a, trace.bits[a]);
    return trace.add(choice, pair, c ?? b ?? zero(), result, low);
  };

  return (registers, lanes) => {
    if (
      !byteSlots(sources).some(({ slot }) => file.isTagged(registers, slot)) &&
      !file.isTagged(registers, destination)
    ) {
      run(registers, lanes);
      return;
    }
    const operands: ReturnType<typeof operandAt>[][][] = [];
    for (let lane = 0; lane < warpLanes; lane++)
      operands.push(
        ((lanes >>> lane) & 1) === 0
          ? []
          : Array.from({ length: count }, (_, element) =>
              sources.map((_source, i) => operandAt(registers, lane, i, element)),
            ),
      );
    run(registers, lanes);
    for (let lane = 0; lane < warpLanes; lane++)
      operands[lane].forEach((ofElement, element) => {
        const { first, stride } = placeInSlot(destination, element * bytes);
        const address = registers + first + stride * lane;
        file.putValue(
          address,
          bytes,
          chosen(ofElement, file.low(address, bytes), file.high(address, bytes)),
        );
      });
  };
}
