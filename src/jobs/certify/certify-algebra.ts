import type { OutputValues } from '../../meaning/certify/index.js';
import {
  compareAlgebra,
  type AlgebraComparison,
  type RealOf,
  type RowPlace,
} from '../../meaning/contracts/index.js';
import { Idioms, RealDomain } from '../../meaning/domains/index.js';
import { decidedValue, noValue } from '../../meaning/trace/index.js';
import { problemShape, type Problem } from '../../problem/index.js';
import type { LaunchContract } from '../launch/contract-of-launch.js';
import type { AlgebraCertificate } from './certificate.js';
import type { FollowedRun } from './followed-run.js';

/** Up to this distance an identity of real numbers holds: double-doubles of some thousand terms err by 1e−28. */
const exactLimit = 1e-25;

/** Products of q and k that are recomputed at most, and the fewest and most rows that are compared. */
const mostProducts = 2 ** 24;
const [fewestRows, mostRows] = [8, 256];

/** Rows equally far apart, over all sequences and heads. */
function chooseRows(problem: Problem): readonly RowPlace[] {
  const { batch, heads, queries, keys, qkDim } = problemShape(problem);
  const all = batch * heads * queries;
  const affordable = Math.floor(mostProducts / Math.max(keys * qkDim, 1));
  const count = Math.min(all, Math.max(fewestRows, Math.min(mostRows, affordable)));
  return Array.from({ length: count }, (_, i) => {
    const at = Math.floor(((i + 0.5) * all) / count);
    const sequence = Math.floor(at / queries);
    return { batch: Math.floor(sequence / heads), head: sequence % heads, row: at % queries };
  });
}

/** A comparison, and the same with idioms kept; null where there are none. */
interface Comparisons {
  readonly taken: AlgebraComparison;
  readonly kept: AlgebraComparison | null;
}

function ofOut({ taken: { factor, out }, kept }: Comparisons, rows: number): AlgebraCertificate {
  const distance = out.worst?.distance ?? Infinity;
  return {
    output: 'out',
    rows,
    compared: out.compared,
    without: out.withoutMeaning,
    distance,
    idealDistance: out.worstIdeal?.distance ?? Infinity,
    keptDistance: kept && (kept.out.worst?.distance ?? Infinity),
    limit: exactLimit,
    constant: factor?.name ?? null,
    constantError: factor?.fromExact ?? null,
    holds: distance <= exactLimit && (factor === null || factor.name !== null),
  };
}

function ofLse({ taken: { lse }, kept }: Comparisons, rows: number): AlgebraCertificate {
  const distance = lse.worst?.distance ?? Infinity;
  const idealDistance = lse.worstIdeal?.distance ?? Infinity;
  return {
    output: 'lse',
    rows,
    compared: lse.compared,
    without: lse.withoutMeaning,
    distance,
    idealDistance,
    keptDistance: kept && (kept.lse.worst?.distance ?? Infinity),
    limit: exactLimit,
    constant: lse.unit,
    constantError: null,
    holds: Math.min(distance, idealDistance) <= exactLimit,
  };
}

/** The real values of a run, and the same with idioms taken for functions; null where there are none. */
export interface RealValues {
  readonly kept: RealDomain;
  readonly taken: RealDomain | null;
}

/** The real values of a run, and its idioms. */
export function evaluateRun({ recorder: { trace } }: FollowedRun): RealValues & {
  readonly idioms: Idioms;
} {
  const kept = new RealDomain(trace);
  kept.extend();
  const idioms = new Idioms(trace);
  // Most kernels have none, and need no second pass.
  if (idioms.isAny) {
    const taken = new RealDomain(trace, idioms);
    taken.extend();
    if (idioms.found.length > 0) return { idioms, kept, taken };
  }
  return { idioms, kept, taken: null };
}

/** The number of an element that is a constant: its bits. */
function constantOf(
  { result }: FollowedRun,
  { tensor, format }: OutputValues,
  element: number,
): number {
  const { bytes } = result.outputs.find(({ name }) => name === tensor)!;
  const view = new DataView(bytes.buffer, bytes.byteOffset + element * format.bytes, format.bytes);
  const words = new DataView(new ArrayBuffer(8));
  for (let i = 0; i < format.bytes; i++) words.setUint8(i, view.getUint8(i));
  return format.decode(words.getUint32(0, true), words.getUint32(4, true));
}

/**
 * Compares the real values of O and the LSE with the exact attention of the launch's problem, on a sample of rows. Where there are
 * idioms, those with idioms taken for functions decide.
 */
export function certifyAlgebra(
  followed: FollowedRun,
  { kept, taken }: RealValues,
  { problem, outputs }: LaunchContract,
): readonly AlgebraCertificate[] {
  const known = new Map(
    outputs.map(({ name, tensor, elementOf }) => [
      name,
      { elementOf, of: followed.outputs.find((output) => output.tensor === tensor) },
    ]),
  );
  const realOf =
    (real: RealDomain): RealOf =>
    (output, { batch, head, row }, column) => {
      const found = known.get(output);
      if (found?.of === undefined) return null;
      const element = found.elementOf(batch, head, row, column);
      const value = found.of.values[element];
      if (value > decidedValue) return real.of(value);
      return value === noValue ? { high: constantOf(followed, found.of, element), low: 0 } : null;
    };
  const rows = chooseRows(problem);
  const decisive = compareAlgebra(problem, realOf(taken ?? kept), rows);
  const comparisons = {
    taken: decisive,
    kept: taken && compareAlgebra(problem, realOf(kept), rows, decisive.factor),
  };
  return [
    ...(known.has('out') ? [ofOut(comparisons, rows.length)] : []),
    ...(known.has('lse') ? [ofLse(comparisons, rows.length)] : []),
  ];
}
