import * as fc from 'fast-check';
import type { MeasuredGradients } from '../../../../../src/audit/gradients/measure-gradients.js';
import { decodeTensor } from '../../../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../../../src/problem/index.js';
import { filledProblem, tensor } from '../../../../setup/problems.js';
import { drawFrom } from '../../definitions/random-pairs.js';

/** The sizes of the problems, but for queries and keys. */
export const [batch, heads, kvHeads, qkDim, vDim] = [2, 4, 2, 2, 3] as const;

/** What a problem and a backward pass have. */
export const drawns = fc.record({
  seed: fc.integer({ min: 1, max: 2 ** 30 }),
  queries: fc.constantFrom(4, 70),
  keys: fc.constantFrom(5, 6),
  causal: fc.boolean(),
  softcap: fc.constantFrom(null, 1.5),
  hasBias: fc.boolean(),
  hasSink: fc.boolean(),
  hasDropout: fc.boolean(),
  /** Where dropout is not left out. */
  keptIn: fc.constantFrom('both', 'P', 'dP'),
  ownSum: fc.boolean(),
  ownDelta: fc.boolean(),
  slopePower: fc.constantFrom(undefined, 0, 2),
});

export type Drawn = typeof drawns extends fc.Arbitrary<infer T> ? T : never;

/** A problem, and its statistics, which are whatever they are. */
export function caseOf(of: Drawn) {
  const { between, flips } = drawFrom(of.seed);
  const random = () => between(-1, 1);
  const { queries, keys } = of;
  const all = [batch, heads, queries, keys];
  const kept = Uint8Array.from({ length: batch * heads * queries * keys }, () => Number(flips()));
  const problem: Problem = filledProblem(
    { batch, heads, kvHeads, queries, keys, dim: qkDim, vDim },
    random,
    {
      causal: of.causal,
      softcap: of.softcap,
      ...(of.hasBias && { bias: tensor('fp32', all, random) }),
      ...(of.hasSink && { sink: { logits: tensor('fp32', [heads], random), inLse: true } }),
      ...(of.hasDropout && { dropout: { kept: { shape: all, data: kept }, probability: 0.2 } }),
    },
  );
  const dout = tensor('bf16', [batch, heads, queries, vDim], random);
  const numbers = (make: () => number) =>
    Float64Array.from({ length: batch * heads * queries }, make);
  const exact = (length: number) => ({ exact: { values: new Float64Array(length) } });
  const measured = {
    shape: problemShape(problem),
    reference: { denominator: numbers(() => between(0, 2)) },
    mean: { values: numbers(random), magnitude: numbers(() => between(0, 0.5)) },
    gradients: {
      dq: exact(batch * heads * queries * qkDim),
      dk: exact(batch * kvHeads * keys * qkDim),
      dv: exact(batch * kvHeads * keys * vDim),
    },
  } as unknown as MeasuredGradients;
  return { problem, dout, measured, kept };
}

export const sum = (terms: readonly number[]) => terms.reduce((a, b) => a + b, 0);

/** The rows of P with dropout, the dS without the scale, and its size, by the keys that a row sees. */
export function plainRows(of: Drawn, { problem, dout, measured, kept }: ReturnType<typeof caseOf>) {
  const { queries, keys, softcap } = of;
  const [q, k, v, dO] = [problem.q, problem.k, problem.v, dout].map((one) => decodeTensor(one));
  const bias = problem.bias && decodeTensor(problem.bias);
  const sinks = problem.sink && decodeTensor(problem.sink.logits);
  const dot = (a: Float64Array, i: number, b: Float64Array, j: number, dim: number) =>
    sum(Array.from({ length: dim }, (_, c) => a[i * dim + c] * b[j * dim + c]));
  return (head: number, query: number) => {
    const row = head * queries + query;
    const ofKeys = (key: number) =>
      (Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / 2)) * keys + key;
    const seen = Array.from({ length: keys }, (_, key) => key).filter(
      (key) => !of.causal || key <= query + keys - queries,
    );
    const scaled = seen.map((key) => problem.scale * dot(q, row, k, ofKeys(key), qkDim));
    const scores = scaled.map((x, i) => {
      const capped = softcap === null ? x : softcap * Math.tanh(x / softcap);
      return capped + (bias?.[row * keys + seen[i]] ?? 0);
    });
    const ofSink = sinks === undefined ? 0 : Math.exp(sinks[head % heads]);
    const logarithm = of.ownSum
      ? Math.log(ofSink + sum(scores.map(Math.exp)))
      : measured.reference.denominator[row];
    const P = scores.map((x) => Math.exp(x - logarithm));
    const kepts = seen.map((key) => (of.hasDropout ? kept[row * keys + key] / 0.8 : 1));
    const factor = kepts.map((x) => (of.keptIn === 'dP' ? 1 : x));
    const ofDp = kepts.map((x) => (of.keptIn === 'P' ? 1 : x));
    const dP = seen.map((key, i) => ofDp[i] * dot(dO, row, v, ofKeys(key), vDim));
    const D = of.ownDelta ? sum(P.map((p, i) => p * dP[i])) : measured.mean.values[row];
    const slope = scaled.map((x) =>
      softcap === null ? 1 : (1 - Math.tanh(x / softcap) ** 2) ** (of.slopePower ?? 1),
    );
    const ofD = Math.max(Math.abs(D), measured.mean.magnitude[row]);
    const found = seen.map((key, i) => ({
      key,
      p: P[i] * factor[i],
      dS: P[i] * slope[i] * (dP[i] - D),
      size: P[i] * slope[i] * (Math.abs(dP[i]) + ofD),
    }));
    return new Map(found.map((one) => [one.key, one]));
  };
}
