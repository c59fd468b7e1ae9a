import type { Gradient } from '../../../../oracles/index.js';
import { formats, unitRoundoff } from '../../../formats/index.js';
import type { KeyRange, ProblemShape } from '../../../problem/index.js';
import { createFinish, keyFacts, up } from './finish-gradient.js';
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
import type { FactorRows } from './pairs/factor-rows.js';
import type { PairMemory } from './pairs/pair-memory.js';
import { emptyPairSums, knownParts, type KnownPart, type PairSums } from './pairs/pair-sums.js';

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

/** A known part of the elements' errors, of heads whose shares are stored. */
interface StoredKnown {
  readonly part: KnownPart;
  /** The part of all heads before the one at hand, without the scale. */
  readonly before: Float64Array;
  /** What is known of the error of the stored shares, signed. */
  readonly known: Float64Array;
}

/** What storing the shares of query heads loses, with the scale. */
interface StoredShares {
  /** The exact share of the head at hand, without the scale. */
  readonly head: Float64Array;
  readonly worst: Float64Array;
  readonly variance: Float64Array;
  readonly known: readonly StoredKnown[];
}

/** One of dK and dV while it is summed. */
interface KeyGradient {
  readonly dim: number;
  /** The factor that the sums are multiplied by. */
  readonly scale: number;
  readonly sums: PairSums;
  readonly shares: TechniqueShares;
  /** The parts that are known, by each factor that operands may have had when they were rounded. */
  readonly known: readonly KnownPart[];
  /** The technique place whose roundings are known. */
  readonly knownOf: number;
  /** The shares of query heads, which may be stored; null where no format that they are stored in is shorter. */
  readonly stored: StoredShares | null;
  readonly name: 'dk' | 'dv';
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
    others: number,
    of: Pick<KeyGradient, 'knownOf' | 'name' | 'factorOf'>,
  ): KeyGradient => {
    const numbers = () => new Float64Array(keys * dim);
    const known = knownParts.slice(0, 1 + others);
    return {
      dim,
      scale,
      sums: emptyPairSums(keys * dim, memory),
      shares: emptyTechniqueShares(keys),
      stored: isStored
        ? {
            head: numbers(),
            worst: numbers(),
            variance: numbers(),
            known: known.map((part) => ({ part, before: numbers(), known: numbers() })),
          }
        : null,
      known,
      ...of,
    };
  };
  const ofKeys = gradient(qkDim, arithmetic.scale, arithmetic.ds.otherUnits.length, {
    knownOf: techniquePlaces.dsRound,
    name: 'dk',
    factorOf: (memory) => memory.queries,
  });
  const ofValues = gradient(vDim, 1, arithmetic.p.otherUnits.length, {
    knownOf: techniquePlaces.pRound,
    name: 'dv',
    factorOf: (memory) => memory.dout,
  });
  const isUnknown = new Uint8Array(keys);
  let mostAlike = 1;

  function finishKeys(
    { dim, scale, sums, shares, knownOf, stored, known }: KeyGradient,
    chosen: Int32Array,
    exact: Gradient,
  ): GradientTechniqueBound {
    const perElement = stored === null ? known.length : 2 * known.length;
    const bound = emptyGradientBound(chosen.length, dim, perElement - 1);
    const factor = Math.abs(scale);
    const terms = queries * groupSize;
    const growth = stored === null ? 1 : 1 + unitRoundoff(partials);
    const finish = createFinish(arithmetic, premises.output, {
      sum: overQueries,
      growth,
      columns: dim,
      knownOf,
      ownOthers: known.length - 1,
      others: perElement - 1,
    });
    const loss = stored === null ? null : { ...stored, known: stored.known.map((of) => of.known) };
    const floor = 3 * terms * underflow * Math.max(1, factor);
    chosen.forEach((key, row) => {
      for (const name of ['worst', 'variance'] as const)
        bound.techniques[name].set(
          shares[name].subarray(key * placeCount, (key + 1) * placeCount),
          row * placeCount,
        );
      scaleShares(bound.techniques, row, factor, growth * up);
      finish.row(
        'keys',
        { bound, row, exact },
        { sums, stored: loss, first: key * dim },
        keyFacts({ scale, alike: mostAlike, isUnknown: isUnknown[key] === 1, floor }),
      );
    });
    return bound;
  }

  return {
    shares: { dk: ofKeys.shares, dv: ofValues.shares },
    add: (memory, rows) => {
      for (const of of [ofKeys, ofValues]) {
        const factor = of.factorOf(memory);
        memory.addPairs(of.name, factor, of.sums, rows);
        if (of.stored !== null) memory.addProduct(of.name, 'value', factor, of.stored.head, rows);
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
          const isCertain = near < half;
          if (!isCertain && size > 0) stored.variance[at] += half ** 2 / 3;
          // A certain rounding is that of the exact share too, so that no error before it is left.
          for (const { part, before, known } of stored.known) {
            const sum = sums[part][at];
            known[at] += isCertain ? rounding : scale * (sum - before[at]);
            before[at] = sum;
          }
          stored.head[at] = 0;
        });
    },
    finish: (chosen, { dk, dv }) => ({
      dk: finishKeys(ofKeys, chosen, dk),
      dv: finishKeys(ofValues, chosen, dv),
    }),
  };
}
