import type { Tensor } from '../../formats/index.js';
import { RequestError } from '../../request-error.js';
import type { RecurrentFamily } from './families.js';

/**
 * What Mamba-2 makes its values, gates and outputs of. With Δ = clamp(softplus(dt + dt_bias)) a token and head has the value Δ x and the gate Δ A, and the
 * output y = S C + D x, times z σ(z) where there is a z. Source: Dao and Gu 2024 (arXiv 2405.21060), and mamba_ssm's mamba_chunk_scan_combined.
 */
export interface Mamba2Inputs {
  /** [batch, tokens, heads]. */
  readonly dt: Tensor;
  /** [heads]; negative as a rule. */
  readonly a: Tensor;
  /** [heads] or [heads, value dimension]; default: nothing of x is added. */
  readonly d?: Tensor | undefined;
  /** As x; default: outputs are not gated. */
  readonly z?: Tensor | undefined;
  /** [heads]; default: nothing is added to dt. */
  readonly dtBias?: Tensor | undefined;
  /** Whether Δ is the softplus of dt + dt_bias: log(1 + e^x) up to 20, and x beyond. */
  readonly dtSoftplus: boolean;
  /** Δ is clamped to these. */
  readonly dtLimit: readonly [least: number, most: number];
}

/** The softplus of Mamba-2 is its argument beyond this, as PyTorch's is. */
export const softplusThreshold = 20;

/** The limits of Δ that mamba_ssm has where none are given. */
export const usualStepLimit: readonly [least: number, most: number] = [0, Infinity];

/** The names that Mamba-2 has for the tensors of a recurrence. */
const mamba2Names: Readonly<Partial<Record<string, string>>> = {
  q: 'C',
  k: 'B',
  v: 'x',
  initial_state: 'initial_states',
  final_state: 'final_states',
  dq: 'dC',
  dk: 'dB',
  dv: 'dx',
  dinitial_state: 'dinitial_states',
  dfinal_state: 'dfinal_states',
};

/** The name that a family has for a tensor: C, B, x and so on of Mamba-2, the name itself of the others. */
export function recurrentTensorName(family: RecurrentFamily, name: string): string {
  return family === 'mamba2' ? (mamba2Names[name] ?? name) : name;
}

/** A tensor and the shapes that it may have. */
interface ShapedInput {
  readonly name: string;
  readonly tensor: Tensor | undefined;
  readonly shapes: readonly (readonly number[])[];
}

/**
 * Checks the inputs of Mamba-2 against the shape of x.
 * @throws RequestError for other shapes, and limits that are none
 */
export function checkMamba2Inputs(
  { dt, a, d, z, dtBias, dtLimit: [least, most] }: Mamba2Inputs,
  [batch, tokens, heads, valueDim]: readonly number[],
): void {
  const all: readonly ShapedInput[] = [
    { name: 'dt', tensor: dt, shapes: [[batch, tokens, heads]] },
    { name: 'A', tensor: a, shapes: [[heads]] },
    { name: 'D', tensor: d, shapes: [[heads], [heads, valueDim]] },
    { name: 'z', tensor: z, shapes: [[batch, tokens, heads, valueDim]] },
    { name: 'dt_bias', tensor: dtBias, shapes: [[heads]] },
  ];
  for (const { name, tensor, shapes } of all) {
    if (tensor === undefined || shapes.some((wanted) => String(wanted) === String(tensor.shape)))
      continue;
    const wanted = shapes.map((shape) => `[${shape.join(', ')}]`).join(' or ');
    throw new RequestError(`${name} has shape [${tensor.shape.join(', ')}]; give it ${wanted}`);
  }
  if (!(least <= most && least > -Infinity))
    throw new RequestError(
      `dt_limit is ${least} to ${most}; give the least and the largest Δ, as in 0,inf`,
    );
}
