import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formats, round } from '../../src/formats/index.js';
import {
  accumulate,
  binOf,
  classify,
  countBreaks,
  emptyRecord,
  scalesFor,
} from './accumulate-definition.js';
import { roundTo } from '../../src/profile/input-view.js';
import { createAccumulateEngine } from '../../src/profile/accumulate-engine.js';
import { bitsOfOrdinal } from '../../src/profile/float32-order.js';
import { binCount, binStart, type FormatRecord, formatRecord } from '../../src/profile/record.js';
import { scaled } from '../setup/effort.js';
import { anyBits, float32, roundings } from './random-results.js';

const rounding = fc.constantFrom(...roundings);

/** A result, and a reference that is often near it. */
const resultAndReference = fc
  .tuple(anyBits, anyBits, fc.double({ min: -1e-3, max: 1e-3, noNaN: true }), fc.boolean())
  .map(([bits, other, distance, near]) => {
    return { bits, reference: near ? float32(bits) * (1 + distance) : float32(other) };
  });

/** The number, without the sign of a zero. */
const unsigned = (z: number): number => z + 0;

const segment = fc.array(resultAndReference, { minLength: 1, maxLength: 9 });

describe('rounding by adding', () => {
  it('is that of src/formats', () => {
    fc.assert(
      fc.property(rounding, anyBits, (how, bits) => {
        const { format, overflow } = how;
        const expected = round(formats[format], float32(bits), { overflow });
        const rounded = roundTo(formatRecord(how), float32(bits));
        // Zeros have no sign here.
        expect(rounded === 0 ? 0 : rounded).toBe(expected === 0 ? 0 : expected);
      }),
      { numRuns: scaled(3000) },
    );
  });
});

describe('the WebAssembly loops', () => {
  const engine = createAccumulateEngine(24);
  const format = engine.format(formatRecord(roundings[0]));
  const formatView = new Float64Array(engine.loops.memory.buffer, format, 5);
  const results = engine.words();
  const [reference, own, baseline] = [engine.numbers(), engine.numbers(), engine.numbers()];
  const scales = { scale: engine.numbers(), ulps: engine.numbers(), rounded: engine.numbers() };
  const record = engine.record();
  const arrays = engine.arrays();
  const arraysOf = (base: typeof own, { smallestNormal }: FormatRecord): number =>
    arrays.write({
      z: own.address,
      reference: reference.address,
      rounded: scales.rounded.address,
      baseline: base.address,
      scale: scales.scale.address,
      ulps: scales.ulps.address,
      smallestNormal,
      record: record.address,
    });

  it('equal their definition to the last bit', () => {
    fc.assert(
      fc.property(
        rounding,
        segment,
        fc.boolean(),
        fc.boolean(),
        fc.constantFrom(0, 2 ** -50, 2 ** -12),
        fc.integer({ min: 1, max: 7 }),
        (how, elements, absolute, increasing, margin, copies) => {
          // References that are not exact are finite.
          fc.pre(margin === 0 || elements.every((e) => Number.isFinite(e.reference)));
          const definition = formatRecord(how);
          formatView.set([
            definition.smallestNormal,
            definition.toQuantum,
            definition.quantaPerBinade,
            definition.largest,
            definition.beyond,
          ]);
          record.take();
          const count = elements.length;
          // Whatever lies behind the elements must not matter.
          for (const { view } of [reference, own, baseline]) view.fill(NaN);
          const references = Float64Array.from(elements, (element) => element.reference);
          const bits = Uint32Array.from(elements, (element) => element.bits);
          const rounded = Float64Array.from(bits, (b) => roundTo(definition, float32(b)));
          const others = rounded.map((z, i) => (i % 3 === 0 ? z : z + 1));
          reference.view.set(references);
          baseline.view.set(others);
          results.view.set(bits);

          const prepared = engine.prepare(reference, count, { format, absolute, margin }, scales);
          const expected = scalesFor(references, definition, absolute, margin);
          expect(scales.scale.view.subarray(0, count)).toEqual(expected.scale);
          expect(scales.ulps.view.subarray(0, count)).toEqual(expected.ulps);
          expect(scales.rounded.view.subarray(0, count)).toEqual(expected.rounded);
          expect(prepared).toEqual({
            undecided: expected.undecided,
            scaledCount: expected.scaledCount,
            ulpCount: expected.ulpCount,
          });

          engine.loops.roundResults(results.address, own.address, count, format);
          const stored = [...own.view.subarray(0, count)];
          expect(stored.map(unsigned)).toEqual([...rounded].map(unsigned));

          const repeat = count === 1 ? copies : 1;
          const grown = emptyRecord();
          const measured = {
            rounded,
            references,
            baseline: others,
            scales: expected,
            repeat,
            ordinal: 100,
            smallestNormal: definition.smallestNormal,
          };
          const extent = accumulate(grown, measured);
          const pairUlps = expected.ulps.subarray(0, count - 1);
          countBreaks(grown, { left: rounded, right: rounded, ulps: pairUlps }, increasing, 100);
          engine.loops.accumulate(arraysOf(baseline, definition), count, repeat, 100);
          // Which zero is the smaller is left open.
          expect(engine.extent(record.address).map(unsigned)).toEqual(extent.map(unsigned));
          engine.loops.countBreaks(
            own.address,
            own.address,
            scales.ulps.address,
            count - 1,
            increasing ? 1 : -1,
            100,
            record.address,
          );
          expect(record.take()).toEqual(grown);
          expect(engine.classify(results, count)).toEqual(classify(bits));
        },
      ),
      { numRuns: scaled(800) },
    );
  });

  it('add to what a record holds, keeping the first of equal extremes', () => {
    const [z, exact] = [
      Float64Array.of(1.5, 1.25, 1.5, 1.5, 1.5, 1.5),
      new Float64Array(6).fill(1),
    ];
    const definition = formatRecord(roundings[0]);
    formatView.set(Object.values(definition));
    own.view.set(z);
    reference.view.set(exact);
    engine.prepare(reference, 6, { format, absolute: false, margin: 0 }, scales);
    for (const ordinal of [10, 20])
      engine.loops.accumulate(arraysOf(own, definition), 6, 1, ordinal);
    const { largestScaled, sums } = record.take();
    expect(largestScaled.map(({ ordinal }) => ordinal)).toEqual([10, 12, 13, 14]);
    expect(sums[0]).toBe(2 * (5 * 0.5 + 0.25));
    expect(record.take()).toEqual(emptyRecord());
  });

  it('fill in inputs by their ordinals', () => {
    const words = engine.words();
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 32 - 40 }), fc.nat(36), (first, count) => {
        words.view.fill(0);
        engine.loops.fillInputs(words.address, first, count);
        const expected = Array.from({ length: count }, (_, i) => bitsOfOrdinal(first + i));
        expect([...words.view.subarray(0, count + 1)]).toEqual([...expected, 0]);
      }),
      { numRuns: scaled(500), examples: [[2 ** 31 - 2, 4]] },
    );
  });

  it('tell constant references from others', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(1, 1 + 2 ** -52), { minLength: 1 }), (values) => {
        reference.view.set(values);
        const isConstant = engine.loops.isConstant(reference.address, values.length) !== 0;
        expect(isConstant).toBe(new Set(values).size === 1);
      }),
    );
  });
});

describe('the histogram', () => {
  it('has bins without gaps, each holding its beginning', () => {
    for (let bin = 0; bin < binCount; bin++) {
      expect(binOf(binStart(bin))).toBe(bin);
      if (bin > 0) expect(binOf(binStart(bin) * (1 - 2 ** -53))).toBe(bin - 1);
    }
  });
});
