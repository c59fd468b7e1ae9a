import { attentionGradients, type AttentionGradients } from '../../../oracles/index.js';
import { decodeTensor, formats, ulp, type Tensor } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import type { CapturedGradients, KernelGradients } from '../../fixtures/captured-gradients.js';
import {
  backwardKernel,
  faultyBackwards,
  gradientsOf,
  type GradientOf,
} from '../../kernels/gradients/index.js';
import { encode } from '../damage.js';

/** What a captured kernel gave, on its problem. */
export interface CapturedCase extends Pick<CapturedGradients, 'problem' | 'dout'> {
  readonly given: KernelGradients;
  /** The problem's exact gradients. */
  readonly exact: () => AttentionGradients;
}

/** A way to spoil gradients; null where it does not apply, or changes nothing. */
export type GradientDamage = (from: CapturedCase) => KernelGradients | null;

type Change = (values: Float64Array, tensor: Tensor, from: CapturedCase) => Float64Array;

/** One gradient with other numbers. */
function changed(of: GradientOf, change: Change): GradientDamage {
  return (from) => {
    const tensor = from.given[of];
    const before = decodeTensor(tensor);
    const after = encode(change(before.slice(), tensor, from), tensor.format, tensor.shape);
    if (decodeTensor(after).every((x, i) => x === before[i])) return null;
    return { ...from.given, [of]: after };
  };
}

const widened = (tensor: Tensor): Tensor => encode(decodeTensor(tensor), 'fp32', tensor.shape);

/** The problem with its inputs in fp32, whose plain kernels round nothing to 16 bits. */
function inFloat32(problem: Problem): Problem {
  const { q, k, v } = problem;
  return { ...problem, q: widened(q), k: widened(k), v: widened(v) };
}

/** The gradients plus what a fault changes in a plain kernel in fp32. */
function withFault(name: string): GradientDamage {
  const fault = faultyBackwards.find((one) => one.name === name);
  if (fault === undefined) throw new Error(`there is no faulty backward ${name}`);
  return ({ problem, dout, given }) => {
    if (!fault.touches(problem)) return null;
    const inputs = [inFloat32(problem), widened(dout)] as const;
    const [wrong, right] = [fault.kernel(...inputs), backwardKernel()(...inputs)];
    const moved = (of: GradientOf) => {
      const [to, from] = [decodeTensor(wrong[of]), decodeTensor(right[of])];
      const values = decodeTensor(given[of]).map((x, i) => x + (to[i] - from[i]));
      return fault.wrong.includes(of)
        ? encode(values, given[of].format, given[of].shape)
        : given[of];
    };
    return { ...given, dq: moved('dq'), dk: moved('dk'), dv: moved('dv') };
  };
}

const rowsAndColumns = ({ shape }: Tensor) => [shape.at(-2) ?? 0, shape.at(-1) ?? 0] as const;

/** An 8 × 8 block of the first head, rows 8 to 15, with rows for columns. */
function transposedBlock(values: Float64Array, tensor: Tensor): Float64Array {
  const [rows, dim] = rowsAndColumns(tensor);
  if (rows < 16 || dim < 8) return values;
  const old = values.slice();
  for (let i = 0; i < 8; i++)
    for (let j = 0; j < 8; j++) values[(8 + i) * dim + j] = old[(8 + j) * dim + i];
  return values;
}

/** One column of the first head with the other sign. */
function negatedColumn(values: Float64Array, tensor: Tensor): Float64Array {
  const [rows, dim] = rowsAndColumns(tensor);
  for (let row = 0; row < rows; row++) values[row * dim + 3] *= -1;
  return values;
}

/** The last 32 rows of the last head are zero. */
function zeroHalfTile(values: Float64Array, tensor: Tensor): Float64Array {
  const [rows, dim] = rowsAndColumns(tensor);
  return values.fill(0, values.length - Math.min(32, rows) * dim);
}

/**
 * 4 ulp more on the element of which that is most beside the sizes that it is a sum of: elsewhere roundings of these sizes
 * move it by more.
 */
function fourUlp(of: GradientOf): Change {
  return (values, { format }, { exact }) => {
    const { magnitude } = exact()[of]!;
    const step = (i: number) => 4 * ulp(formats[format], Math.abs(values[i]));
    const share = (i: number) => (magnitude[i] === 0 ? 0 : step(i) / magnitude[i]);
    const at = values.reduce((best, _, i) => (share(i) > share(best) ? i : best), 0);
    // Away from the exact value, so that a rounding error does not undo it.
    const sign = values[at] >= exact()[of]!.values[at] ? 1 : -1;
    values[at] += sign * step(at);
    return values;
  };
}

const changes: Readonly<Record<string, (of: GradientOf) => Change>> = {
  'scaled by 1 %': () => (values) => values.map((x) => 1.01 * x),
  'transposed 8 × 8': () => transposedBlock,
  'sign of a column': () => negatedColumn,
  'half of the last tile zero': () => zeroHalfTile,
  '4 ulp on an element': fourUlp,
};

/** The damages, by what they do. */
export const gradientDamages: Readonly<Record<string, GradientDamage>> = {
  'a tile of keys missing in dQ': withFault('key-tile-missing'),
  'one head of a group': withFault('one-head-of-group'),
  'delta of the next row': withFault('delta-of-next-row'),
  ...Object.fromEntries(
    Object.entries(changes).flatMap(([name, change]) =>
      gradientsOf.map((of) => [`${of}: ${name}`, changed(of, change(of))] as const),
    ),
  ),
};

/** A captured kernel's gradients as a case. */
export function capturedCase(captured: CapturedGradients, kernel: string): CapturedCase {
  const { problem, dout, kernels } = captured;
  let known: AttentionGradients | null = null;
  return {
    problem,
    dout,
    given: kernels[kernel],
    exact: () => (known ??= attentionGradients(problem, dout)),
  };
}
