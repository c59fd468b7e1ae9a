import {
  encodeFromFloat64,
  decodeTensor,
  formats,
  round,
  ulp,
  type FormatName,
} from '../../../src/formats/index.js';
import {
  keptWeights,
  keysOf,
  problemMask,
  problemShape,
  scoreLaw,
  type Problem,
  type Tensor,
} from '../../../src/problem/index.js';
import type { AttentionReference } from '../../../oracles/index.js';
import { tanhApprox } from '../../../src/hardware/mufu/index.js';
import type { GradientPremises } from '../../../src/audit/gradients/bounds/index.js';

/** The roundings of a backward pass that a simulation makes; the rest is exact to fp64. */
export const roundings = [
  'lse-input',
  'delta',
  'p-recompute',
  'p-round',
  'dp-accumulate',
  'ds-round',
  'accumulate',
  'group-sum',
  'scale',
  'output-round',
] as const;
/** One of {@link roundings}. */
export type Rounding = (typeof roundings)[number];

/** How a simulation sums: in the order of the terms, backwards, by halves, tiles of 16 in an order that is drawn, or eight at a time. */
export const orders = ['ascending', 'descending', 'pairwise', 'tiles', 'fused'] as const;

/** A backward pass in plain loops. */
export interface Simulation {
  readonly makes: ReadonlySet<Rounding>;
  readonly order: (typeof orders)[number];
  /** Whether D is dO·O of the stored O, or Σ P dP. */
  readonly delta: 'stored-output' | 'weights';
  /** Whether dS is made of P as it is rounded, the scale multiplies it before it is rounded, heads are stored. */
  readonly roundsWeights: boolean;
  readonly scalesFirst: boolean;
  readonly storesHeads: boolean;
  /** Whether scores, P, dP, dS and its product with the scale are each written in the format of the inputs. */
  readonly isWritten: boolean;
  /** What the exponential is off by, relative to what is admitted: a number from −1 to 1, or one drawn for each pair. */
  readonly exponential: number | 'drawn';
  /** What makes the softcap's tanh where scores are recomputed. */
  readonly tanh: keyof typeof tanhs;
  readonly uniform: () => number;
}

const single = new Float32Array(1);
const singleBits = new Uint32Array(single.buffer);

/** Kinds of tanh that a kernel may have. */
export const tanhs = {
  rounded: (x: number) => Math.fround(Math.tanh(x)),
  unit: (x: number) => {
    single[0] = x;
    singleBits[0] = tanhApprox(singleBits[0]);
    return single[0];
  },
  exponential: (x: number) => {
    const power = Math.fround(Math.exp(-2 * x) * (1 + 2 ** -22));
    const sigmoid = Math.fround(1 / Math.fround(1 + power));
    return Math.fround(Math.fround(2 * sigmoid) - 1);
  },
} as const;

/** What a simulation gives: elements in the order of the tensors, and what its forward stored. */
export interface SimulatedGradients {
  readonly dq: Float64Array;
  readonly dk: Float64Array;
  readonly dv: Float64Array;
  readonly out: Tensor;
  readonly lse: Tensor;
}

/** What a number of fp32 has to lose to be the next one towards 0. */
function ulpBelow(x: number): number {
  return Math.sign(x) * ulp(formats.fp32, Math.abs(x) * (1 - 2 ** -24));
}

/** A sum in some order, rounded by `f` after every addition. */
function summed(
  terms: readonly number[],
  { order, uniform }: Pick<Simulation, 'order' | 'uniform'>,
  f: (x: number) => number,
): number {
  const chain = (some: readonly number[]) => some.reduce((sum, x) => f(sum + x), 0);
  const halves = (some: readonly number[]): number => {
    if (some.length <= 2) return chain(some);
    const middle = some.length >> 1;
    return f(halves(some.slice(0, middle)) + halves(some.slice(middle)));
  };
  // Eight terms and the sum so far at once, and what is beyond fp32 cut off, as tensor cores do.
  const fused = (some: readonly number[]) => {
    let sum = 0;
    for (let at = 0; at < some.length; at += 8) {
      const exact = some.slice(at, at + 8).reduce((all, x) => all + x, sum);
      const nearest = f(exact);
      sum = Math.abs(nearest) > Math.abs(exact) ? nearest - ulpBelow(nearest) : nearest;
    }
    return sum;
  };
  if (order === 'fused') return fused(terms);
  if (order === 'ascending') return chain(terms);
  if (order === 'descending') return chain([...terms].reverse());
  if (order === 'pairwise') return halves(terms);
  const tiles: number[] = [];
  for (let at = 0; at < terms.length; at += 16) tiles.push(chain(terms.slice(at, at + 16)));
  const drawn = tiles.map((value) => ({ value, place: uniform() }));
  return chain(drawn.sort((a, b) => a.place - b.place).map(({ value }) => value));
}

/** The gradients of a problem by a backward pass whose roundings are those that premises admit. */
export function simulateBackward(
  problem: Problem,
  dout: Tensor,
  reference: AttentionReference,
  premises: GradientPremises,
  simulation: Simulation,
): SimulatedGradients {
  const shape = problemShape(problem);
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  const { makes, scalesFirst, roundsWeights } = simulation;
  const law = scoreLaw(problem, shape);
  const mask = problemMask(problem, shape);
  const kept = keptWeights(problem, shape);
  const [q, k, v, dO] = [problem.q, problem.k, problem.v, dout].map((tensor) =>
    decodeTensor(tensor),
  );
  const roundedBy = (name: Rounding) => (makes.has(name) ? Math.fround : (x: number) => x);
  const short = (name: Rounding, format: FormatName) =>
    makes.has(name) ? (x: number) => round(formats[format], x) : (x: number) => x;
  const sum = (terms: readonly number[], name: Rounding) =>
    summed(terms, simulation, roundedBy(name));
  const store = (format: FormatName, values: Float64Array, dims: readonly number[]): Tensor => ({
    format,
    shape: dims,
    data: encodeFromFloat64(formats[format], values),
  });
  const exactOut = reference.quantities.out.values;
  const exactLse = reference.quantities.lse.values;
  const out = store(makes.has('delta') ? premises.o : 'fp64', exactOut, dout.shape);
  const lseFormat = makes.has('lse-input') ? 'fp32' : 'fp64';
  const lse = store(lseFormat, exactLse, [batch, heads, queries]);
  const storedOut = decodeTensor(out);
  const isLseOfAll = problem.sink === undefined || problem.sink.inLse;
  const row32 = roundedBy('lse-input');
  const f = roundedBy('p-recompute');
  const tanh = makes.has('p-recompute') ? tanhs[simulation.tanh] : Math.tanh;
  const [toP, toDs] = [short('p-round', premises.p), short('ds-round', premises.ds)];
  const toPartial = short('group-sum', premises.partials);
  const toOutput = short('output-round', premises.output);
  const g = roundedBy('ds-round');
  const scaled = roundedBy('scale');
  const dq = new Float64Array(q.length);
  const dk = new Float64Array(k.length);
  const dv = new Float64Array(v.length);
  const write = simulation.isWritten
    ? (x: number) => round(formats[premises.scores], x)
    : (x: number) => x;
  const one = new Uint8Array(1);
  const added = new Float64Array(1);
  const error = () =>
    simulation.exponential === 'drawn' ? 2 * simulation.uniform() - 1 : simulation.exponential;

  for (let kvHead = 0; kvHead < batch * kvHeads; kvHead++) {
    const ofKeys = Array.from({ length: keys * qkDim }, (): number[] => []);
    const ofValues = Array.from({ length: keys * vDim }, (): number[] => []);
    const partsOfKeys = ofKeys.map((): number[] => []);
    const partsOfValues = ofValues.map((): number[] => []);
    for (let member = 0; member < groupSize; member++) {
      const head = Math.floor(kvHead / kvHeads) * heads + (kvHead % kvHeads) * groupSize + member;
      for (let i = 0; i < queries; i++) {
        const row = head * queries + i;
        const visible = [...keysOf(mask.ranges(head, i))];
        const normaliser = isLseOfAll
          ? decodeTensor(lse, row, row + 1)[0]
          : reference.denominator[row];
        const ofRow = Array.from({ length: vDim }, (_, c) => dO[row * vDim + c]);
        const weighed = visible.map((key) => {
          const products = Array.from({ length: qkDim }, (_, c) => {
            const product = q[row * qkDim + c] * k[(kvHead * keys + key) * qkDim + c];
            return f(product);
          });
          let score = write(f(f(law.scale) * write(sum(products, 'p-recompute'))));
          let slope = 1;
          if (law.softcap !== null) {
            const z = write(tanh(write(f(score / law.softcap))));
            score = write(f(law.softcap * z));
            slope = f(1 - f(z * z));
          }
          law.addend?.(head, i, key, added);
          if (law.addend !== null) score = write(f(score + f(added[0])));
          const off = makes.has('p-recompute') ? premises.exponential * error() : 0;
          return { key, score, slope, off: 1 + off * (1 - 2 ** -10) };
        });
        // What is written out has a row sum of its own scores.
        const normaliserOf = () => {
          const ofSink = problem.sink && decodeTensor(problem.sink.logits)[head % heads];
          const scores = [...weighed.map(({ score }) => score), ofSink ?? -Infinity];
          const most = Math.max(...scores);
          return most + Math.log(scores.reduce((all, score) => all + Math.exp(score - most), 0));
        };
        const L = row32(simulation.isWritten ? normaliserOf() : normaliser);
        const pairs = weighed.map(({ key, score, slope, off }) => {
          const exponent = f(f(score * Math.LOG2E) - f(L * Math.LOG2E));
          const p = write(f(2 ** exponent * off));
          kept?.fill(head, i, key, one);
          const factor = kept === null ? 1 : one[0] / kept.share;
          const terms = ofRow.map((x, c) => {
            const product = x * v[(kvHead * keys + key) * vDim + c];
            return roundedBy('dp-accumulate')(product);
          });
          const dP = write(roundedBy('dp-accumulate')(write(sum(terms, 'dp-accumulate')) * factor));
          return { key, p, slope, factor, dP, pRounded: toP(p) };
        });
        const d =
          simulation.delta === 'stored-output'
            ? sum(
                ofRow.map((x, c) => roundedBy('delta')(x * storedOut[row * vDim + c])),
                'delta',
              )
            : sum(
                pairs.map(({ p, dP }) => roundedBy('delta')(p * dP)),
                'delta',
              );
        const derivatives = pairs.map(({ p, pRounded, dP, slope }) => {
          const ofScore = write(g((roundsWeights ? pRounded : p) * g(dP - d)));
          const dS = write(g(ofScore * slope));
          return scalesFirst ? toDs(g(dS * law.scale)) : toDs(dS);
        });
        const finish = (total: number) => toOutput(scalesFirst ? total : scaled(total * law.scale));
        for (let c = 0; c < qkDim; c++) {
          const terms = pairs.map(({ key }, at) =>
            roundedBy('accumulate')(derivatives[at] * k[(kvHead * keys + key) * qkDim + c]),
          );
          dq[row * qkDim + c] = finish(sum(terms, 'accumulate'));
        }
        pairs.forEach(({ key, pRounded, factor }, at) => {
          for (let c = 0; c < qkDim; c++)
            ofKeys[key * qkDim + c].push(
              roundedBy('accumulate')(derivatives[at] * q[row * qkDim + c]),
            );
          for (let c = 0; c < vDim; c++)
            ofValues[key * vDim + c].push(
              roundedBy('accumulate')(roundedBy('p-round')(pRounded * factor) * ofRow[c]),
            );
        });
      }
      if (groupSize === 1 || !simulation.storesHeads) continue;
      const storeHead = (terms: number[][], parts: number[][], factor: number) =>
        terms.forEach((ofElement, at) => {
          parts[at].push(toPartial(scaled(sum(ofElement, 'accumulate') * factor)));
          ofElement.length = 0;
        });
      storeHead(ofKeys, partsOfKeys, scalesFirst ? 1 : law.scale);
      storeHead(ofValues, partsOfValues, 1);
    }
    const isStored = groupSize > 1 && simulation.storesHeads;
    const finishAll = (
      target: Float64Array,
      terms: readonly number[][],
      parts: readonly number[][],
      factor: number,
    ) =>
      terms.forEach((ofElement, at) => {
        target[kvHead * terms.length + at] = toOutput(
          isStored ? sum(parts[at], 'accumulate') : scaled(sum(ofElement, 'accumulate') * factor),
        );
      });
    finishAll(dk, ofKeys, partsOfKeys, scalesFirst ? 1 : law.scale);
    finishAll(dv, ofValues, partsOfValues, 1);
  }
  return { dq, dk, dv, out, lse };
}
