import { attentionOracle } from '../../../oracles/index.js';
import {
  auditAccuracy,
  judgeOutputs,
  type ElementBounds,
  type Judgement,
} from '../../../src/audit/index.js';
import { decodeTensor } from '../../../src/formats/index.js';
import { lazily } from '../../../src/reuse.js';
import type { Problem, Tensor } from '../../../src/problem/index.js';
import { filledProblem, tensor } from '../../setup/problems.js';
import { bellShaped } from '../gradients/gradient-case.js';
import type { ForwardStatisticName, SpoiledOutput } from './forward-faults.js';

/** Keys of a tile that is left out. */
const tileKeys = 128;

/** What leaving the last tile of keys out does to O, to first order in its weight: W (O − O of the tile). */
export function withoutLastTile(problem: Problem, out: Float64Array, lse: Float64Array) {
  const rowsOf = (tensor: Tensor): Tensor => {
    const [batch, heads, rows, columns] = tensor.shape;
    const values = decodeTensor(tensor);
    const last = rows - (Math.ceil(rows / tileKeys) - 1) * tileKeys;
    const data = Float64Array.from({ length: batch * heads * last * columns }, (_, i) => {
      const head = Math.floor(i / (last * columns));
      return values[(head + 1) * rows * columns - last * columns + (i % (last * columns))];
    });
    return { format: 'fp64', shape: [batch, heads, last, columns], data };
  };
  const tile = attentionOracle({ ...problem, k: rowsOf(problem.k), v: rowsOf(problem.v) });
  const columns = out.length / lse.length;
  return out.map((x, i) => {
    const row = Math.floor(i / columns);
    const weight = Math.exp(tile.quantities.lse.values[row] - lse[row]);
    return weight * (x - tile.quantities.out.values[i]);
  });
}

/** A problem with all that its outputs are judged by, measured once. */
function measured(frame: Parameters<typeof filledProblem>[0], changes: Partial<Problem> = {}) {
  const problem = filledProblem(frame, bellShaped(7), changes);
  const reference = attentionOracle(problem, { accuracy: auditAccuracy('fp64') });
  let bounds: ElementBounds | null = null;
  const { out, lse } = reference.quantities;
  const { batch, heads, queries, vDim } = reference.shape;
  /** Outputs are in fp64, so that errors are as they are made. */
  const judge = (errors: Readonly<Partial<Record<'out' | 'lse', Float64Array>>>): Judgement => {
    const spoilt = (name: 'out' | 'lse', shape: readonly number[]): Tensor => {
      const { values } = reference.quantities[name];
      const ofQuantity = errors[name];
      const data = ofQuantity === undefined ? values : values.map((x, i) => x + ofQuantity[i]);
      return { format: 'fp64', shape, data };
    };
    return judgeOutputs(
      problem,
      {
        out: spoilt('out', [batch, heads, queries, vDim]),
        lse: spoilt('lse', [batch, heads, queries]),
      },
      {
        reference,
        diagnose: false,
        ...(bounds === null
          ? { onElements: (elements) => (bounds = elements.bounds) }
          : { bounds }),
      },
    );
  };
  judge({});
  const { quantities } = bounds as unknown as ElementBounds;
  const spoiled: Readonly<Record<'out' | 'lse', SpoiledOutput>> = {
    out: {
      exact: out.values,
      bound: quantities.out,
      columns: vDim,
      rowsOfHead: queries,
      withoutTile: withoutLastTile(problem, out.values, lse.values),
    },
    lse: {
      exact: lse.values,
      bound: quantities.lse,
      columns: 1,
      rowsOfHead: queries,
      withoutTile: new Float64Array(0),
    },
  };
  return { judge, spoiled };
}

/** Problems of two batch entries, and two tiles of queries and of keys. */
const forwardCases = {
  plain: lazily(() => measured({ batch: 2, queries: 224, keys: 192, dim: 16 })),
  withSink: lazily(() =>
    measured(
      { batch: 2, heads: 2, queries: 16, keys: 40, dim: 8 },
      { sink: { logits: tensor('fp32', [2], (head) => 1 + head), inLse: true } },
    ),
  ),
  /** Sums of few terms, whose worst case is next to what is expected. */
  few: lazily(() => measured({ batch: 2, queries: 4, keys: 3, dim: 8 })),
} as const;

/** The name of a problem whose outputs are spoiled. */
export type ForwardCaseName = keyof typeof forwardCases;

/** An output of a problem, to be spoiled. */
export function spoiledOutput(of: ForwardCaseName, name: 'out' | 'lse'): SpoiledOutput {
  return forwardCases[of]().spoiled[name];
}

/** How much of their limits the statistics of outputs use. */
function usesOf({ outputs: { out, lse } }: Judgement): Map<ForwardStatisticName, number> {
  const { elements, spread, structure } = out;
  const { numbers } = lse!;
  // What is beyond its bound is no matter of the spread.
  const isSpread = spread.outside > elements.outside || elements.outside === 0;
  return new Map<ForwardStatisticName, number>([
    ['non-finite', elements.nonFinite === 0 ? 0 : Infinity],
    ['element-bound', elements.worstRatio],
    ['element-spread', isSpread ? spread.worstRatio : 0],
    ['lse-non-finite', numbers.nonFinite === 0 ? 0 : Infinity],
    ['lse-bound', numbers.worstRatio],
    ...spread.results.map(
      ({ scope, measured, limit }) => [`rms ${scope}`, measured / limit] as const,
    ),
    ...[...structure, ...lse!.structure].map(
      ({ test, scope, statistic, threshold }) =>
        [`${test} ${scope}` as ForwardStatisticName, Math.abs(statistic) / threshold] as const,
    ),
  ]);
}

/** What an audit says of outputs of which one has errors: how much of their limits statistics use, and the verdict. */
export function judgeSpoiledOutput(of: ForwardCaseName, name: 'out' | 'lse', errors: Float64Array) {
  const judgement = forwardCases[of]().judge({ [name]: errors });
  return { uses: usesOf(judgement), verdict: judgement.verdict };
}
