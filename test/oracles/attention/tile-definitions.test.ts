import { expect, it } from 'vitest';
import {
  accumulated,
  cappedScore,
  dotWithMagnitude,
  weighScores,
  type WeightState,
} from './tile-definitions.js';
import { createTileEngine } from '../../../oracles/attention/tile-engine.js';
import { randomValues } from '../../../properties/problems/values.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { openRows, weighTile, type Words } from './weigh-tile.js';

const dim = 7;
const engine = createTileEngine(dim, 12);
const { kernels, vStride } = engine;
const random = randomValues(testSeed);
const fill = (view: Float64Array, value: () => number) =>
  view.forEach((_, i) => (view[i] = value()));
/** As `expect`, which takes its time to be called ten thousand times. */
const same = (got: number, wanted: number, what: string) => {
  if (!Object.is(got, wanted)) expect(got, what).toBe(wanted);
};
const all64 = Array.from({ length: 64 }, (_, i) => i);
const column = (view: Float64Array, stride: number, c: number, length: number) =>
  Float64Array.from({ length }, (_, t) => view[t * stride + c]);

it('product: sums of products in order, bit for bit', () => {
  const { queries, keysTransposed, scores } = engine;
  fill(queries.view, random.normal);
  fill(keysTransposed.view, random.normal);
  kernels.product(queries.address, keysTransposed.address, scores.address, 64, dim, 64);
  for (const i of all64)
    for (const j of all64) {
      const a = queries.view.subarray(i * dim, (i + 1) * dim);
      const { sum } = dotWithMagnitude(a, column(keysTransposed.view, 64, j, dim));
      same(scores.view[64 * i + j], sum, `${i}, ${j}`);
    }
});

it('productWithMagnitude and accumulate: the same with magnitudes, added to what was', () => {
  const { scores, values, tileSum, tileMagnitude, sum, factor } = engine;
  fill(scores.view, random.uniform);
  fill(values.view, random.normal);
  fill(sum.view, random.normal);
  fill(factor.view, () => 2 ** -random.integer(0, 3));
  kernels.productWithMagnitude(
    scores.address,
    values.address,
    tileSum.address,
    tileMagnitude.address,
    64,
    64,
    vStride,
  );
  const before = sum.view.slice();
  kernels.accumulate(sum.address, tileSum.address, factor.address, 64, vStride);
  for (const i of all64)
    for (let c = 0; c < vStride; c++) {
      const at = i * vStride + c;
      const weights = scores.view.subarray(64 * i, 64 * (i + 1));
      const wanted = dotWithMagnitude(weights, column(values.view, vStride, c, 64));
      same(tileSum.view[at], wanted.sum, `sum ${i}, ${c}`);
      same(tileMagnitude.view[at], wanted.magnitude, `magnitude ${i}, ${c}`);
      same(sum.view[at], accumulated(before[at], factor.view[i], wanted.sum), `O ${i}, ${c}`);
    }
});

it('capScores: the softcap, bit for bit', () => {
  const { scores } = engine;
  for (let tile = 0; tile < scaled(4); tile++) {
    const factor = random.sign() * 2 ** random.integer(-20, 20) * (1 + random.uniform());
    fill(scores.view, () => (random.normal() * 2 ** random.integer(-30, 9)) / factor);
    const before = scores.view.slice();
    kernels.capScores(scores.address, 64 * 64, factor);
    before.forEach((s, i) => same(scores.view[i], cappedScore(s, factor), `score ${s}`));
  }
});

/** A constant of random size. */
function randomWords(): Words {
  const high = random.sign() * (1 + random.uniform()) * 2 ** random.integer(-20, 20);
  return { high, low: high * 2 ** -54 * random.uniform() };
}

it.each([
  ['without addends', false],
  ['with addends', true],
])('weights %s: of tiles that raise the reference or not', (_, isAdded) => {
  const { scores, addends, low, high, reference, factor, extent, maximum, tileTotal } = engine;
  for (let run = 0; run < scaled(6); run++) {
    const c = randomWords();
    const d = isAdded ? randomWords() : null;
    openRows(engine);
    let states = all64.map((): WeightState => {
      return { reference: -Infinity, extent: 0, maximum: -Infinity };
    });
    for (let tile = 0; tile < 5; tile++) {
      const centre = random.normal() * 2 ** random.integer(0, 11);
      const spread = () => random.normal() * 2 ** random.integer(-3, 9);
      // Summands that cancel but for the centre.
      const large = random.normal() * 2 ** random.integer(0, 38);
      fill(scores.view, () => (centre + spread() + (d === null ? 0 : large)) / c.high);
      if (d !== null) fill(addends.view, () => (spread() - large) / d.high);
      const before = scores.view.slice();
      for (const i of all64) {
        low.view[i] = random.integer(0, 40);
        high.view[i] = random.integer(0, 3) === 0 ? 64 : random.integer(0, 64);
      }
      weighTile(engine, c, d);
      states = states.map((state, i) => {
        const seen = { low: low.view[i], high: high.view[i] };
        const ofRow = (view: Float64Array) => view.subarray(64 * i, 64 * (i + 1));
        const addition = d === null ? null : { addends: ofRow(addends.view), factor: d };
        const wanted = weighScores(ofRow(before), c, seen, state, addition);
        wanted.weights.forEach((w, j) => same(scores.view[64 * i + j], w, `weight ${i}, ${j}`));
        same(tileTotal.view[i], wanted.sum, `sum ${i}`);
        same(factor.view[i], wanted.factor, `factor ${i}`);
        same(reference.view[i], wanted.state.reference, `reference ${i}`);
        same(extent.view[i], wanted.state.extent, `extent ${i}`);
        same(maximum.view[i], wanted.state.maximum, `maximum ${i}`);
        return wanted.state;
      });
    }
  }
});
