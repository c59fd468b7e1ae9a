import { expect, it } from 'vitest';
import { attentionGradients, levels } from '../../../oracles/index.js';
import { randomValues, type RandomValues } from '../../../properties/problems/values.js';
import { decodeTensor } from '../../../src/formats/index.js';
import type { Problem, Tensor } from '../../../src/problem/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { filledProblem, tensor } from '../../setup/problems.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const [queries, keys, dim, vDim] = [4, 6, 3, 2];

type Matrices = Readonly<Record<'q' | 'k' | 'v' | 'dO', Float64Array>>;

/** The formulas of one head in fp64 as IEEE 754 has them, over the keys that `sees` says. */
function naive(
  problem: Problem,
  { q, k, v, dO }: Matrices,
  sees: (i: number, j: number) => boolean,
) {
  const { scale, softcap, dropout, sink } = problem;
  const share = 1 - (dropout?.probability ?? 0);
  const isKept = (i: number, j: number) =>
    dropout === undefined || dropout.kept.data[i * keys + j] !== 0;
  const zeros = (length: number) => new Float64Array(length);
  const found = {
    dq: zeros(queries * dim),
    dk: zeros(keys * dim),
    dv: zeros(keys * vDim),
    dbias: zeros(queries * keys),
    dsink: zeros(1),
    mean: zeros(queries),
  };
  const logit = sink === undefined ? -Infinity : decodeTensor(sink.logits)[0];
  const dot = (a: Float64Array, at: number, b: Float64Array, bt: number, length: number) => {
    let sum = 0;
    for (let t = 0; t < length; t++) sum += a[at + t] * b[bt + t];
    return sum;
  };
  for (let i = 0; i < queries; i++) {
    const visible = Array.from({ length: keys }, (_, j) => j).filter((j) => sees(i, j));
    if (visible.length === 0) continue;
    const scaledScores = visible.map((j) => dot(q, i * dim, k, j * dim, dim) * scale);
    const tanh = scaledScores.map((s) => (softcap === null ? 0 : Math.tanh(s / softcap)));
    const scores = scaledScores.map((s, at) => (softcap === null ? s : softcap * tanh[at]));
    const most = Math.max(...scores, logit);
    // ∞ − ∞ under the exponential is NaN; a row of −∞ has no weight at all.
    const w = scores.map((s) => (most === -Infinity ? 0 : Math.exp(s - most)));
    const total = w.reduce((a, b) => a + b, 0) + (logit === -Infinity ? 0 : Math.exp(logit - most));
    const p = w.map((weight) => (most === -Infinity ? 0 : weight / total));
    const x = visible.map(
      (j) => (dot(dO, i * vDim, v, j * vDim, vDim) * (isKept(i, j) ? 1 : 0)) / share,
    );
    const mean = p.reduce((sum, weight, at) => sum + weight * x[at], 0);
    found.mean[i] = mean;
    if (logit !== -Infinity) found.dsink[0] -= (Math.exp(logit - most) / total) * mean;
    visible.forEach((j, at) => {
      const ds = p[at] * (x[at] - mean);
      found.dbias[i * keys + j] = ds;
      const dt = ds * (1 - tanh[at] ** 2) * scale;
      const pd = (p[at] * (isKept(i, j) ? 1 : 0)) / share;
      for (let c = 0; c < dim; c++) {
        found.dq[i * dim + c] += dt * k[j * dim + c];
        found.dk[j * dim + c] += dt * q[i * dim + c];
      }
      for (let c = 0; c < vDim; c++) found.dv[j * vDim + c] += pd * dO[i * vDim + c];
    });
  }
  return found;
}

/** A problem with NaNs and infinities in some places, and what it is made of. */
function drawProblem(random: RandomValues) {
  const choose = <T>(values: readonly T[]) => values[random.integer(0, values.length - 1)];
  const specials = Array.from({ length: random.integer(0, 4) }, () => ({
    name: choose(['q', 'k', 'v', 'dO'] as const),
    at: random.integer(0, 7),
    value: choose([NaN, Infinity, -Infinity]),
  }));
  const fill = (name: 'q' | 'k' | 'v' | 'dO') => (at: number) => {
    const x = random.normal();
    return specials.find((one) => one.name === name && one.at === at)?.value ?? x;
  };
  const seen = Uint8Array.from({ length: queries * keys }, () =>
    random.integer(0, 3) > 0 ? 1 : 0,
  );
  const kept = Uint8Array.from({ length: queries * keys }, () =>
    random.integer(0, 3) > 0 ? 1 : 0,
  );
  const has = () => random.integer(0, 2) === 0;
  const problem = filledProblem(
    { queries, keys, dim, vDim, format: 'fp32' },
    { q: fill('q'), k: fill('k'), v: fill('v') },
    {
      scale: choose([0.5, -1]),
      mask: { shape: [queries, keys], data: seen },
      bias: tensor('fp32', [queries, keys], () => 0),
      softcap: has() ? 2 : null,
      ...(has() ? { sink: { logits: tensor('fp32', [1], () => 0.5), inLse: false } } : {}),
      ...(has()
        ? { dropout: { kept: { shape: [queries, keys], data: kept }, probability: 0.25 } }
        : {}),
    },
  );
  const dout: Tensor = tensor('fp32', [1, 1, queries, vDim], fill('dO'));
  return { problem, dout, sees: (i: number, j: number) => seen[i * keys + j] !== 0, specials };
}

inTurn('carries infinities and NaNs through the formulas, and nowhere else', () => {
  let poisoned = 0;
  for (let run = 0; run < scaled(300); run++) {
    const { problem, dout, sees, specials } = drawProblem(randomValues(testSeed + run));
    const matrices = {
      q: decodeTensor(problem.q),
      k: decodeTensor(problem.k),
      v: decodeTensor(problem.v),
      dO: decodeTensor(dout),
    };
    const wanted = naive(problem, matrices, sees);
    const found = attentionGradients(problem, dout);
    for (const name of ['dq', 'dk', 'dv', 'dbias', 'dsink', 'mean'] as const) {
      const gradient = found[name];
      if (gradient === null) continue;
      wanted[name].forEach((exact, at) => {
        const { values, radius, magnitude } = gradient;
        const said = `run ${run}, ${JSON.stringify(specials)}, ${name}[${at}]`;
        if (Number.isFinite(exact)) {
          const allowed = radius[at] + 1e-12 * magnitude[at] + 1e-300;
          if (!(Math.abs(values[at] - exact) <= allowed)) expect(values[at], said).toBe(exact);
          return;
        }
        poisoned++;
        if (!Object.is(values[at], exact)) expect(values[at], said).toBe(exact);
        if (radius[at] !== 0) expect(radius[at], said).toBe(0);
      });
    }
  }
  expect(poisoned).toBeGreaterThan(100);
});

it('leaves what a masked key and a query without keys have untouched', () => {
  const random = randomValues(testSeed);
  const frame = { queries: 3, keys: 4, dim: 2, format: 'fp32' } as const;
  // The last key is seen by nobody, the first query sees nothing.
  const data = Uint8Array.from({ length: 12 }, (_, at) => (at < 4 || at % 4 === 3 ? 0 : 1));
  const mask = { shape: [3, 4], data };
  const clean = filledProblem(frame, random.normal, { mask });
  const cleanDout = tensor('fp32', [1, 1, 3, 2], random.normal);
  const plant = (of: Tensor, from: number, end: number): Tensor => {
    const values = decodeTensor(of).fill(NaN, from, end);
    return tensor('fp32', of.shape, (at) => values[at]);
  };
  const planted = {
    ...clean,
    q: plant(clean.q, 0, 2),
    k: plant(clean.k, 6, 8),
    v: plant(clean.v, 6, 8),
  };
  const wanted = attentionGradients(clean, cleanDout);
  const found = attentionGradients(planted, plant(cleanDout, 0, 2));
  // Radii know how large the keys of a tile are, seen or not.
  for (const name of ['dq', 'dk', 'dv'] as const)
    for (const member of ['values', 'magnitude'] as const)
      expect(found[name]![member], `${name} ${member}`).toEqual(wanted[name]![member]);
  expect(levels[found.level[0]]).toBe('empty');
  const zeros = (of: { values: Float64Array; radius: Float64Array }, from: number, end: number) =>
    expect([...of.values.slice(from, end), ...of.radius.slice(from, end)]).toEqual(
      new Array(2 * (end - from)).fill(0),
    );
  zeros(found.dq!, 0, 2);
  zeros(found.dk!, 6, 8);
  zeros(found.dv!, 6, 8);
});
