import { attentionOracle, type AttentionReference } from '../../oracles/index.js';
import { auditAccuracy } from '../../src/audit/index.js';
import { decodeToFloat64, encodeFromFloat64, formats } from '../../src/formats/index.js';
import { problemMask, problemShape, type Problem, type Tensor } from '../../src/problem/index.js';
import { kernelOutputs, type AttentionKernel, type KernelRun } from '../laws/index.js';

/** The results of a run, to be changed in place, and the exact ones. */
interface MendedRun {
  readonly problem: Problem;
  readonly out: Float64Array;
  readonly lse: Float64Array | null;
  /** The exact attention, computed on demand. */
  readonly exact: () => AttentionReference;
}

/** One way in which a kernel may be wrong. */
export interface Mend {
  /** Corrects results that are wrong in this way, and nothing else. */
  readonly mend: (run: MendedRun) => void;
  /** The error of this kind in a run, in a few words; null for none. */
  readonly wrong: (run: MendedRun) => string | null;
}

function exactOf(problem: Problem): () => AttentionReference {
  let known: AttentionReference | null = null;
  return () => (known ??= attentionOracle(problem, { accuracy: auditAccuracy(problem.q.format) }));
}

/** The results of a kernel's run, to be examined; changes do not affect the run. */
export function mendableRun({ problem, out, lse }: KernelRun): MendedRun {
  return { problem, out: out.slice(), lse: lse && lse.slice(), exact: exactOf(problem) };
}

/** The kernel with one kind of error corrected, in the formats that it writes. */
export function mendedKernel(kernel: AttentionKernel, { mend }: Mend): AttentionKernel {
  return async (problem, conditions) => {
    const given = await kernel(problem, conditions);
    const { out, lse } = kernelOutputs(given);
    const decoded = ({ data, format }: Tensor) => decodeToFloat64(data, formats[format]);
    const encoded = (tensor: Tensor, values: Float64Array): Tensor => ({
      ...tensor,
      data: encodeFromFloat64(formats[tensor.format], values),
    });
    const run = {
      problem,
      out: decoded(out),
      lse: lse && decoded(lse),
      exact: exactOf(problem),
    };
    mend(run);
    return { ...given, out: encoded(out, run.out), lse: lse && encoded(lse, run.lse!) };
  };
}

/** The rows of a problem without a key, over [batch, heads, queries]. */
function emptyRows(problem: Problem): number[] {
  const shape = problemShape(problem);
  const rows = Array.from({ length: shape.batch * shape.heads * shape.queries }, (_, row) => row);
  const mask = problemMask(problem, shape);
  return rows.filter(
    (row) => mask.ranges(Math.floor(row / shape.queries), row % shape.queries).length === 0,
  );
}

/** The results of rows that see no key. */
export const rowsWithoutKeys: Mend = {
  mend: ({ problem, out, lse }) => {
    const { vDim } = problemShape(problem);
    for (const row of emptyRows(problem)) {
      out.fill(0, row * vDim, (row + 1) * vDim);
      if (lse !== null) lse[row] = -Infinity;
    }
  },
  wrong: ({ problem, out, lse }) => {
    const { vDim } = problemShape(problem);
    const rows = emptyRows(problem);
    const outputs = rows.flatMap((row) => [...out.subarray(row * vDim, (row + 1) * vDim)]);
    const ofLse = lse === null ? [] : rows.map((row) => lse[row]);
    const [wrongOut, wrongLse] = [
      outputs.filter((x) => x !== 0),
      ofLse.filter((x) => x !== -Infinity),
    ];
    if ([...wrongOut, ...wrongLse].some(Number.isNaN)) return 'NaN on rows without keys';
    if (wrongOut.length > 0) return 'O is not 0 on rows without keys';
    return wrongLse.length > 0 ? 'the LSE is not −∞ on rows without keys' : null;
  },
};

/** The LSE, where O is right. */
export const wrongLse: Mend = {
  mend: ({ lse, exact }) => lse?.set(exact().quantities.lse.values),
  wrong: ({ lse }) => (lse === null ? null : 'the LSE is wrong, O is not'),
};

/** The results of infinities and NaNs in the inputs. */
export const specialInputs: Mend = {
  mend: (run) => {
    if (!hasSpecialInputs(run)) return;
    run.out.set(run.exact().quantities.out.values);
    run.lse?.set(run.exact().quantities.lse.values);
  },
  wrong: (run) => (hasSpecialInputs(run) ? 'what becomes of NaN and ∞ in the inputs' : null),
};

function hasSpecialInputs({ problem: { q, k, v } }: MendedRun): boolean {
  return [q, k, v].some(({ data, format }) =>
    decodeToFloat64(data, formats[format]).some((x) => !Number.isFinite(x)),
  );
}

/** NaNs and infinities where exact attention is finite. */
export const nonFiniteOutputs: Mend = {
  mend: (run) => {
    replaceNonFinite(run.out, run.exact().quantities.out.values);
    if (run.lse !== null) replaceNonFinite(run.lse, run.exact().quantities.lse.values);
  },
  wrong: ({ out, lse, exact }) =>
    hasNonFinite(out, exact().quantities.out.values) ||
    (lse !== null && hasNonFinite(lse, exact().quantities.lse.values))
      ? 'NaN or ∞ where exact attention is finite'
      : null,
};

function isNonFinite(found: number, exact: number): boolean {
  return !Number.isFinite(found) && Number.isFinite(exact);
}

function hasNonFinite(found: Float64Array, exact: Float64Array): boolean {
  return found.some((x, i) => isNonFinite(x, exact[i]));
}

function replaceNonFinite(found: Float64Array, exact: Float64Array): void {
  found.forEach((x, i) => {
    if (isNonFinite(x, exact[i])) found[i] = exact[i];
  });
}
