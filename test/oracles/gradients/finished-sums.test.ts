import { expect, it } from 'vitest';
import { addRow, emptySums, finishSums } from '../../../oracles/gradients/sums.js';
import { tileRows } from '../../../oracles/attention/operand.js';

const u = 2 ** -53;

it('sums of tiles have the error of as many additions as there were', () => {
  const accuracy = { outputFormat: 'fp64', ulpFraction: 1, magnitudeFraction: 0 } as const;
  for (const tiles of [1, 3, 200]) {
    const sums = emptySums(1, 2);
    const size = 5;
    // Of a tile whose terms cancel, and are themselves exact.
    const tile = {
      sum: Float64Array.of(0, 0),
      size: Float64Array.of(size, 0),
      stride: 2,
      relative: () => 0,
      absolute: Float64Array.of(0),
      floor: () => 0,
      largest: Float64Array.of(1, 0),
    };
    for (let i = 0; i < tiles; i++) addRow(sums, 0, tile, 0);
    const largest = Float64Array.of(1, 0);
    const { gradient, inaccurate } = finishSums(sums, { scale: -2, largest, accuracy });
    const [radius, ofNothing] = gradient.radius;
    const magnitude = 2 * size * tiles;
    expect(gradient.magnitude[0]).toBe(magnitude);
    // A tile is a sum of so many terms, and its sum is added: γ of both.
    const additions = tileRows - 1 + tiles;
    expect(radius).toBeGreaterThan(additions * u * magnitude);
    expect(radius).toBeLessThan(1.2 * (additions + 4) * u * magnitude);
    expect(ofNothing).toBe(0);
    expect(inaccurate).toEqual([0]);
  }
});
