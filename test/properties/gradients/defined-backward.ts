import {
  runCase,
  resolvePromises,
  type AttentionKernel,
  type KernelPromises,
  type LawId,
  type LawStrength,
} from '../../../properties/index.js';
import { anyGradientPremises, measureGradients } from '../../../src/audit/index.js';
import { decodeTensor, type Tensor } from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { definedAttention } from '../../kernels/features/index.js';
import { definedKernel } from '../laws/try-law.js';

/** dQ, dK and dV of a problem, row-major. */
export type Gradients = Readonly<Record<'dq' | 'dk' | 'dv', Float64Array>>;

/** Gradients by their definition, in fp64, pair by pair; of problems without softcap, sink and dropout. */
export function definedGradients(problem: Problem, dout: Tensor): Gradients {
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = problemShape(problem);
  const { out, lse, visible } = definedAttention(problem);
  const [q, k, v, g] = [problem.q, problem.k, problem.v, dout].map((tensor) =>
    decodeTensor(tensor),
  );
  const dq = new Float64Array(q.length);
  const dk = new Float64Array(k.length);
  const dv = new Float64Array(v.length);
  for (let row = 0; row < batch * heads * queries; row++) {
    const head = Math.floor(row / queries);
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    let delta = 0;
    for (let c = 0; c < vDim; c++) delta += g[row * vDim + c] * out[row * vDim + c];
    for (const seen of visible[row]) {
      const key = kv * keys + seen;
      let [score, dp] = [0, 0];
      for (let t = 0; t < qkDim; t++) score += q[row * qkDim + t] * k[key * qkDim + t];
      for (let c = 0; c < vDim; c++) dp += g[row * vDim + c] * v[key * vDim + c];
      const p = Math.exp(score * problem.scale - lse[row]);
      const ds = p * (dp - delta) * problem.scale;
      for (let t = 0; t < qkDim; t++) {
        dq[row * qkDim + t] += ds * k[key * qkDim + t];
        dk[key * qkDim + t] += ds * q[row * qkDim + t];
      }
      for (let c = 0; c < vDim; c++) dv[key * vDim + c] += p * g[row * vDim + c];
    }
  }
  return { dq, dk, dv };
}

/** What of a run's gradients is changed, in place. */
export type Change = (gradients: Gradients, run: number, problem: Problem, dout: Tensor) => void;

/** A kernel of gradients by definition, stored in fp64, changed as is said. */
export function definedBackward(change: Change = () => undefined): AttentionKernel {
  let runs = 0;
  return async (problem, { dout } = {}) => {
    const forward = await definedKernel(problem);
    if (dout === undefined) return forward;
    const gradients = definedGradients(problem, dout);
    change(gradients, runs++, problem, dout);
    const { batch, heads, kvHeads, queries, keys, qkDim, vDim } = problemShape(problem);
    const of = (data: Float64Array, ...shape: number[]): Tensor => ({
      format: 'fp64',
      shape,
      data,
    });
    return {
      ...forward,
      dq: of(gradients.dq, batch, heads, queries, qkDim),
      dk: of(gradients.dk, batch, kvHeads, keys, qkDim),
      dv: of(gradients.dv, batch, kvHeads, keys, vDim),
    };
  };
}

/** One of the runs that a law of gradients asked for. */
export interface Asked {
  readonly problem: Problem;
  readonly dout: Tensor;
}

/** How a law of gradients is tried. */
export interface GradientTrial {
  readonly change?: Change | undefined;
  readonly strength?: LawStrength | undefined;
  readonly promises?: KernelPromises | undefined;
}

/** What becomes of a law of gradients on a case, and what it asked for. */
export async function tryGradients(
  id: LawId,
  { problem, dout, choice }: Asked & { readonly choice: number },
  { change, strength, promises = {} }: GradientTrial = {},
) {
  const asked: Asked[] = [];
  const kernel = definedBackward((gradients, run, posed, given) => {
    asked.push({ problem: posed, dout: given });
    change?.(gradients, run, posed, given);
  });
  const resolved = resolvePromises({
    formats: ['fp32', 'fp64'],
    lse: true,
    gradients: true,
    deterministic: true,
    ...promises,
    ...(strength === undefined ? {} : { laws: { [id]: strength } }),
  });
  const result = await runCase(id, { problem, dout, choice }, kernel, resolved, {
    diagnose: false,
  });
  return { result, asked, statement: result.status === 'violated' ? result.statement : null };
}

/** How far each gradient of any correct kernel may be off that stores fp64. */
export function boundsOf({ problem, dout }: Asked): Gradients {
  const { gradients } = measureGradients(problem, dout, {
    premises: anyGradientPremises(problem, 'fp64'),
    given: { out: null, lse: null },
  });
  const { dq, dk, dv } = gradients;
  return { dq: dq.bound.total, dk: dk.bound.total, dv: dv.bound.total };
}
