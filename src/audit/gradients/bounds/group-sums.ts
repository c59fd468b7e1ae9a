import type { Gradient } from '../../../../oracles/index.js';
import { formats, unitRoundoff } from '../../../formats/index.js';
import type { KeyRange, ProblemShape } from '../../../problem/index.js';
import { createFinish, noErrors, up } from './finish-gradient.js';
import type { GradientPremises } from './gradient-premises.js';
import {
  emptyTechniqueShares,
  placeCount,
  scaleShares,
  techniquePlaces,
  type TechniqueShares,
} from './gradient-techniques.js';
import { emptyGradientBound, type GradientTechniqueBound } from './group-bounds.js';
import { halfUlp, roundedNear, shortFormat, type PairArithmetic } from './pair-arithmetic.js';
import {
  addPairs,
  byOthersOf,
  commonOf,
  emptyPairSums,
  partialsOf,
  type FactorRows,
  type PairMatrices,
  type PairMemory,
  type PairSums,
} from './pair-sums.js';

/** The sums of dK and dV of a group, over the queries of all its heads. */
export interface GroupSums {
  /** Shares of the techniques of single pairs in rows of keys, without the scale. */
  readonly shares: { readonly dk: TechniqueShares; readonly dv: TechniqueShares };
  /** Adds a tile's pairs to rows of keys. */
  readonly add: (
    memory: PairMemory,
    rows: { readonly first: number; readonly count: number },
  ) => void;
  /** Marks keys of which nothing is known. */
  readonly leaveOut: (ranges: readonly KeyRange[]) => void;
  /**
   * `group-sum`: the loss of a query head's share where it is stored before those of a group are added.
   * @param alike the largest number of equal queries of the head
   */
  readonly finishHead: (alike: number) => void;
  readonly finish: (
    keys: Int32Array,
    exact: { readonly dk: Gradient; readonly dv: Gradient },
  ) => { readonly dk: GradientTechniqueBound; readonly dv: GradientTechniqueBound };
}

/** One of dK and dV while it is summed. */
interface KeyGradient {
  readonly dim: number;
  /** The factor that the sums are multiplied by. */
  readonly scale: number;
  readonly sums: PairSums;
  readonly shares: TechniqueShares;
  /** The technique place whose roundings are known. */
  readonly knownOf: number;
  /** Number of factors that operands may have had when they were rounded, beside the smallest. */
  readonly others: number;
  /** Sums of one query head, and the losses of storing the sums of heads; null where they are not stored in a shorter format. */
  readonly stored: {
    readonly head: Float64Array;
    readonly worst: Float64Array;
    readonly known: Float64Array;
    readonly variance: Float64Array;
  } | null;
  readonly matricesOf: (memory: PairMemory) => PairMatrices;
  readonly factorOf: (memory: PairMemory) => FactorRows;
}

/** Sums of nothing yet. */
export function createGroupSums(
  { keys, queries, groupSize, qkDim, vDim }: ProblemShape,
  premises: GradientPremises,
  arithmetic: PairArithmetic,
  memory: Pick<PairMemory, 'parts'>,
): GroupSums {
  const { elementwise, overQueries, underflow } = arithmetic;
  const partials = formats[premises.partials];
  const short = shortFormat(partials);
  const isStored = groupSize > 1 && unitRoundoff(partials) > elementwise;
  const gradient = (
    dim: number,
    scale: number,
    of: Pick<KeyGradient, 'knownOf' | 'others' | 'matricesOf' | 'factorOf'>,
  ): KeyGradient => {
    const numbers = () => new Float64Array(keys * dim);
    return {
      dim,
      scale,
      sums: emptyPairSums(keys * dim, memory),
      shares: emptyTechniqueShares(keys),
      stored: isStored
        ? { head: numbers(), worst: numbers(), known: numbers(), variance: numbers() }
        : null,
      ...of,
    };
  };
  const ofKeys = gradient(qkDim, arithmetic.scale, {
    knownOf: techniquePlaces.dsRound,
    others: arithmetic.ds.otherUnits.length,
    matricesOf: ({ dk }) => dk,
    factorOf: (memory) => memory.queries,
  });
  const ofValues = gradient(vDim, 1, {
    knownOf: techniquePlaces.pRound,
    others: arithmetic.p.otherUnits.length,
    matricesOf: ({ dv }) => dv,
    factorOf: (memory) => memory.dout,
  });
  const isUnknown = new Uint8Array(keys);
  let mostAlike = 1;

  function finishKeys(
    { dim, scale, sums, shares, knownOf, stored, others }: KeyGradient,
    chosen: Int32Array,
    exact: Gradient,
  ): GradientTechniqueBound {
    const bound = emptyGradientBound(chosen.length, dim, others);
    const factor = Math.abs(scale);
    const terms = queries * groupSize;
    const growth = stored === null ? 1 : 1 + unitRoundoff(partials);
    const finish = createFinish(arithmetic, premises.output, { sum: overQueries, growth });
    const errors = noErrors({ knownOf, alike: mostAlike });
    chosen.forEach((key, row) => {
      for (const name of ['worst', 'variance'] as const)
        bound.techniques[name].set(
          shares[name].subarray(key * placeCount, (key + 1) * placeCount),
          row * placeCount,
        );
      scaleShares(bound.techniques, row, factor, growth * up);
      for (let c = 0; c < dim; c++) {
        const from = key * dim + c;
        const at = row * dim + c;
        errors.shift = scale * sums.signed[from];
        errors.pairs = isUnknown[key] === 1 ? Infinity : factor * sums.worst[from];
        errors.pairVariance = factor ** 2 * sums.variance[from];
        errors.known = scale * sums.known[from] + (stored?.known[from] ?? 0);
        byOthersOf(sums, from, scale, errors.byOthers);
        if (stored !== null)
          for (let k = 0; k < errors.byOthers.length; k++) errors.byOthers[k] += stored.known[from];
        errors.magnitude = factor * sums.magnitude[from];
        errors.partials = factor ** 2 * partialsOf(sums, from);
        errors.groupSum = stored?.worst[from] ?? 0;
        errors.groupVariance = stored?.variance[from] ?? 0;
        errors.systematic = factor * (sums.systematic[from] + commonOf(sums, from));
        // A key that no query sees has exact zeros.
        errors.floor = sums.worst[from] > 0 ? 3 * terms * underflow * Math.max(1, factor) : 0;
        finish(bound, row, at, exact, errors);
      }
    });
    return bound;
  }

  return {
    shares: { dk: ofKeys.shares, dv: ofValues.shares },
    add: (memory, rows) => {
      for (const of of [ofKeys, ofValues]) {
        const factor = of.factorOf(memory);
        addPairs(memory, of.matricesOf(memory), factor, of.sums, rows);
        if (of.stored !== null)
          memory.addProduct(of.matricesOf(memory).value, factor, 'values', of.stored.head, rows);
      }
    },
    leaveOut: (ranges) => {
      for (const { begin, end } of ranges) isUnknown.fill(1, begin, end);
    },
    finishHead: (alike) => {
      mostAlike = Math.max(mostAlike, alike);
      for (const { scale, sums, stored } of [ofKeys, ofValues])
        stored?.head.forEach((sum, at) => {
          const value = scale * sum;
          const size = Math.abs(value);
          // The errors of all heads so far are no less than this one's.
          const error = Math.abs(scale) * (sums.worst[at] + overQueries.worst * sums.magnitude[at]);
          if (!(size + error < short.maxFinite)) stored.worst[at] = Infinity;
          const half = halfUlp(short, Math.min(size, short.maxFinite));
          const rounding = roundedNear(short, value) - value;
          const near = Math.abs(rounding) + error;
          const most = Math.max(unitRoundoff(partials) * size, short.least);
          stored.worst[at] += Math.min(most, near);
          if (near < half) stored.known[at] += rounding;
          else if (size > 0) stored.variance[at] += half ** 2 / 3;
          stored.head[at] = 0;
        });
    },
    finish: (chosen, { dk, dv }) => ({
      dk: finishKeys(ofKeys, chosen, dk),
      dv: finishKeys(ofValues, chosen, dv),
    }),
  };
}
