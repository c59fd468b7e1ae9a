import type { Gradient } from '../../../../oracles/index.js';
import { formats, unitRoundoff } from '../../../formats/index.js';
import type { KeyRange, ProblemShape } from '../../../problem/index.js';
import { finishElement } from './finish-gradient.js';
import type { GradientPremises } from './gradient-premises.js';
import { emptyGradientBound, type GradientBound } from './group-bounds.js';
import { halfUlp, shortFormat, type PairArithmetic } from './pair-arithmetic.js';
import {
  addPairs,
  emptyPairSums,
  type FactorRows,
  type PairMatrices,
  type PairMemory,
  type PairSums,
} from './pair-sums.js';

/** The sums of dK and dV of a group, over the queries of all its heads. */
export interface GroupSums {
  /** Adds a tile's pairs to rows of keys. */
  readonly add: (
    memory: PairMemory,
    rows: { readonly first: number; readonly count: number },
  ) => void;
  /** Nothing is known of these keys. */
  readonly leaveOut: (ranges: readonly KeyRange[]) => void;
  /** `group-sum`: what a query head's share loses where it is stored before those of a group are added. */
  readonly finishHead: () => void;
  readonly finish: (
    keys: Int32Array,
    exact: { readonly dk: Gradient; readonly dv: Gradient },
  ) => { readonly dk: GradientBound; readonly dv: GradientBound };
}

/** One of dK and dV while it is summed. */
interface KeyGradient {
  readonly dim: number;
  /** What the sums are multiplied by. */
  readonly scale: number;
  readonly sums: PairSums;
  /** Of one query head: the sum itself; and what storing heads' sums loses: null where they are not stored short. */
  readonly stored: {
    readonly head: Float64Array;
    readonly worst: Float64Array;
    readonly variance: Float64Array;
  } | null;
  readonly matricesOf: (memory: PairMemory) => PairMatrices;
  readonly valuesOf: (memory: PairMemory) => PairMemory['weights'];
  readonly factorOf: (memory: PairMemory) => FactorRows;
}

/** Sums of nothing yet. */
export function createGroupSums(
  { keys, queries, groupSize, qkDim, vDim }: ProblemShape,
  premises: GradientPremises,
  arithmetic: PairArithmetic,
): GroupSums {
  const { elementwise, overQueries, underflow } = arithmetic;
  const partials = formats[premises.partials];
  const short = shortFormat(partials);
  const isStored = groupSize > 1 && unitRoundoff(partials) > elementwise;
  const gradient = (
    dim: number,
    scale: number,
    of: Pick<KeyGradient, 'matricesOf' | 'valuesOf' | 'factorOf'>,
  ): KeyGradient => {
    const numbers = () => new Float64Array(keys * dim);
    return {
      dim,
      scale,
      sums: emptyPairSums(keys * dim),
      stored: isStored ? { head: numbers(), worst: numbers(), variance: numbers() } : null,
      ...of,
    };
  };
  const ofKeys = gradient(qkDim, arithmetic.scale, {
    matricesOf: ({ dk }) => dk,
    valuesOf: ({ derivatives }) => derivatives,
    factorOf: (memory) => memory.queries,
  });
  const ofValues = gradient(vDim, 1, {
    matricesOf: ({ dv }) => dv,
    valuesOf: ({ weights }) => weights,
    factorOf: (memory) => memory.dout,
  });
  const isUnknown = new Uint8Array(keys);

  function finishKeys(
    { dim, scale, sums, stored }: KeyGradient,
    chosen: Int32Array,
    exact: Gradient,
  ): GradientBound {
    const bound = emptyGradientBound(chosen.length * dim);
    const factor = Math.abs(scale);
    const terms = queries * groupSize;
    chosen.forEach((key, place) => {
      for (let c = 0; c < dim; c++) {
        const from = key * dim + c;
        const at = place * dim + c;
        const shift = scale * sums.signed[from];
        const size = Math.abs(exact.values[at] + shift);
        // A key that no query sees has exact zeros.
        const floor = sums.worst[from] > 0 ? 3 * terms * underflow * Math.max(1, factor) : 0;
        const finishing = 3 * elementwise * size + floor;
        const ofHeads = stored?.worst[from] ?? 0;
        const error = {
          shift,
          worst:
            isUnknown[key] === 1
              ? Infinity
              : (factor * sums.worst[from] + ofHeads) * (1 + unitRoundoff(partials)) + finishing,
          systematic: factor * sums.systematic[from] + overQueries * size + finishing,
          variance:
            factor ** 2 * (sums.variance[from] + sums.known[from] ** 2) +
            (stored?.variance[from] ?? 0) +
            terms * (premises.accumulation * exact.magnitude[at]) ** 2,
        };
        finishElement(bound, at, exact, at, { format: premises.output, error });
      }
    });
    return bound;
  }

  return {
    add: (memory, rows) => {
      for (const of of [ofKeys, ofValues]) {
        const factor = of.factorOf(memory);
        addPairs(memory, of.matricesOf(memory), factor, of.sums, rows);
        if (of.stored !== null)
          memory.addProduct(of.valuesOf(memory), factor, 'values', of.stored.head, rows);
      }
    },
    leaveOut: (ranges) => {
      for (const { begin, end } of ranges) isUnknown.fill(1, begin, end);
    },
    finishHead: () => {
      for (const { scale, sums, stored } of [ofKeys, ofValues])
        stored?.head.forEach((sum, at) => {
          const size = Math.abs(scale * sum);
          // The errors of all heads so far are no less than this one's.
          const reach = size + Math.abs(scale) * sums.worst[at];
          if (!(reach < short.maxFinite)) stored.worst[at] = Infinity;
          const half = halfUlp(short, Math.min(size, short.maxFinite));
          stored.worst[at] += Math.max(unitRoundoff(partials) * size, short.least);
          if (size > 0) stored.variance[at] += half ** 2 / 3;
          stored.head[at] = 0;
        });
    },
    finish: (chosen, { dk, dv }) => ({
      dk: finishKeys(ofKeys, chosen, dk),
      dv: finishKeys(ofValues, chosen, dv),
    }),
  };
}
