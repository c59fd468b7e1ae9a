import { expect, it } from 'vitest';
import { createGradientEngine } from '../../../oracles/gradients/gradient-engine.js';
import { cappedSlope, derivative, dotWithSizes, rowProduct } from './tile-definitions.js';
import { randomValues } from '../../../properties/problems/values.js';
import { scaled, testSeed } from '../../setup/effort.js';

const engine = createGradientEngine(7, 12);
const { kernels, tile } = engine;
const random = randomValues(testSeed);
const all64 = Array.from({ length: 64 }, (_, i) => i);
const fill = (view: Float64Array, value: () => number) =>
  view.forEach((_, i) => (view[i] = value()));
const rowOf = (view: Float64Array, i: number) => view.slice(64 * i, 64 * (i + 1));
/** As `expect`, which takes its time to be called ten thousand times. */
const same = (got: number, wanted: number, what: string) => {
  if (!Object.is(got, wanted)) expect(got, what).toBe(wanted);
};

it('capSlopes: the softcap and its slope, bit for bit', () => {
  const { scores } = tile;
  for (let run = 0; run < scaled(4); run++) {
    const factor = random.sign() * 2 ** random.integer(-20, 20) * (1 + random.uniform());
    fill(scores.view, () => (random.normal() * 2 ** random.integer(-30, 9)) / factor);
    const before = scores.view.slice();
    kernels.capSlopes(scores.address, engine.slopes.address, 64 * 64, factor);
    before.forEach((s, i) => {
      const { tanh, slope } = cappedSlope(s, factor);
      same(scores.view[i], tanh, `tanh of ${s}`);
      same(engine.slopes.view[i], slope, `slope of ${s}`);
    });
  }
});

it('multiplyBy, rowProducts and differentiate: P, dS and its scale, bit for bit', () => {
  const { products, factors, scales, total, mean, meanSize } = engine;
  const { scores } = tile;
  for (let run = 0; run < scaled(4); run++) {
    fill(scores.view, () => (random.integer(0, 4) === 0 ? 0 : random.uniform()));
    fill(products.view, () => random.normal() * 2 ** random.integer(-20, 20));
    fill(factors.view, () => random.integer(0, 1) / 0.9);
    const before = products.view.slice();
    kernels.multiplyBy(products.address, factors.address, 64 * 64);
    before.forEach((x, i) => same(products.view[i], x * factors.view[i], `factor ${i}`));
    kernels.rowProducts(scores.address, products.address, 64, mean.address, meanSize.address);
    for (const i of all64) {
      const wanted = rowProduct(rowOf(scores.view, i), rowOf(products.view, i));
      same(mean.view[i], wanted.sum, `sum ${i}`);
      same(meanSize.view[i], wanted.size, `size ${i}`);
    }
    fill(total.view, () => 1 + random.uniform());
    const [weights, dp] = [scores.view.slice(), products.view.slice()];
    kernels.differentiate(
      scores.address,
      products.address,
      scales.address,
      64,
      total.address,
      mean.address,
      meanSize.address,
    );
    weights.forEach((weight, at) => {
      const i = Math.floor(at / 64);
      const ofRow = { total: total.view[i], mean: mean.view[i], size: meanSize.view[i] };
      const wanted = derivative(weight, dp[at], ofRow);
      same(scores.view[at], wanted.p, `P ${at}`);
      same(products.view[at], wanted.ds, `dS ${at}`);
      same(scales.view[at], wanted.scale, `scale ${at}`);
    });
  }
});

it.each([
  ['a tile', 512, 8],
  ['its transpose', 8, 512],
])('productWithSizes: of %s, bit for bit', (_, rowStride, innerStride) => {
  const { products, scales, queryRows, sum, size, qkStride } = engine;
  fill(products.view, random.normal);
  fill(scales.view, random.uniform);
  fill(queryRows.view, random.normal);
  kernels.productWithSizes(
    products.address,
    scales.address,
    queryRows.address,
    sum.address,
    size.address,
    rowStride,
    innerStride,
    qkStride,
  );
  for (const i of all64)
    for (let c = 0; c < qkStride; c++) {
      const of = (view: Float64Array) =>
        all64.map((k) => view[(i * rowStride + k * innerStride) / 8]);
      const column = all64.map((k) => queryRows.view[k * qkStride + c]);
      const wanted = dotWithSizes(of(products.view), of(scales.view), column);
      same(sum.view[i * qkStride + c], wanted.sum, `sum ${i}, ${c}`);
      same(size.view[i * qkStride + c], wanted.size, `size ${i}, ${c}`);
    }
});
