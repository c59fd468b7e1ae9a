import { describe, expect, it } from 'vitest';
import { randomValues } from '../../../properties/problems/values.js';
import {
  distanceToFormat,
  outputRounding,
  roundingSpread,
} from '../../../src/audit/bounds/index.js';
import {
  createBoundMemory,
  elementColumns,
  formCount,
  formLength,
} from '../../../src/audit/bounds/memory.js';
import { formats, round, type FormatName } from '../../../src/formats/index.js';
import { testSeed } from '../../setup/effort.js';

const vDim = 6;
const directions = ['nearest', 'truncated', 'stochastic'] as const;
type Direction = (typeof directions)[number];

/** What the loop is given of an element, and of its row; see assembly/elements.ts. */
interface Element {
  readonly exact: number;
  readonly radius: number;
  readonly largestValue: number;
  readonly magnitude: number;
  readonly squares: number;
  readonly moved: number;
  readonly accumulated: number;
  readonly rescaled: number;
  readonly predicted: number;
  readonly spread: number;
}

interface Row {
  readonly scale: number;
  readonly share: number;
  readonly lost: number;
  readonly largestValue: number;
  readonly reach: number;
  readonly largestSum: number;
  readonly inflation: number;
  readonly typicalWeights: number;
  readonly ofSize: number;
  readonly ofMagnitude: number;
  readonly fixed: number;
  readonly subnormalBias: number;
  readonly exponentialVariance: number;
  readonly squaredMagnitude: number;
}

/** Coefficients of size, magnitude, scatter, moved, accumulated, rescaled and underflow; and a constant. */
interface Form {
  readonly coefficients: readonly (number | null)[];
  readonly constant: number;
}

/** The bounds of an element by definition: of the techniques, of the rounding, and what they come to. */
function boundsOf(
  element: Element,
  row: Row,
  forms: readonly Form[],
  format: FormatName,
  direction: Direction,
): number[] {
  const { exact, radius } = element;
  const { scale, share, inflation } = row;
  const size = Math.abs(exact) * scale;
  const magnitude = element.magnitude * scale;
  const squares = element.squares * share;
  const scatter = Math.sqrt(Math.max(0, squares - size ** 2) + size ** 2 * 2 ** -40);
  const underflow = row.lost * (row.largestValue * scale + size);
  const [moved, accumulated, rescaled] = [
    element.moved * share,
    element.accumulated * share,
    element.rescaled * share,
  ];
  const terms = [size, magnitude, scatter, moved, accumulated, rescaled, underflow];
  const factor = element.largestValue * row.reach >= row.largestSum ? Infinity : inflation / scale;
  const times = (bound: number, by: number) => (by === Infinity ? Infinity : bound * by);
  const techniques = forms.map(({ coefficients, constant }) =>
    times(
      coefficients.reduce<number>((sum, c, i) => (c === null ? sum : sum + c * terms[i]), constant),
      factor,
    ),
  );
  const sum = techniques.reduce((total, bound) => total + bound, 0);
  const distance = direction === 'nearest' ? distanceToFormat(format, exact) : Infinity;
  const rounding =
    sum === Infinity
      ? Infinity
      : Math.min(outputRounding(format, exact, sum, direction), distance + sum);
  const predicted = inflation === Infinity ? 0 : (element.predicted * share) / scale;
  const bias =
    // What a sum in fp32 may be off by.
    (predicted === 0 ? 0 : 2 ** -17 * moved) +
    row.typicalWeights * scatter +
    Math.sqrt(row.subnormalBias * squares) +
    accumulated +
    rescaled +
    row.ofSize * size +
    row.ofMagnitude * magnitude +
    2 * underflow +
    row.fixed;
  const random =
    element.spread * share ** 2 +
    row.exponentialVariance * size ** 2 +
    row.squaredMagnitude * magnitude ** 2;
  const variance = times(random, factor ** 2);
  const known = times(Math.abs(predicted), inflation);
  const systematic = times(bias, factor) + radius;
  const before = {
    predicted,
    noise: Math.sqrt(variance),
    systematic: systematic + known - Math.abs(predicted),
  };
  const spread = roundingSpread(format, exact, before, direction);
  const allKnown = spread.known ?? known;
  const deviation = Math.sqrt(variance + spread.variance + allKnown ** 2);
  return [
    ...[...techniques, rounding, sum + rounding + radius],
    ...[systematic + spread.systematic, allKnown, deviation],
  ];
}

/** The same by the loop, for `vDim` elements. */
function boundsOfLoop(
  elements: readonly Element[],
  row: Row,
  forms: readonly Form[],
  format: FormatName,
  direction: Direction,
): number[][] {
  const memory = createBoundMemory(4, vDim, 64);
  const { vStride, kernels } = memory;
  const local = 3;
  const column = (index: number, name: keyof Element) =>
    elements.forEach((element, c) => (memory.elements.view[index * vStride + c] = element[name]));
  column(0, 'exact');
  column(1, 'radius');
  column(2, 'largestValue');
  column(4, 'magnitude');
  const running = ['squares', 'moved', 'accumulated', 'rescaled', 'predicted', 'spread'] as const;
  for (const name of running)
    elements.forEach((element, c) => (memory[name].view[local * vStride + c] = element[name]));
  forms.forEach(({ coefficients, constant }, index) => {
    memory.forms.view.set([...coefficients.map((c) => c ?? NaN), constant], index * formLength);
    memory.has.view[index] = coefficients.reduce<number>(
      (bits, c, i) => (c === null ? bits : bits | (1 << i)),
      0,
    );
  });
  const { precision, minExponent, maxExponent, maxFinite, specials } = formats[format];
  const numbers = memory.elementRow.write({
    ...row,
    precision,
    minExponent,
    maxExponent,
    maxFinite,
    saturates: specials === 'finite',
    direction: directions.indexOf(direction),
  });
  kernels.finishElements(memory.tile, numbers, local, vDim);
  return elements.map((_, c) =>
    Array.from(
      { length: elementColumns - 13 },
      (_, i) => memory.elements.view[(13 + i) * vStride + c],
    ),
  );
}

describe('the bounds of elements', () => {
  it.each(
    (['fp64', 'fp32', 'tf32', 'bf16', 'fp16', 'e4m3', 'e5m2', 'e2m1'] as const).map((x) => [x]),
  )('in %s are those of the definition, in every direction of rounding', (format) => {
    const { normal, uniform, integer } = randomValues(testSeed + format.length);
    const small = () => 2 ** -integer(8, 60) * uniform();
    const { maxFinite } = formats[format];
    for (let draw = 0; draw < 10; draw++) {
      const kinds = [
        () => normal(),
        () => round(formats[format], normal()),
        () => normal() * 2 ** -integer(0, 160),
        () => maxFinite * (0.9 + 0.2 * uniform()),
        () => 0,
      ];
      const elements = Array.from({ length: vDim }, (): Element => {
        const exact = kinds[integer(0, kinds.length - 1)]();
        const magnitude = Math.abs(exact) * (1 + uniform());
        const isQuiet = uniform() < 0.5;
        return {
          exact,
          radius: Math.abs(exact) * 2 ** -50,
          largestValue: magnitude * (1 + uniform()),
          magnitude,
          squares: exact ** 2 * (1 + uniform()),
          moved: magnitude * small(),
          accumulated: magnitude * small(),
          rescaled: magnitude * small(),
          predicted: isQuiet ? 0 : exact * small(),
          spread: isQuiet ? 0 : (magnitude * small()) ** 2,
        };
      });
      const isUnbounded = draw % 10 === 9;
      const row: Row = {
        scale: 2 ** integer(-3, 3),
        share: draw % 3 === 0 ? uniform() : 1,
        lost: small(),
        largestValue: Math.max(...elements.map(({ largestValue }) => largestValue)),
        reach: 2 ** integer(0, 12),
        largestSum: draw % 4 === 0 ? Math.abs(elements[0].exact) * 8 : 2 ** 127,
        inflation: isUnbounded ? Infinity : 1 + small(),
        typicalWeights: small(),
        ofSize: small(),
        ofMagnitude: small(),
        fixed: 2 ** -140,
        subnormalBias: small(),
        exponentialVariance: small() ** 2,
        squaredMagnitude: small() ** 2,
      };
      const forms = Array.from({ length: formCount }, (): Form => ({
        coefficients: Array.from({ length: formLength - 1 }, () =>
          uniform() < 0.6 ? null : small(),
        ),
        constant: uniform() < 0.5 ? 0 : 2 ** -130,
      }));
      for (const direction of directions) {
        const found = boundsOfLoop(elements, row, forms, format, direction);
        found.forEach((ofElement, c) => {
          const wanted = boundsOf(elements[c], row, forms, format, direction);
          expect(ofElement).toHaveLength(wanted.length);
          ofElement.forEach((bound, i) => {
            const slack = 2 ** -40 * Math.abs(wanted[i]);
            if (Number.isFinite(wanted[i]))
              expect(Math.abs(bound - wanted[i])).toBeLessThanOrEqual(slack);
            else expect(bound).toBe(wanted[i]);
          });
        });
      }
    }
  });
});
