import type { Gradient } from '../../../../oracles/index.js';
import type { FormatName } from '../../../formats/index.js';
import {
  broadcastPlaces,
  broadcastStrides,
  broadcastTerms,
  keysOf,
  type KeyRange,
  type Problem,
  type ProblemShape,
  type Tensor,
} from '../../../problem/index.js';
import { tileRows } from '../../bounds/index.js';
import type { GradientPremises } from './gradient-premises.js';
import type { GradientTechniqueBound } from './group-bounds.js';
import type { PairArithmetic } from './pair-arithmetic.js';
import {
  createScoreSharer,
  emptyScoreShare,
  scoreArithmetic,
  ScoreSums,
  type AlikePairs,
} from './score-shares.js';
import type { RowErrors, WeighedPairs } from './pairs/weighed-pairs.js';

/** How many rows of a head have the same q or k, and the same dO or v, for each row of one side of a tile. */
interface AlikeSide {
  readonly alikeScores: Float64Array;
  readonly alikeProducts: Float64Array;
}

/** Pairs of a tile that are weighed, the keys that each row sees within it, and how many rows of either side are alike. */
export interface BiasTile {
  readonly weighed: WeighedPairs;
  readonly ranges: readonly (readonly KeyRange[])[];
  readonly queries: AlikeSide;
  readonly keys: AlikeSide;
}

/** Sums the errors of pairs in the gradient of a bias: Theorem 21 of docs/theory/bounds-backward.md. */
export interface BiasBound {
  /** Begins a block of rows of a head, which count from `first` on. */
  readonly begin: (head: number, first: number, rows: readonly RowErrors[]) => void;
  /** Adds the pairs of a tile of the block. */
  readonly add: (tile: BiasTile, firstKey: number) => void;
  /** Ends the block. */
  readonly end: () => void;
  /** Marks a row of which nothing is known, and which sees these keys. */
  readonly giveUp: (head: number, query: number, ranges: readonly KeyRange[]) => void;
  /** @param exact in the shape of the bias */
  readonly finish: (exact: Gradient) => GradientTechniqueBound;
}

/**
 * Starts sums of the gradient of a bias: dS, before a softcap's slope and the scale, summed over the axes that the bias is
 * broadcast along.
 * @param format the format that the gradient is stored in
 */
export function createBiasBound(
  problem: Problem,
  bias: Tensor,
  shape: ProblemShape,
  { premises, arithmetic }: { premises: GradientPremises; arithmetic: PairArithmetic },
  format: FormatName,
): BiasBound {
  const { terms, ofKeys } = broadcastTerms(bias.shape, problem, shape);
  const strides = broadcastStrides(bias.shape);
  const ofBias = scoreArithmetic(arithmetic, premises);
  const shareOf = createScoreSharer(ofBias);
  const placesOf = broadcastPlaces(bias.shape, problem, shape);
  const sums = new ScoreSums(bias.shape.reduce((product, size) => product * size, 1));
  const share = emptyScoreShare();
  const alike: AlikePairs = { scores: 1, products: 1 };
  // For rows whose keys all add to one element: Σ P and Σ P², since an error of D is shared by all of them.
  const [weights, squares] = [new Float64Array(tileRows), new Float64Array(tileRows)];
  let rows: readonly RowErrors[] = [];
  let places: readonly ((key: number) => number)[] = [];
  return {
    begin: (head, first, errors) => {
      rows = errors;
      places = errors.map((_, i) => placesOf(head, first + i));
      weights.fill(0);
      squares.fill(0);
    },
    add: ({ weighed, ranges, queries, keys }, firstKey) => {
      rows.forEach((row, i) => {
        for (const { begin, end } of ranges[i])
          for (let j = begin; j < end; j++) {
            // Equal rows add to one element where the bias is broadcast over them.
            const ofQueries = strides.query === 0;
            const isOfKeys = strides.key === 0;
            alike.scores =
              (ofQueries ? queries.alikeScores[i] : 1) * (isOfKeys ? keys.alikeScores[j] : 1);
            alike.products =
              (ofQueries ? queries.alikeProducts[i] : 1) * (isOfKeys ? keys.alikeProducts[j] : 1);
            shareOf(weighed, i * tileRows + j, row, alike, share);
            // Pairs of equal keys err alike.
            if (keys.alikeScores[j] > 1 || keys.alikeProducts[j] > 1) share.ofRow = share.variance;
            sums.add(places[i](firstKey + j), share, alike);
            weights[i] += share.weight;
            squares[i] += share.weight ** 2;
          }
      });
    },
    end: () => {
      if (ofKeys === 1) return;
      rows.forEach(({ meanVariance }, i) => {
        const common = weights[i] ** 2 - squares[i];
        if (meanVariance > 0 && common > 0) sums.addVariance(places[i](0), meanVariance * common);
      });
    },
    giveUp: (head, query, ranges) => {
      const place = placesOf(head, query);
      for (const key of keysOf(ranges)) sums.giveUp(place(key));
    },
    finish: (exact) => sums.finish(exact, terms, premises, ofBias, format),
  };
}
